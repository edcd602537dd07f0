// SPDX-License-Identifier: Apache-2.0
// The congestion controls that are shipped.
#pragma once

#include <filesystem>
#include <string>

#include "hw/control/control_profile.h"
#include "network/packet/packet_options.h"
#include "support/paths.h"

namespace trainyard {

inline ControlProfile shipped_control(const std::string& name) {
  return ControlProfile::load(source_dir() / "configs/transport/control" / (name + ".yaml"));
}

// Packets under one of them, without PFC and marks; rates are those of the line.
inline PacketOptions controlled_packets(const std::string& name) {
  PacketOptions options{.rates = RateMeaning::Line};
  options.control = CongestionControl::Profile;
  options.profile = shipped_control(name);
  return options;
}

}  // namespace trainyard
