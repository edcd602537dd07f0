// SPDX-License-Identifier: Apache-2.0
// Reads execution plans of MSCCL++: a value of the file with its place, which errors name.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {

inline constexpr std::int64_t kMaxPlanNumber = 65'536;

// A value of the file and its place there.
class PlanNode {
 public:
  PlanNode(const nlohmann::json& value, std::string place, const std::string& name)
      : value_(value), place_(std::move(place)), name_(name) {}

  [[nodiscard]] const std::string& place() const { return place_; }
  [[nodiscard]] std::size_t size() const { return value_.size(); }
  [[nodiscard]] bool has(const char* key) const {
    return value_.is_object() && value_.contains(key);
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view found) const {
    throw ConfigError(fmt::format("{}: {}{}expected {}, found {}", name_, place_,
                                  place_.empty() ? "" : ": ", expected, found));
  }
  [[noreturn]] void fail(std::string_view expected) const {
    fail(expected,
         value_.is_structured()
             ? (value_.is_array() ? "a list" : "an object")
             : shortened(value_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
  }

  [[nodiscard]] PlanNode at(const char* key) const {
    if (!has(key)) {
      fail(fmt::format("the key {}", key), "none");
    }
    return {value_[key], place_.empty() ? key : fmt::format("{}.{}", place_, key), name_};
  }
  [[nodiscard]] PlanNode list(const char* key) const {
    PlanNode node = at(key);
    if (!node.value_.is_array()) {
      node.fail("a list");
    }
    return node;
  }
  // One that need not be there.
  [[nodiscard]] std::vector<PlanNode> items(const char* key) const {
    std::vector<PlanNode> items;
    if (has(key)) {
      const PlanNode node = list(key);
      for (std::size_t index = 0; index < node.size(); ++index) {
        items.push_back(node[index]);
      }
    }
    return items;
  }
  [[nodiscard]] PlanNode operator[](std::size_t index) const {
    return {value_[index], fmt::format("{}[{}]", place_, index), name_};
  }
  [[nodiscard]] int whole(std::int64_t min = 0, std::int64_t max = kMaxPlanNumber) const {
    if (!value_.is_number_integer() || value_.get<std::int64_t>() < min ||
        value_.get<std::int64_t>() > max) {
      fail(fmt::format("a whole number from {} to {}", min, max));
    }
    return value_.get<int>();
  }
  [[nodiscard]] std::string text() const {
    if (!value_.is_string()) {
      fail("a text");
    }
    return value_.get<std::string>();
  }
  [[nodiscard]] bool flag() const {
    if (!value_.is_boolean()) {
      fail("true or false");
    }
    return value_.get<bool>();
  }
  // The value that a name has.
  template <typename Value, std::size_t Count>
  [[nodiscard]] Value one_of(
      const std::array<std::pair<std::string_view, Value>, Count>& names) const {
    const std::string word = text();
    const auto found = std::ranges::find(names, word, &std::pair<std::string_view, Value>::first);
    if (found == names.end()) {
      std::vector<std::string_view> known;
      for (const auto& [each, value] : names) {
        known.push_back(each);
      }
      fail(fmt::format("one of {}", fmt::join(known, ", ")));
    }
    return found->second;
  }

 private:
  const nlohmann::json& value_;
  std::string place_;
  const std::string& name_;
};

}  // namespace trainyard
