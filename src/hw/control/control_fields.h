// SPDX-License-Identifier: Apache-2.0
// Kinds of values in the tables of fields of configs/transport/control; each has its source.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/fields.h"

namespace trainyard::control {

inline constexpr int kMany = 1000;
inline constexpr Cited kShare{Number{0.0, 1.0}};
inline constexpr Cited kFactor{Number{0.0, kMany}};
inline constexpr Cited kSomeFactor{Number{1e-3, kMany}};
inline constexpr Cited kCount{Whole{1, kMany}};
inline constexpr Cited kPackets{Number{1.0, 1e6}};
inline constexpr Cited kFlag{Flag{}};
inline constexpr Cited kTime{Duration{}};
inline constexpr Cited kSomeTime{SomeTime{}};
inline constexpr Cited kSomeBytes{SomeAmount{}};

// A rate, and perhaps `per`, the rate of the port that it is for.
struct PerRate {
  static constexpr std::string_view kPer = "The rate of the port that it is for: any.";
  static void read(const Fields& parent, const ConfigNode& node, RateRule& rule) {
    Cited{Rate{}}.read(parent, node, rule.rate);
    Fields(parent, node).optional("per", rule.per, Rate{}, kPer);
  }
  static void describe(Schema& schema, RateRule& rule) {
    Cited{Rate{}}.describe(schema, rule.rate);
    Fields(schema).optional("per", rule.per, Rate{}, kPer);
  }
};

}  // namespace trainyard::control
