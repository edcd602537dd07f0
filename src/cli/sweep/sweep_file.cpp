// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep/sweep_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kMostNumber = 1e15;
// A range that is meant to end at `to` does so in spite of rounding.
constexpr double kRoundingOfRange = 1e-9;

std::string number_text(double value) {
  return std::abs(value - std::round(value)) < kRoundingOfRange * std::abs(value)
             ? fmt::format("{}", std::llround(value))
             : fmt::format("{:.12g}", value);
}

// {from: A, to: B, step: C} or {from: A, to: B, factor: C}, perhaps with unit: U.
std::vector<std::string> read_range(const ConfigNode& node) {
  const double from = node.required("from").as_number(-kMostNumber, kMostNumber);
  const double to = node.required("to").as_number(from, kMostNumber);
  const auto step = node.optional("step");
  const auto factor = node.optional("factor");
  if (step.has_value() == factor.has_value()) {
    node.fail("either step or factor", step ? "both" : "none of them");
  }
  const double change =
      step ? step->as_number(0.0, kMostNumber) : factor->as_number(1.0, kMostNumber);
  if (change <= (step ? 0.0 : 1.0) || (factor && from <= 0.0)) {
    node.fail("a range that rises", "one that never ends");
  }
  const auto unit = node.optional("unit");
  const std::string suffix = unit ? unit->as_string() : "";
  std::vector<std::string> values;
  const double end = to + kRoundingOfRange * std::abs(to);
  for (std::size_t index = 0; index <= kMostSweepPoints; ++index) {
    const auto count = static_cast<double>(index);
    const double value = step ? from + count * change : from * std::pow(change, count);
    if (value > end) {
      return values;
    }
    values.push_back(number_text(value) + suffix);
  }
  node.fail(fmt::format("expected at most {} values", kMostSweepPoints));
}

SweepAxis read_axis(const std::string& key, const ConfigNode& node) {
  SweepAxis axis{.key = key, .values = {}};
  if (node.is_map()) {
    axis.values = read_range(node);
  } else if (node.is_sequence()) {
    for (const ConfigNode& value : node.items()) {
      axis.values.push_back(value.as_string());
    }
  } else {
    node.fail("a list of values or a range {from, to, step}", node.found());
  }
  if (axis.values.empty()) {
    node.fail("at least one value", "none");
  }
  return axis;
}

void read_groups(const ConfigNode& node, SweepSpec& spec) {
  if (node.is_map()) {
    for (const auto& [key, values] : node.entries()) {
      spec.groups.push_back({read_axis(key, values)});
    }
    return;
  }
  for (const ConfigNode& group : node.items()) {
    std::vector<SweepAxis>& axes = spec.groups.emplace_back();
    for (const auto& [key, values] : group.entries()) {
      axes.push_back(read_axis(key, values));
      if (axes.back().values.size() != axes.front().values.size()) {
        values.fail(
            fmt::format("as many values as {}, {}", axes.front().key, axes.front().values.size()),
            fmt::format("{}", axes.back().values.size()));
      }
    }
    if (axes.empty()) {
      group.fail("options that vary", "none");
    }
  }
}

void read_options(const ConfigNode& node, SweepSpec& spec) {
  for (const auto& [name, value] : node.entries()) {
    std::vector<std::string> values;
    if (value.is_sequence()) {
      for (const ConfigNode& each : value.items()) {
        values.push_back(each.as_string());
      }
    } else if (const std::string text = value.as_string(); text != "true") {
      values.push_back(text);
    }
    spec.options.emplace_back(name, std::move(values));
  }
}

void check_keys(const ConfigNode& vary, const SweepSpec& spec) {
  std::vector<std::string> keys = spec.keys();
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice != keys.end()) {
    vary.fail("every option once", fmt::format("\"{}\" twice", *twice));
  }
  for (const auto& [name, values] : spec.options) {
    if (std::binary_search(keys.begin(), keys.end(), name)) {
      vary.fail(fmt::format("\"{}\" stands in options already", name));
    }
  }
  std::size_t points = 1;
  for (const std::vector<SweepAxis>& group : spec.groups) {
    points *= group.front().values.size();
    if (points > kMostSweepPoints) {
      vary.fail(fmt::format("at most {} points", kMostSweepPoints), "more");
    }
  }
}

void add_option(const SweepSpec& spec, std::string_view key, const std::string& value,
                std::vector<std::string>& arguments) {
  if (key == spec.positional) {
    arguments.push_back(value);
    return;
  }
  const std::size_t dot = key.find('.');
  arguments.push_back("--" + std::string(key.substr(0, dot)));
  arguments.push_back(
      dot == std::string_view::npos ? value : fmt::format("{}={}", key.substr(dot + 1), value));
}

}  // namespace

std::size_t SweepSpec::points() const {
  std::size_t product = 1;
  for (const std::vector<SweepAxis>& group : groups) {
    product *= group.front().values.size();
  }
  return product;
}

std::vector<std::string> SweepSpec::keys() const {
  std::vector<std::string> all;
  for (const std::vector<SweepAxis>& group : groups) {
    for (const SweepAxis& axis : group) {
      all.push_back(axis.key);
    }
  }
  return all;
}

std::vector<std::string> SweepSpec::values_at(std::size_t point) const {
  CHECK(point < points(), "a point of the sweep");
  std::vector<std::string> values;
  std::size_t below = points();
  for (const std::vector<SweepAxis>& group : groups) {
    const std::size_t count = group.front().values.size();
    below /= count;
    for (const SweepAxis& axis : group) {
      values.push_back(axis.values[point / below % count]);
    }
  }
  return values;
}

std::vector<std::string> SweepSpec::arguments_at(std::size_t point) const {
  std::vector<std::string> arguments;
  for (const auto& [name, values] : options) {
    if (values.empty()) {
      arguments.push_back("--" + name);
    }
    for (const std::string& value : values) {
      add_option(*this, name, value, arguments);
    }
  }
  const std::vector<std::string> values = values_at(point);
  const std::vector<std::string> all = keys();
  for (std::size_t axis = 0; axis < all.size(); ++axis) {
    add_option(*this, all[axis], values[axis], arguments);
  }
  return arguments;
}

SweepSpec read_sweep(ConfigDocument& document, const std::vector<SweptCommand>& commands) {
  const ConfigNode root = document.root();
  SweepSpec spec;
  spec.title = root.required("title").as_string();
  std::vector<std::string_view> names;
  for (const SweptCommand& command : commands) {
    names.push_back(command.name);
  }
  const SweptCommand& command = commands[root.required("command").as_choice(names)];
  spec.command = command.name;
  spec.positional = command.positional;
  if (const auto options = root.optional("options")) {
    read_options(*options, spec);
  }
  const ConfigNode vary = root.required("vary");
  read_groups(vary, spec);
  if (spec.groups.empty()) {
    vary.fail("options that vary", "none");
  }
  check_keys(vary, spec);
  document.finish();
  return spec;
}

}  // namespace trainyard
