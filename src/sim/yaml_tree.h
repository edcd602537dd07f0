// SPDX-License-Identifier: Apache-2.0
// YAML text as a tree of plain values with their places, within limits that keep hostile or broken
// input from costing time, memory or stack. Only the files of sim/config.h include this.
//
// Aliases are expanded into copies: every value has one path, so that reading it, or replacing it
// with --set, touches no other.
#pragma once

#include <cstddef>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {

// The place where a value was written: an origin of the tree and, in a file, line and column from 1
// (0 where only the origin is known).
struct Place {
  std::size_t origin = 0;
  int line = 0;
  int column = 0;
};

struct YamlValue;

struct YamlEntry {
  std::string key;
  Place place;  // Place of the key.
  YamlValue* value = nullptr;
};

struct YamlValue {
  enum class Kind { Null, Scalar, Sequence, Mapping };

  Kind kind = Kind::Null;
  Place place;
  std::string text = {};                // Text of a scalar.
  std::vector<YamlValue*> items = {};   // Items of a sequence.
  std::vector<YamlEntry> entries = {};  // Entries of a mapping, in file order; no key twice.

  bool composed = false;  // The base of this mapping is in it already.

  // Keys that readers asked of this value so far.
  std::vector<std::string> asked_keys = {};
  bool all_keys_asked = false;
  bool skipped = false;

  [[nodiscard]] YamlEntry* find(std::string_view key);
  [[nodiscard]] bool asked(std::string_view key) const;
};

class YamlTree {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMaxDepth = 64;          // Collections within collections.
  static constexpr std::size_t kMaxValues = 1'000'000;  // After aliases are expanded.

  // `name` represents the file in errors: it is origin 0.
  explicit YamlTree(std::string name) : origins_{{std::move(name), true}} {}

  // Another source of values, such as "--set server.nics=4". Its values have no line.
  [[nodiscard]] std::size_t add_origin(std::string description);
  // Another file; its values have lines.
  [[nodiscard]] std::size_t add_file(std::string name);
  // The name of the file that `origin` is, or nothing.
  [[nodiscard]] std::string_view file_name(std::size_t origin) const;

  // Parses one document; throws ConfigError. Text without a document gives a null.
  [[nodiscard]] YamlValue* parse(const std::string& text, std::size_t origin);

  // A new value, owned by the tree; its address never changes.
  [[nodiscard]] YamlValue* add(YamlValue value);

  // "FILE:LINE:COLUMN", or what an origin without lines is called.
  [[nodiscard]] std::string text_of(Place place) const;
  // Throws "PLACE: PATH: MESSAGE", without the path where it is empty.
  [[noreturn]] void fail(Place place, std::string_view path, std::string_view message) const;

  YamlValue* root = nullptr;

 private:
  struct Origin {
    std::string name;
    bool is_file = false;
  };

  std::vector<Origin> origins_;
  std::deque<YamlValue> values_;
};

// "server" and "nics" give "server.nics"; "nics" and 2 give "nics[2]".
[[nodiscard]] std::string join_path(std::string_view parent, std::string_view key);
[[nodiscard]] std::string join_path(std::string_view parent, std::size_t index);

}  // namespace trainyard
