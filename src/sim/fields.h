// SPDX-License-Identifier: Apache-2.0
// Tables of fields: rows that bind the keys of a mapping to the members of a struct. A function
// lists the rows once, and reader, schema and key list of a file follow from them:
//
//   void patch_fields(Fields& fields, Patches& patches) {
//     fields.required("size", patches.size, Whole{1, 8192}, "Edge of a patch.");
//     fields.optional("class_token", patches.has_class_token, Flag{}, "One more token.");
//     fields.check([&](const ConfigNode& node) { ... node.required("size").fail(...) ... });
//   }
//
//   read_fields(document.root(), patches, patch_fields);   // Strict, with the errors of config.h.
//   schema_of<Patches>(patch_fields);                      // Nothing is read; see schema.h.
//
// The same rows run in both cases, so that a function of rows changes nothing but its struct. An
// optional field that is missing keeps the value that the struct has.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/config.h"
#include "sim/schema.h"

namespace trainyard {

// Kinds of what cited values rest on, in the order of Evidence (hw/parts/catalogue.h).
inline constexpr std::array<std::string_view, 5> kKindsOfEvidence{
    "datasheet", "measured", "shipped", "secondary", "estimate"};

// The member itself, or the value of an optional one, made by default.
template <typename Value>
Value& held(Value& value) {
  return value;
}
template <typename Value>
Value& held(std::optional<Value>& value) {
  return value.emplace();
}
template <typename Value>
using Held = std::remove_cvref_t<decltype(held(std::declval<Value&>()))>;

template <typename Kind>
struct Named;

class Fields {
 public:
  explicit Fields(const ConfigNode& node) : node_(node) {}
  explicit Fields(Schema& schema) : schema_(&schema) { schema.is_map = true; }
  // The fields of a mapping below `parent`, whose sources they may cite.
  Fields(const Fields& parent, const ConfigNode& node)
      : node_(node), keeps_missing_(parent.keeps_missing_), sources_(parent.sources_) {}

  // From now on a required field that is missing keeps the value that the struct has, too.
  void keep_missing() { keeps_missing_ = true; }

  // A row: key, member, kind of the value and what it means, in a sentence.
  template <typename Value, typename Kind>
  void required(std::string_view key, Value& value, const Kind& kind, std::string_view text) {
    if (schema_ != nullptr) {
      describe_value(kind, schema_->add(key, text, !in_branch_ && !keeps_missing_), value);
      return;
    }
    if (!keeps_missing_ || node_->optional(key)) {
      read_value(kind, node_->required(key), value);
    }
  }
  // Returns whether the key is there.
  template <typename Value, typename Kind>
  bool optional(std::string_view key, Value& value, const Kind& kind, std::string_view text) {
    if (schema_ != nullptr) {
      describe_value(kind, schema_->add(key, text, false), value);
      return false;
    }
    const std::optional<ConfigNode> found = node_->optional(key);
    if (found) {
      read_value(kind, *found, value);
    }
    return found.has_value();
  }

  // Instead of rows: each key is a free name of a value of one kind; the member is a std::map.
  template <typename Value, typename Kind>
  void named(Value& map, const Kind& of) {
    if (schema_ != nullptr) {
      Named<Kind>{of}.describe(*schema_, map);
    } else {
      read_value(Named<Kind>{of}, *node_, map);
    }
  }

  // Runs `rows` where the condition holds. The schema requires no key of them.
  template <typename Rows>
  void where(bool holds, Rows rows) {
    if (holds || schema_ != nullptr) {
      const bool before = std::exchange(in_branch_, true);
      rows();
      in_branch_ = before;
    }
  }
  // Calls `check(node)` where a file is read.
  template <typename Check>
  void check(Check check) const {
    if (node_) {
      check(*node_);
    }
  }

  // A row `sources`: citations by short keys, to which the sourced values of this mapping and of
  // those below it refer.
  void cite_sources();
  // A row `source`: one of them.
  void cited_source();
  // Rows `evidence`, `source` and `note`, which stand beside sourced values, and perhaps `fit`.
  void evidence(bool may_have_fit = false);

