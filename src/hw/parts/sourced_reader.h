// SPDX-License-Identifier: Apache-2.0
// Reading of values that say where they come from: {value, evidence, source, note}, with the
// citations under `sources` of the same file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/config.h"

namespace trainyard {

class SourcedReader {
 public:
  // `root` is the mapping with the key `sources`.
  explicit SourcedReader(const ConfigNode& root);

  // Returns the node under `value` of the entry `key` of `parent`. Throws ConfigError where the
  // entry, its evidence (datasheet, measured, shipped, secondary, estimate) or its source is
  // missing or unknown.
  [[nodiscard]] ConfigNode value(const ConfigNode& parent, std::string_view key) const;
  // The same check for a mapping that has `evidence` and `source` beside its values.
  void check(const ConfigNode& entry) const;

 private:
  std::vector<std::string> sources_;
};

// A size or a time above zero; throws ConfigError for another one.
[[nodiscard]] Bytes some_bytes(const ConfigNode& value);
[[nodiscard]] SimTime some_time(const ConfigNode& value);

// Returns whether the value is the word "off".
[[nodiscard]] bool is_off(const ConfigNode& value);

}  // namespace trainyard
