// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep/sweep_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kMaxNumber = 1e15;
// A range that is meant to end at `to` does so in spite of rounding.
constexpr double kRoundingOfRange = 1e-9;

std::string number_text(double value) {
  return std::abs(value - std::round(value)) < kRoundingOfRange * std::abs(value)
             ? fmt::format("{}", std::llround(value))
             : fmt::format("{:.12g}", value);
}

// {from: A, to: B, step: C} or {from: A, to: B, factor: C}, perhaps with unit: U.
struct Range {
  double from = 0.0;
  double to = 0.0;
  double change = 0.0;
  bool is_step = false;
  std::string unit = {};
};

void range_fields(Fields& fields, Range& range) {
  constexpr Number kAny{.min = -kMaxNumber, .max = kMaxNumber};
  fields.required("from", range.from, kAny, "The first value.");
  const auto at_min_from = [&](const ConfigNode& node) {
    return node.as_number(range.from, kMaxNumber);
  };
  fields.required("to", range.to, Via{kAny, at_min_from}, "No value is above this.");
  range.is_step = fields.optional("step", range.change, Number{.min = 0.0, .max = kMaxNumber},
                                  "What is added from one value to the next.");
  const bool is_factor =
      fields.optional("factor", range.change, Number{.min = 1.0, .max = kMaxNumber},
                      "Instead of `step`: what a value is multiplied by.");
  fields.optional("unit", range.unit, Text{}, "What stands behind each number, such as `M`.");
  fields.check([&](const ConfigNode& node) {
    if (range.is_step == is_factor) {
      node.fail("either step or factor", is_factor ? "both" : "none of them");
    }
    if (range.change <= (range.is_step ? 0.0 : 1.0) || (is_factor && range.from <= 0.0)) {
      node.fail("a range that rises", "one that never ends");
    }
  });
}

std::vector<std::string> values_of(const Range& range, const ConfigNode& node) {
  std::vector<std::string> values;
  const double end = range.to + kRoundingOfRange * std::abs(range.to);
  for (std::size_t index = 0; index <= kMaxSweepPoints; ++index) {
    const auto count = static_cast<double>(index);
    const double value = range.is_step ? range.from + count * range.change
                                       : range.from * std::pow(range.change, count);
    if (value > end) {
      return values;
    }
    values.push_back(number_text(value) + range.unit);
  }
  node.fail(fmt::format("expected at most {} values", kMaxSweepPoints));
}

// The values of an option that varies.
struct AxisValues {
  static void read(const Fields& parent, const ConfigNode& node, std::vector<std::string>& values) {
    if (node.is_map()) {
      Range range;
      parent.read_value(Group{range_fields}, node, range);
      values = values_of(range, node);
    } else if (node.is_sequence()) {
      parent.read_value(List{Text{}}, node, values);
    } else {
      node.fail("a list of values or a range {from, to, step}", node.found());
    }
    if (values.empty()) {
      node.fail("at least one value", "none");
    }
  }
  static void describe(Schema& schema, std::vector<std::string>& values) {
    List{Text{}}.describe(schema.alternatives.emplace_back(), values);
    Range range;
    Group{range_fields}.describe(schema.alternatives.emplace_back(), range);
  }
};

// Options that vary: a mapping, or a list of mappings whose options go together.
struct Vary {
  using Groups = std::vector<std::vector<SweepAxis>>;
  using Axes = std::map<std::string, std::vector<std::string>>;

  static void read(const Fields& parent, const ConfigNode& node, Groups& groups) {
    const auto read_axis = [&](const std::string& key, const ConfigNode& values) {
      SweepAxis axis{.key = key, .values = {}};
      AxisValues::read(parent, values, axis.values);
      return axis;
    };
    if (node.is_map()) {
      for (const auto& [key, values] : node.entries()) {
        groups.push_back({read_axis(key, values)});
      }
      return;
    }
    for (const ConfigNode& group : node.items()) {
      std::vector<SweepAxis>& axes = groups.emplace_back();
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
  static void describe(Schema& schema, Groups& /*groups*/) {
    Axes axes;
    Named{AxisValues{}}.describe(schema.alternatives.emplace_back(), axes);
    std::vector<Axes> groups;
    List{Named{AxisValues{}}}.describe(schema.alternatives.emplace_back(), groups);
  }
};

// Options that all points have: a value, a list for an option that is given again, or `true`.
struct SharedOptions {
  using Values = std::vector<std::pair<std::string, std::vector<std::string>>>;

  static void read(const Fields& parent, const ConfigNode& node, Values& options) {
    for (const auto& [name, value] : node.entries()) {
      std::vector<std::string> values;
      if (value.is_sequence()) {
        parent.read_value(List{Text{}}, value, values);
      } else if (const std::string text = value.as_string(); text != "true") {
        values.push_back(text);
      }
      options.emplace_back(name, std::move(values));
    }
  }
  static void describe(Schema& schema, Values& /*options*/) {
    std::map<std::string, std::string> values;
    Named{Either{Text{}, List{Text{}}}}.describe(schema, values);
  }
};

void check_keys(const ConfigNode& vary, const SweepSpec& spec) {
  if (spec.groups.empty()) {
    vary.fail("options that vary", "none");
  }
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
    if (points > kMaxSweepPoints) {
      vary.fail(fmt::format("at most {} points", kMaxSweepPoints), "more");
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

void sweep_fields(Fields& fields, SweepSpec& spec, std::span<const Command> commands) {
  fields.required("title", spec.title, Text{}, "The title of tables and pages.");
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    names.push_back(command.name);
  }
  std::size_t index = 0;
  fields.required("command", index, Choice{names}, "The command that each point runs.");
  const Options& arguments = commands[index].arguments;
  spec.command = commands[index].name;
  spec.positional = arguments.empty() ? "" : arguments.front().name;
  fields.optional("options", spec.options, SharedOptions{},
                  "Options that all points have: a value, a list for an option that is given "
                  "again, or `true`.");
  fields.required("vary", spec.groups, Vary{},
                  "Options that vary, each with a list of values or a range; options of one "
                  "mapping of a list go together.");
  fields.check([&](const ConfigNode& node) { check_keys(node.required("vary"), spec); });
}

SweepSpec read_sweep(ConfigDocument& document, std::span<const Command> commands) {
  SweepSpec spec;
  read_fields(document.root(), spec,
              [&](Fields& fields, SweepSpec& read) { sweep_fields(fields, read, commands); });
  document.finish();
  return spec;
}

}  // namespace trainyard
