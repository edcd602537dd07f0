// SPDX-License-Identifier: Apache-2.0
#include "hw/control/timely.h"

#include <algorithm>

#include "hw/control/control_fields.h"

namespace trainyard {

void TimelyControl::fields(Fields& fields, TimelyProfile& profile) {
  TimelySettings& settings = profile.settings;
  fields.required("weight", settings.weight, control::kShare,
                  "Weight of a new difference of RTTs.");
  fields.required("beta", settings.beta, control::kShare, "Strength of a decrease.");
  fields.required("low", settings.low, control::kSomeTime, "The RTT below which rates only grow.");
  fields.required("high", settings.high, control::kSomeTime,
                  "The RTT above which rates only fall.");
  fields.check([&](const ConfigNode& node) {
    if (settings.high < settings.low) {
      const ConfigNode high = node.required("high").required("value");
      high.fail("a time not below `low`", high.found());
    }
  });
  fields.required("least_rtt", settings.min_rtt, control::kSomeTime,
                  "The RTT that differences are divided by.");
  fields.required("hyper_after", settings.hyper_after, control::kCount,
                  "Increases before they grow faster.");
  fields.required("hyper_steps", settings.hyper_steps, Cited{Number{1.0, control::kMany}},
                  "Additive steps of such an increase.");
  fields.required("segment", settings.segment, control::kSomeBytes, "Bytes of one measurement.");
  fields.required("additive_increase", profile.additive, control::PerRate{}, "An additive step.");
  fields.required("least_rate", profile.min, control::PerRate{}, "No decrease goes below.");
}

TimelySettings TimelyControl::settings(const TimelyProfile& profile, const PortTerms& port) {
  TimelySettings settings = profile.settings;
  settings.line = port.line;
  settings.additive = profile.additive.at(port.line);
  settings.min = std::min(profile.min.at(port.line), port.line);
  return settings;
}

}  // namespace trainyard
