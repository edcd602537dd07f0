// SPDX-License-Identifier: Apache-2.0
// Strict reading of YAML. Every value carries its place; a key that nobody reads is an error.
//
//   ConfigDocument document = ConfigDocument::load("clusters/mine.yaml");
//   const ConfigNode root = document.root();
//   Bandwidth rate = root.required("nic").required("bandwidth").as_bandwidth();
//   document.finish();   // throws if a key was not read
//
// All errors are ConfigError with one line:
//   clusters/mine.yaml:14:12: nic.bandwidth: expected a rate such as "400 Gb/s", found "400"
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "sim/units.h"

namespace trainyard {

class YamlTree;
struct YamlValue;

// A value of a document with its key path. Cheap to copy; valid as long as its document lives.
class ConfigNode {
 public:
  [[nodiscard]] bool is_map() const;
  [[nodiscard]] bool is_sequence() const;
  [[nodiscard]] bool is_scalar() const;
  [[nodiscard]] bool is_null() const;

  // The value under `key` of this mapping; an error if it is missing.
  [[nodiscard]] ConfigNode required(std::string_view key) const;
  // The value under `key` of this mapping, if it is there.
  [[nodiscard]] std::optional<ConfigNode> optional(std::string_view key) const;

  // Returns the index of the choice under `key`, 0 where it is missing.
  [[nodiscard]] std::size_t choice_or_first(std::string_view key,
                                            std::span<const std::string_view> choices) const;

  // Scalars. Each throws ConfigError naming what was expected and what was found. The quantities
  // need their unit and must be positive (times and bytes may be zero).
  [[nodiscard]] std::string as_string() const;
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::int64_t as_integer(std::int64_t min, std::int64_t max) const;
  [[nodiscard]] double as_number(double min, double max) const;
  [[nodiscard]] SimTime as_time() const;
  [[nodiscard]] Bytes as_bytes() const;
  [[nodiscard]] Bandwidth as_bandwidth() const;
  [[nodiscard]] FlopRate as_flop_rate() const;
  // The index of the scalar in `choices`; the error lists them and suggests the nearest.
  [[nodiscard]] std::size_t as_choice(std::span<const std::string_view> choices) const;

  // The elements of this sequence.
  [[nodiscard]] std::vector<ConfigNode> items() const;
  // The entries of this mapping whose keys are free names, in file order; all count as read.
  [[nodiscard]] std::vector<std::pair<std::string, ConfigNode>> entries() const;
  // Accepts everything below this node without reading it (documentation such as sources).
  void skip() const;

  // Throws "FILE:LINE:COLUMN: PATH: expected EXPECTED, found FOUND".
  [[noreturn]] void fail(std::string_view expected, std::string_view found) const;
  // The same with free text: "FILE:LINE:COLUMN: PATH: MESSAGE".
  [[noreturn]] void fail(std::string_view message) const;
  // Describes the value as an error would: its text in quotes, "a mapping", "a sequence",
  // "nothing".
  [[nodiscard]] std::string found() const;
  [[nodiscard]] const std::string& path() const { return path_; }
  // "FILE:LINE:COLUMN", or "--set PATH=VALUE".
  [[nodiscard]] std::string place() const;

 private:
  friend class ConfigDocument;
  ConfigNode(const YamlTree& tree, YamlValue& value, std::string path);

  // The text of this scalar; fails with "expected EXPECTED" for anything else.
  [[nodiscard]] const std::string& scalar(std::string_view expected) const;
  // This scalar read by `parse`, whose UnitError becomes this node's error.
  template <typename Parse>
  [[nodiscard]] auto quantity(Parse parse, std::string_view expected) const;
  // Fails at the place of an unread key that was likely meant to be `key`, or at the mapping.
  [[noreturn]] void fail_missing(std::string_view key) const;

  const YamlTree* tree_;
  YamlValue* value_;  // Also remembers what was asked of it, which `finish` looks at.
  std::string path_;
};

// No value of a file: tags are refused.
inline constexpr std::string_view kAbsent = "!absent";

class ConfigDocument {
 public:
  // Reads a file. Refused with a clear line: a missing or unreadable file, a directory, an empty
  // file, more than 16 MiB, bytes that are not UTF-8, nesting deeper than 64 levels, aliases that
  // expand to more than a million values, a key given twice, several documents in one file.
  [[nodiscard]] static ConfigDocument load(const std::filesystem::path& file);
  // The same for text; `name` represents the file in errors.
  [[nodiscard]] static ConfigDocument parse(const std::string& text, std::string name);

  ConfigDocument(const ConfigDocument&) = delete;
  ConfigDocument& operator=(const ConfigDocument&) = delete;
  ConfigDocument(ConfigDocument&&) noexcept;
  ConfigDocument& operator=(ConfigDocument&&) noexcept;
  ~ConfigDocument();

  [[nodiscard]] ConfigNode root();
  [[nodiscard]] const std::string& name() const { return name_; }

  // Replaces or adds the value at a dotted path ("server.nics", "fabric.tiers.0.ratio") with YAML
  // text; what --set does. A name on the way becomes a mapping with it as `base`.
  // The value kAbsent leaves the key out instead, which must be there.
  // Errors about the value give `origin` as its place, or "--set PATH=VALUE" if that is empty.
  void set(std::string_view path, std::string_view value, std::string origin = {});

  // Puts the mapping of another file in the place of `node`, where that is a name, or below it,
  // where it is a mapping with the key `base`: keys of `node` replace those of the base, whole. A
  // name represents FOLDER/NAME.yaml; with a folder or ".yaml" it is a file, relative to the one
  // that names it. The other file must have a key `source`, which is left out here, or `sources`,
  // to which those of `node` are added, and may have a base of its own.
  // Errors about its values name that file and line. Does nothing to any other mapping.
  void compose(const ConfigNode& node, const std::filesystem::path& folder);

  // Throws for the first key, in file order, that nobody asked for, suggesting the nearest one that
  // was asked for in the same place.
  void finish() const;

 private:
  ConfigDocument(const std::string& text, std::string name);

  std::string name_;
  std::unique_ptr<YamlTree> tree_;
};

// The nearest of `candidates` to `word` by edit distance, if near enough to be a likely typo.
[[nodiscard]] std::optional<std::string> nearest_word(std::string_view word,
                                                      std::span<const std::string> candidates);

// The end of an error about an unknown word: "; did you mean "NEAREST"?", or `otherwise` where no
// candidate is near.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string> candidates,
                                       std::string_view otherwise = "");

}  // namespace trainyard
