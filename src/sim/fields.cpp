// SPDX-License-Identifier: Apache-2.0
#include "sim/fields.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <limits>
#include <map>
#include <tuple>

namespace trainyard {
namespace {

// "1 to 8", "at least 1", "at most 8" or nothing, for docs, and the members of a JSON Schema.
template <typename Value>
void describe_range(std::string_view type, Value min, Value max, Schema& schema) {
  const bool has_min = min > std::numeric_limits<Value>::lowest();
  const bool has_max = max < std::numeric_limits<Value>::max();
  schema.limits = fmt::format("\"type\": \"{}\"", type);
  schema.limits += has_min ? fmt::format(", \"minimum\": {}", min) : "";
  schema.limits += has_max ? fmt::format(", \"maximum\": {}", max) : "";
  schema.words = has_min && has_max ? fmt::format("{} to {}", min, max)
                 : has_min          ? fmt::format("at least {}", min)
                 : has_max          ? fmt::format("at most {}", max)
                                    : "";
}

// Zero needs no unit.
void describe_quantity(std::string_view units, std::string_view example, Schema& schema) {
  schema.limits = fmt::format(
      "\"type\": [\"string\", \"integer\"], \"pattern\": \"^[0-9].*({})$\", \"maximum\": 0", units);
  schema.words = fmt::format("such as `{}`", example);
}

}  // namespace

void Fields::cite_sources() {
  constexpr std::string_view kText = "Citations by short keys, to which values refer.";
  std::map<std::string, std::string> citations;
  required("sources", citations, Named{Text{}}, kText);
  check([&](const ConfigNode& node) {
    for (const auto& [name, citation] : node.required("sources").entries()) {
      sources_.push_back(name);
    }
  });
}

void Fields::cited_source() {
  const std::vector<std::string_view> names(sources_.begin(), sources_.end());
  const auto index = [&](const ConfigNode& node) { return node.as_choice(names); };
  std::size_t source = 0;
  required("source", source, Via{Text{}, index}, "A key of `sources`.");
}

void Fields::evidence(bool may_have_fit) {
  std::size_t index = 0;
  std::string text;
  required("evidence", index, Choice{kKindsOfEvidence}, "What the value rests on.");
  cited_source();
  optional("note", text, Text{}, "A remark.");
  if (may_have_fit) {
    optional("fit", std::ignore, Unread{}, "The report of a fit.");
  }
}

// YAML reads some texts as numbers.
void Text::describe(Schema& schema) {
  schema.limits = "\"type\": [\"string\", \"number\", \"boolean\"]";
}

void Flag::describe(Schema& schema) {
  schema.limits = "\"type\": \"boolean\"";
  schema.words = "`true` or `false`";
}

void Whole::describe(Schema& schema) const {
  describe_range("integer", min, max, schema);
}

void Number::describe(Schema& schema) const {
  describe_range("number", min, max, schema);
}

void Duration::describe(Schema& schema) {
  describe_quantity("s", "130 ns", schema);
}

void Amount::describe(Schema& schema) {
  describe_quantity("B", "25 MiB", schema);
}

Bytes SomeAmount::value(const ConfigNode& node) {
  const Bytes size = node.as_bytes();
  if (size <= Bytes(0)) {
    node.fail("a size above zero", node.found());
  }
  return size;
}

SimTime SomeTime::value(const ConfigNode& node) {
  const SimTime time = node.as_time();
  if (time <= SimTime()) {
    node.fail("a time above zero", node.found());
  }
  return time;
}

bool is_off(const ConfigNode& node) {
  return node.is_scalar() && node.as_string() == "off";
}

void Rate::describe(Schema& schema) {
  describe_quantity("/s", "400 Gb/s", schema);
}

void Flops::describe(Schema& schema) {
  describe_quantity("FLOP/s", "989 TFLOP/s", schema);
}

void Choice::describe(Schema& schema) const {
  std::string list;
  for (const std::string_view name : names) {
    list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", name);
    schema.words += fmt::format("{}`{}`", schema.words.empty() ? "" : ", ", name);
  }
  schema.limits = "\"enum\": [" + list + "]";
}

}  // namespace trainyard