  // Read a value of some kind below this mapping; describe it.
  template <typename Kind, typename Value>
  void read_value(const Kind& kind, const ConfigNode& node, Value& value) const {
    if constexpr (requires { kind.value(node); }) {
      held(value) = static_cast<Held<Value>>(kind.value(node));
    } else {
      kind.read(*this, node, value);
    }
  }
  template <typename Kind, typename Value>
  static void describe_value(const Kind& kind, Schema& schema, Value& value) {
    if constexpr (requires { kind.describe(schema); }) {
      kind.describe(schema);
    } else {
      kind.describe(schema, value);
    }
  }

 private:
  std::optional<ConfigNode> node_ = {};  // One of the two.
  Schema* schema_ = nullptr;
  bool in_branch_ = false;
  bool keeps_missing_ = false;
  std::vector<std::string> sources_ = {};
};

// Kinds of plain values, in the units and with the errors of ConfigNode.
struct Text {
  [[nodiscard]] static std::string value(const ConfigNode& node) { return node.as_string(); }
  static void describe(Schema& schema);
};
struct Flag {
  [[nodiscard]] static bool value(const ConfigNode& node) { return node.as_bool(); }
  static void describe(Schema& schema);
};
struct Whole {
  std::int64_t min = 0;
  std::int64_t max = 0;
  [[nodiscard]] std::int64_t value(const ConfigNode& node) const {
    return node.as_integer(min, max);
  }
  void describe(Schema& schema) const;
};
struct Number {
  double min = 0.0;
  double max = 0.0;
  [[nodiscard]] double value(const ConfigNode& node) const { return node.as_number(min, max); }
  void describe(Schema& schema) const;
};
struct Duration {
  [[nodiscard]] static SimTime value(const ConfigNode& node) { return node.as_time(); }
  static void describe(Schema& schema);
};
struct Amount {
  [[nodiscard]] static Bytes value(const ConfigNode& node) { return node.as_bytes(); }
  static void describe(Schema& schema);
};
// The same above zero.
struct SomeTime : Duration {
  [[nodiscard]] static SimTime value(const ConfigNode& node);
};
struct SomeAmount : Amount {
  [[nodiscard]] static Bytes value(const ConfigNode& node);
};
struct Rate {
  [[nodiscard]] static Bandwidth value(const ConfigNode& node) { return node.as_bandwidth(); }
  static void describe(Schema& schema);
};
struct Flops {
  [[nodiscard]] static FlopRate value(const ConfigNode& node) { return node.as_flop_rate(); }
  static void describe(Schema& schema);
};
// One of some names; the member is an enumerator, or a flag, of the value of the name's index.
struct Choice {
  std::span<const std::string_view> names;
  [[nodiscard]] std::size_t value(const ConfigNode& node) const { return node.as_choice(names); }
  void describe(Schema& schema) const;
};
// The names of the rows of a table, for Choice.
template <typename Row, std::size_t kRows>
[[nodiscard]] constexpr std::array<std::string_view, kRows> row_names(
    const std::array<Row, kRows>& rows) {
  std::array<std::string_view, kRows> names;
  std::ranges::transform(rows, names.begin(), [](const Row& row) { return row.name; });
  return names;
}

// A value, or the word "off", which is 0.
[[nodiscard]] bool is_off(const ConfigNode& node);
template <typename Kind>
struct OrOff {
  Kind of;
  [[nodiscard]] auto value(const ConfigNode& node) const {
    return is_off(node) ? decltype(of.value(node)){} : of.value(node);
  }
  void describe(Schema& schema) const {
    static constexpr std::array<std::string_view, 1> kOff{"off"};
    Choice{kOff}.describe(schema.alternatives.emplace_back());
    of.describe(schema.alternatives.emplace_back());
  }
};
template <typename Kind>
OrOff(Kind) -> OrOff<Kind>;
// Documentation, which nobody reads; the member is std::ignore.
struct Unread {
  template <typename Value>
  void read(const Fields& /*parent*/, const ConfigNode& node, Value& /*value*/) const {
    node.skip();
  }
  template <typename Value>
  void describe(Schema& /*schema*/, Value& /*value*/) const {}
};

// Stands for a member where one is only described.
struct Undetermined {
  using value_type = std::string;
  using mapped_type = std::string;
};

// A value of one of two kinds, for Via alone.
template <typename First, typename Second>
struct Either {
  First first;
  Second second;
  void describe(Schema& schema) const {
    Undetermined nothing;
    Fields::describe_value(first, schema.alternatives.emplace_back(), nothing);
    Fields::describe_value(second, schema.alternatives.emplace_back(), nothing);
  }
};
template <typename First, typename Second>
Either(First, Second) -> Either<First, Second>;

// A value that `function` takes from the node, described as another kind.
template <typename Kind, typename Function>
struct Via {
  Kind kind;
  Function function;
  [[nodiscard]] auto value(const ConfigNode& node) const { return function(node); }
  void describe(Schema& schema) const {
    Undetermined nothing;
    Fields::describe_value(kind, schema, nothing);
  }
};
template <typename Kind, typename Function>
Via(Kind, Function) -> Via<Kind, Function>;

// A mapping that `rows(fields, member)` reads.
template <typename Rows>
struct Group {
  Rows rows;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    Fields fields(parent, node);
    rows(fields, held(value));
  }
  template <typename Value>
  void describe(Schema& schema, Value& /*value*/) const {
    Held<Value> nothing{};
    Fields fields(schema);
    rows(fields, nothing);
  }
};
template <typename Rows>
Group(Rows) -> Group<Rows>;

