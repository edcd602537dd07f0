// SPDX-License-Identifier: Apache-2.0
// The parts of the schema as JSON values, for result_set.cpp alone: the JSON library is large.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "calibrate/machine.h"
#include "calibrate/samples.h"

namespace trainyard::calibrate {

using Json = nlohmann::ordered_json;

// Reads an object strictly. Throws std::runtime_error "PLACE: expected ..., found ...".
class ObjectReader {
 public:
  // The object may have these keys and must have all of them.
  ObjectReader(const Json& json, std::string place, std::initializer_list<std::string_view> keys);

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] const Json& value(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t min) const;
  [[nodiscard]] double number(std::string_view key) const;  // Finite.
  [[nodiscard]] const Json& array(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, std::string_view expected) const;

 private:
  const Json& json_;
  std::string place_;
};

[[nodiscard]] Json to_json(const Machine& machine);
[[nodiscard]] Json to_json(const Sample& sample);
[[nodiscard]] Json to_json(const Record& record);
[[nodiscard]] Machine read_machine(const Json& json, const std::string& place);
[[nodiscard]] Sample read_sample(const Json& json, const std::string& place);
[[nodiscard]] Record read_record(const Json& json, const std::string& place);

}  // namespace trainyard::calibrate
