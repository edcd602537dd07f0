// SPDX-License-Identifier: Apache-2.0
// No control at all: the line rate, for ever. What fabrics run that leave it to PFC or credits.
#pragma once

#include <string_view>

#include "hw/control/control_terms.h"

namespace trainyard {

struct NoControlProfile {};

struct LineRateSettings {};

struct LineRate {
  explicit LineRate(const LineRateSettings& /*settings*/) {}
};

struct NoControl : ControlDefaults {
  using Profile = NoControlProfile;
  using Settings = LineRateSettings;
  using Sender = LineRate;
  static constexpr std::string_view kName = "none";

  static void fields(Fields& /*fields*/, NoControlProfile& /*profile*/) {}
  static LineRateSettings settings(const NoControlProfile& /*profile*/, const PortTerms& /*port*/) {
    return {};
  }
  static ControlTraits traits(const NoControlProfile& /*profile*/) { return {}; }
};

}  // namespace trainyard
