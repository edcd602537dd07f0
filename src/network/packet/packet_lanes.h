// SPDX-License-Identifier: Apache-2.0
// Classes of data on the links of the fabric. Each port has a queue for each class, PFC or a lack
// of credits stops each class alone, and a scheduler says whose packet goes next
// (hw/switch/priority_scheduler.h).
#pragma once

#include <array>
#include <cstdint>

#include "hw/switch/priority_scheduler.h"
#include "network/packet/packet_options.h"
#include "network/packet_parts/packet_port.h"

namespace trainyard {

struct LaneQueues {
  struct Lane {
    Ring<Packet> queue;
    std::int64_t queued_bytes = 0;    // Bytes of frames.
    std::uint32_t source = kNoIndex;  // Source of its own connections.
    bool own_turn = false;            // As of a port without lanes.
  };

  PriorityScheduler scheduler;
  std::array<Lane, LaneOptions::kLanes> lanes{};
  std::uint8_t paused = 0;   // Bit i: PFC has stopped lane i.
  std::uint8_t starved = 0;  // Bit i: lane i has no credits for the largest packet.
  std::uint8_t leaving = 0;  // The lane of Port::leaving.

  [[nodiscard]] bool is_stopped(std::uint32_t lane) const {
    return ((paused | starved) >> lane & 1U) != 0;
  }
};

}  // namespace trainyard
