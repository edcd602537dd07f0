// SPDX-License-Identifier: Apache-2.0
// The bytes that the packets of RDMA messages, and of TCP, take on a wire.
//
// Wire bytes are all that takes time on the line. Sources of the sizes: InfiniBand Architecture
// Specification 1.4, chapters 5 and 9, its annex 17 (RoCEv2), IEEE 802.3 clauses 3 and 4; RFC 9293
// and 7323 (TCP with time stamps).
// docs/models/transport.md has the tables.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/units.h"

namespace trainyard {

// The packets of a connection: those of SEND, which has no header of its own, those of WRITE, whose
// first one says where the data goes (the others are as those of SEND), and what answers them.
enum class RdmaOpcode : std::uint8_t { SendOnly, WriteOnly, Acknowledge, Cnp };

enum class RdmaVerb : std::uint8_t { Send, Write };

// The framing around the transport header of each packet of a network.
enum class RdmaLink : std::uint8_t { RoceV2, InfiniBand, Tcp };

// Layer by layer.
inline constexpr std::int64_t kPreambleBytes = 8;
inline constexpr std::int64_t kInterFrameGapBytes = 12;
inline constexpr std::int64_t kEthernetHeaderBytes = 14;
inline constexpr std::int64_t kFrameCheckBytes = 4;
inline constexpr std::int64_t kMinFrameBytes = 64;  // From the header to the FCS.
inline constexpr std::int64_t kIpv4Bytes = 20;
inline constexpr std::int64_t kUdpBytes = 8;
inline constexpr std::int64_t kTcpBytes = 32;  // With time stamps, which take 12 of them.
inline constexpr std::int64_t kBthBytes = 12;
inline constexpr std::int64_t kInvariantCrcBytes = 4;
inline constexpr std::int64_t kLocalRouteBytes = 8;
inline constexpr std::int64_t kVariantCrcBytes = 2;

// The five sizes that an RDMA path may use: 256, 512, 1024, 2048, 4096. Whatever is larger, such as
// the 9000 B of a jumbo frame, is no path MTU and only good for a what-if.
[[nodiscard]] constexpr bool is_path_mtu(Bytes mtu) {
  return mtu == Bytes(256) || mtu == Bytes(512) || mtu == Bytes(1024) || mtu == Bytes(2048) ||
         mtu == Bytes(4096);
}

// Bytes of the headers between BTH and payload, in the order of RdmaOpcode: none, RETH, AETH, and
// the reserved bytes of a CNP.
inline constexpr std::array<std::int64_t, 4> kExtensionBytes{0, 16, 4, 16};

// The payload of a segment of TCP that fills the MTU of Ethernet: 1,448 B of 1,500.
[[nodiscard]] constexpr Bytes tcp_payload(Bytes ethernet_mtu) {
  return ethernet_mtu - Bytes(kIpv4Bytes + kTcpBytes);
}

// The frame or packet itself. RoCEv2: from the Ethernet header to the FCS, at least 64, which is
// what a switch stores; so has TCP, whose segments take what they carry and nothing to pad it.
// InfiniBand: from the LRH to the VCRC, which is what credits count.
[[nodiscard]] constexpr Bytes frame_bytes(RdmaLink link, RdmaOpcode opcode, Bytes payload) {
  const auto ethernet = [](std::int64_t packet) {
    const std::int64_t frame = kEthernetHeaderBytes + kIpv4Bytes + packet + kFrameCheckBytes;
    return Bytes(frame < kMinFrameBytes ? kMinFrameBytes : frame);
  };
  if (link == RdmaLink::Tcp) {
    return ethernet(kTcpBytes + payload.count());
  }
  const std::int64_t padded = (payload.count() + 3) / 4 * 4;  // To whole words of four bytes.
  const std::int64_t transport =
      kBthBytes + kExtensionBytes[static_cast<std::size_t>(opcode)] + padded + kInvariantCrcBytes;
  if (link == RdmaLink::InfiniBand) {
    return Bytes(kLocalRouteBytes + transport + kVariantCrcBytes);
  }
  return ethernet(kUdpBytes + transport);
}

// All that takes time on the line: with preamble and gap of Ethernet.
[[nodiscard]] constexpr Bytes wire_bytes(RdmaLink link, RdmaOpcode opcode, Bytes payload) {
  const std::int64_t around =
      link == RdmaLink::InfiniBand ? 0 : kPreambleBytes + kInterFrameGapBytes;
  return frame_bytes(link, opcode, payload) + Bytes(around);
}

// Link-level credits of InfiniBand (Architecture Specification 1.4, section 7.9): the receiver of
// each virtual lane says up to which block the sender may send. Blocks are 64 B of packet from LRH
// to VCRC; counters have 12 bits and wrap, so that a sender never has more than 2,048 blocks open.
inline constexpr std::int64_t kCreditBlockBytes = 64;

// Blocks that an InfiniBand packet takes of the receiver's credits.
[[nodiscard]] constexpr std::int64_t credit_blocks(Bytes frame) {
  return (frame.count() + kCreditBlockBytes - 1) / kCreditBlockBytes;
}

// Blocks of a buffer that keeps a lane of this rate busy: a round trip, the time in which updates
// are made, a packet under way in each direction. No bytes are ever lost for lack of a buffer, so
// that there is nothing like headroom.
[[nodiscard]] inline std::int64_t credit_buffer(Bandwidth rate, SimTime delay, SimTime processing,
                                                Bytes packet) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const SimTime loop = delay * 2 + processing;
  const Wide bytes = (Wide{rate.bits_per_second()} * loop.picoseconds() + kBits - 1) / kBits;
  return credit_blocks(Bytes(static_cast<std::int64_t>(bytes)) + packet * 2);
}

}  // namespace trainyard