// The same, or the name of a file with it, or a mapping with `base`, such a name, and what differs.
// ConfigDocument::compose has put the file in its place before it is read.
template <typename Rows>
struct Composed {
  Rows rows;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    Group{rows}.read(parent, node, value);
  }
  template <typename Value>
  void describe(Schema& schema, Value& value) const {
    Text::describe(schema.alternatives.emplace_back());
    Schema& inner = schema.alternatives.emplace_back();
    Group{rows}.describe(inner, value);
    for (SchemaKey& key : inner.keys) {
      key.is_required = false;
    }
    Text::describe(inner.add("base", "File whose values hold where none is given here.", false));
  }
};
template <typename Rows>
Composed(Rows) -> Composed<Rows>;

// A sequence of values of one kind.
template <typename Kind>
struct List {
  Kind of;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    auto& list = held(value);
    for (const ConfigNode& item : node.items()) {
      parent.read_value(of, item, list.emplace_back());
    }
  }
  template <typename Value>
  void describe(Schema& schema, Value& /*value*/) const {
    typename Held<Value>::value_type nothing{};
    Fields::describe_value(of, schema.items.emplace_back(), nothing);
  }
};
template <typename Kind>
List(Kind) -> List<Kind>;

// A mapping from free names to values of one kind; the member is a std::map, or a vector of pairs
// in the order of the file.
template <typename Kind>
struct Named {
  Kind of;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    auto& map = held(value);
    for (const auto& [name, entry] : node.entries()) {
      if constexpr (requires { typename Held<Value>::mapped_type; }) {
        parent.read_value(of, entry, map[name]);
      } else {
        map.emplace_back().first = name;
        parent.read_value(of, entry, map.back().second);
      }
    }
  }
  template <typename Value>
  void describe(Schema& schema, Value& /*value*/) const {
    schema.is_map = true;
    Schema& named = schema.named.emplace_back();
    if constexpr (requires { typename Held<Value>::mapped_type; }) {
      typename Held<Value>::mapped_type nothing{};
      Fields::describe_value(of, named, nothing);
    } else {
      typename Held<Value>::value_type::second_type nothing{};
      Fields::describe_value(of, named, nothing);
    }
  }
};
template <typename Kind>
Named(Kind) -> Named<Kind>;

// {value, evidence, source, note}, below a mapping that cites its sources.
template <typename Kind>
struct Cited {
  Kind of;
  bool may_have_fit = false;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    Fields(parent, node).evidence(may_have_fit);
    parent.read_value(of, node.required("value"), value);
  }
  template <typename Value>
  void describe(Schema& schema, Value& value) const {
    Schema& inner = schema.add("value", "The value.", true);
    Fields::describe_value(of, inner, value);
    schema.words = inner.words;
    schema.is_cited = true;
    Fields(schema).evidence(may_have_fit);
  }
};
template <typename Kind>
Cited(Kind) -> Cited<Kind>;

template <typename Value, typename Rows>
void read_fields(const ConfigNode& node, Value& value, Rows rows) {
  Fields fields(node);
  rows(fields, value);
}

template <typename Value, typename Rows>
[[nodiscard]] Schema schema_of(Rows rows) {
  Schema schema;
  Value nothing{};
  Fields fields(schema);
  rows(fields, nothing);
  return schema;
}

}  // namespace trainyard
