// SPDX-License-Identifier: Apache-2.0
// Options and runs of the packet engine that tests have in common.
#pragma once

#include <vector>

#include "network/packet/packet_engine.h"

namespace trainyard {

// Rates are those of the line and no message has more headers than another, so that times are easy
// to say. No flow control, no marks, no congestion control, no ACKs.
[[nodiscard]] inline PacketOptions line_options() {
  PacketOptions options;
  options.verb = RdmaVerb::Send;
  options.rates = RateMeaning::Line;
  return options;
}

// The same with PFC and this much buffer in every switch.
[[nodiscard]] inline PacketOptions lossless_options(Bytes buffer) {
  PacketOptions options = line_options();
  options.pfc = true;
  options.buffer = buffer;
  return options;
}

// Those of the line with this rule for what is lost, and an ACK for every 16th packet.
[[nodiscard]] inline PacketOptions recovering_options(Retransmission retransmission) {
  PacketOptions options = line_options();
  options.retransmission = retransmission;
  options.packets_per_ack = 16;
  return options;
}

// All windows in which anything is due.
inline std::vector<PacketEngine::Completion> run_windows(PacketEngine& engine) {
  std::vector<PacketEngine::Completion> completions;
  while (engine.next_border() != kNeverTime) {
    engine.run_window(completions);
  }
  return completions;
}

}  // namespace trainyard
