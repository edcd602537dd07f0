// SPDX-License-Identifier: Apache-2.0
// What the packet engine is told beside the topology. docs/packet.md says what each means.
#pragma once

#include <cstdint>

#include "hw/rdma_packet.h"
#include "sim/units.h"

namespace trainyard {

// When a switch of the fabric hands a packet to its next port: once it has all of it, or once it has
// the header and the next port cannot run out of bytes.
enum class Forwarding : std::uint8_t { StoreAndForward, CutThrough };

// What the bandwidth of a link in the topology is: what a long transfer of full packets gets, as
// LinkSpec says it, or the rate of the line, of which headers take their part.
enum class RateMeaning : std::uint8_t { Payload, Line };

struct PacketOptions {
  Bytes mtu{4096};  // Payload of a full packet.
  RdmaFraming framing = {};
  RdmaVerb verb = RdmaVerb::Write;  // Send or Write.
  RateMeaning rates = RateMeaning::Payload;
  Forwarding forwarding = Forwarding::StoreAndForward;
};

// Bytes that a switch or adapter reads of a packet before it can send it on.
inline constexpr std::int64_t kCutThroughBytes = 72;

}  // namespace trainyard
