// SPDX-License-Identifier: Apache-2.0
// Reads the values of one file of configs/transport/control, each with its source.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "hw/control/control_terms.h"
#include "hw/parts/sourced_reader.h"
#include "sim/config.h"

namespace trainyard {

// All functions throw ConfigError for a value that is missing or not of its kind.
class ControlReader {
 public:
  static constexpr int kMany = 1000;

  explicit ControlReader(const ConfigNode& root) : root_(root), sourced_(root) {}

  [[nodiscard]] ConfigNode node(std::string_view key) const { return sourced_.value(root_, key); }
  [[nodiscard]] double number(std::string_view key, double least, double most) const {
    return node(key).as_number(least, most);
  }
  [[nodiscard]] double share(std::string_view key) const { return number(key, 0.0, 1.0); }
  [[nodiscard]] int count(std::string_view key, int least, int most) const {
    return static_cast<int>(node(key).as_integer(least, most));
  }
  [[nodiscard]] bool flag(std::string_view key) const { return node(key).as_bool(); }
  [[nodiscard]] SimTime time(std::string_view key) const { return node(key).as_time(); }
  // A time above zero.
  [[nodiscard]] SimTime some_time(std::string_view key) const {
    return trainyard::some_time(node(key));
  }
  [[nodiscard]] Bytes some_bytes(std::string_view key) const {
    return trainyard::some_bytes(node(key));
  }
  [[nodiscard]] RateRule rate(std::string_view key) const {
    RateRule rule{.rate = node(key).as_bandwidth()};
    if (const std::optional<ConfigNode> per = root_.required(key).optional("per")) {
      rule.per = per->as_bandwidth();
    }
    return rule;
  }
  // The index of one of `choices`.
  template <std::size_t N>
  [[nodiscard]] std::size_t choice(std::string_view key,
                                   const std::array<std::string_view, N>& choices) const {
    return node(key).as_choice(choices);
  }

 private:
  ConfigNode root_;
  SourcedReader sourced_;
};

}  // namespace trainyard
