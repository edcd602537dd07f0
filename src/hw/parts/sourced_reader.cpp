// SPDX-License-Identifier: Apache-2.0
#include "hw/parts/sourced_reader.h"

#include <array>
#include <optional>

namespace trainyard {

SourcedReader::SourcedReader(const ConfigNode& root) {
  for (const auto& [name, citation] : root.required("sources").entries()) {
    static_cast<void>(citation.as_string());
    sources_.push_back(name);
  }
}

void SourcedReader::check(const ConfigNode& entry) const {
  static constexpr std::array<std::string_view, 5> kEvidences{"datasheet", "measured", "shipped",
                                                              "secondary", "estimate"};
  static_cast<void>(entry.required("evidence").as_choice(kEvidences));
  const std::vector<std::string_view> names(sources_.begin(), sources_.end());
  static_cast<void>(entry.required("source").as_choice(names));
  if (const std::optional<ConfigNode> note = entry.optional("note")) {
    static_cast<void>(note->as_string());
  }
}

ConfigNode SourcedReader::value(const ConfigNode& parent, std::string_view key) const {
  const ConfigNode entry = parent.required(key);
  check(entry);
  return entry.required("value");
}

bool is_off(const ConfigNode& value) {
  return value.is_scalar() && value.as_string() == "off";
}

Bytes some_bytes(const ConfigNode& value) {
  const Bytes size = value.as_bytes();
  if (size <= Bytes(0)) {
    value.fail("a size above zero", value.found());
  }
  return size;
}

SimTime some_time(const ConfigNode& value) {
  const SimTime time = value.as_time();
  if (time <= SimTime()) {
    value.fail("a time above zero", value.found());
  }
  return time;
}

}  // namespace trainyard
