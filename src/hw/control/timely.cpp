// SPDX-License-Identifier: Apache-2.0
#include "hw/control/timely.h"

#include <algorithm>

#include "hw/control/control_reader.h"

namespace trainyard {

TimelyProfile TimelyControl::read(const ControlReader& reader) {
  TimelyProfile profile;
  TimelySettings& settings = profile.settings;
  settings.weight = reader.share("weight");
  settings.beta = reader.share("beta");
  settings.low = reader.some_time("low");
  settings.high = reader.some_time("high");
  if (settings.high < settings.low) {
    reader.node("high").fail("a time not below `low`", reader.node("high").found());
  }
  settings.least_rtt = reader.some_time("least_rtt");
  settings.hyper_after = reader.count("hyper_after", 1, ControlReader::kMany);
  settings.hyper_steps = reader.number("hyper_steps", 1.0, ControlReader::kMany);
  settings.segment = reader.some_bytes("segment");
  profile.additive = reader.rate("additive_increase");
  profile.least = reader.rate("least_rate");
  return profile;
}

TimelySettings TimelyControl::settings(const TimelyProfile& profile, const PortTerms& port) {
  TimelySettings settings = profile.settings;
  settings.line = port.line;
  settings.additive = profile.additive.at(port.line);
  settings.least = std::min(profile.least.at(port.line), port.line);
  return settings;
}

}  // namespace trainyard
