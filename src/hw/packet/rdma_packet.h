// SPDX-License-Identifier: Apache-2.0
// The bytes that the packets of RDMA messages take on a wire.
//
// Wire bytes are all that takes time on the line. Sources of the sizes: InfiniBand Architecture
// Specification 1.4, chapters 5 and 9, its annex 17 (RoCEv2), IEEE 802.3 clauses 3 and 4.
// docs/models/transport.md has the tables.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace trainyard {

// The packets of a connection: those of SEND, which has no header of its own, those of WRITE, whose
// first one says where the data goes, and what answers them.
enum class RdmaOpcode : std::uint8_t { SendOnly, WriteLast, WriteOnly, Acknowledge, Cnp };

enum class RdmaVerb : std::uint8_t { Send, Write };

// The framing around the transport header of each packet of a network.
enum class RdmaLink : std::uint8_t { RoceV2, InfiniBand };

// Layer by layer.
inline constexpr std::int64_t kPreambleBytes = 8;
inline constexpr std::int64_t kInterFrameGapBytes = 12;
inline constexpr std::int64_t kEthernetHeaderBytes = 14;
inline constexpr std::int64_t kFrameCheckBytes = 4;
inline constexpr std::int64_t kMinFrameBytes = 64;  // From the header to the FCS.
inline constexpr std::int64_t kIpv4Bytes = 20;
inline constexpr std::int64_t kUdpBytes = 8;
inline constexpr std::int64_t kBthBytes = 12;
inline constexpr std::int64_t kInvariantCrcBytes = 4;
inline constexpr std::int64_t kLocalRouteBytes = 8;
inline constexpr std::int64_t kVariantCrcBytes = 2;
inline constexpr std::int64_t kCreditBlockBytes = 64;

// The five sizes that an RDMA path may use: 256, 512, 1024, 2048, 4096. Whatever is larger, such as
// the 9000 B of a jumbo frame, is no path MTU and only good for a what-if.
[[nodiscard]] constexpr bool is_path_mtu(Bytes mtu) {
  return mtu == Bytes(256) || mtu == Bytes(512) || mtu == Bytes(1024) || mtu == Bytes(2048) ||
         mtu == Bytes(4096);
}

// Bytes of the headers between BTH and payload: RETH 16, AETH 4, and the 16 reserved bytes of a
// CNP.
[[nodiscard]] constexpr std::int64_t extension_bytes(RdmaOpcode opcode) {
  constexpr std::int64_t kReth = 16;
  constexpr std::int64_t kAeth = 4;
  constexpr std::int64_t kCnpReserved = 16;
  switch (opcode) {
    case RdmaOpcode::SendOnly:
    case RdmaOpcode::WriteLast:
      return 0;
    case RdmaOpcode::WriteOnly:
      return kReth;
    case RdmaOpcode::Acknowledge:
      return kAeth;
    case RdmaOpcode::Cnp:
      return kCnpReserved;
  }
  return 0;
}

// The payload with its padding to whole words of four bytes.
[[nodiscard]] constexpr std::int64_t padded(Bytes payload) {
  return (payload.count() + 3) / 4 * 4;
}

// The frame or packet itself. RoCEv2: from the Ethernet header to the FCS, at least 64, which is
// what a switch stores. InfiniBand: from the LRH to the VCRC, which is what credits count.
[[nodiscard]] constexpr Bytes frame_bytes(RdmaLink link, RdmaOpcode opcode, Bytes payload) {
  const std::int64_t transport =
      kBthBytes + extension_bytes(opcode) + padded(payload) + kInvariantCrcBytes;
  if (link == RdmaLink::InfiniBand) {
    return Bytes(kLocalRouteBytes + transport + kVariantCrcBytes);
  }
  const std::int64_t frame =
      kEthernetHeaderBytes + kIpv4Bytes + kUdpBytes + transport + kFrameCheckBytes;
  return Bytes(frame < kMinFrameBytes ? kMinFrameBytes : frame);
}

// All that takes time on the line: with preamble and gap of Ethernet.
[[nodiscard]] constexpr Bytes wire_bytes(RdmaLink link, RdmaOpcode opcode, Bytes payload) {
  const std::int64_t around =
      link == RdmaLink::InfiniBand ? 0 : kPreambleBytes + kInterFrameGapBytes;
  return frame_bytes(link, opcode, payload) + Bytes(around);
}

// Blocks of 64 B that an InfiniBand packet takes of the receiver's credits.
[[nodiscard]] constexpr std::int64_t credit_blocks(Bytes frame) {
  return (frame.count() + kCreditBlockBytes - 1) / kCreditBlockBytes;
}

}  // namespace trainyard
