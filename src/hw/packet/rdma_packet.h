// SPDX-License-Identifier: Apache-2.0
// RDMA messages as packets: opcodes, segmentation, and the bytes that each packet takes on a wire.
//
// Wire bytes are all that takes time on the line. Sources of the sizes: InfiniBand Architecture
// Specification 1.4, chapters 5 and 9, its annex 17 (RoCEv2), IEEE 802.3 clauses 3 and 4.
// docs/models/transport.md has the tables.
#pragma once

#include <cstdint>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

// The opcode field of the BTH for reliable connections, and the CNP of RoCEv2.
enum class RdmaOpcode : std::uint8_t {
  SendFirst = 0x00,
  SendMiddle = 0x01,
  SendLast = 0x02,
  SendLastImmediate = 0x03,
  SendOnly = 0x04,
  SendOnlyImmediate = 0x05,
  WriteFirst = 0x06,
  WriteMiddle = 0x07,
  WriteLast = 0x08,
  WriteLastImmediate = 0x09,
  WriteOnly = 0x0A,
  WriteOnlyImmediate = 0x0B,
  ReadRequest = 0x0C,
  ReadResponseFirst = 0x0D,
  ReadResponseMiddle = 0x0E,
  ReadResponseLast = 0x0F,
  ReadResponseOnly = 0x10,
  Acknowledge = 0x11,  // Also a NAK; which one is in the AETH.
  AtomicAcknowledge = 0x12,
  CompareSwap = 0x13,
  FetchAdd = 0x14,
  Cnp = 0x81,
};

enum class RdmaVerb : std::uint8_t { Send, SendImmediate, Write, WriteImmediate, Read };

enum class RdmaLink : std::uint8_t { RoceV2, InfiniBand };

// Describes the framing around the transport header of each packet of a network.
struct RdmaFraming {
  RdmaLink link = RdmaLink::RoceV2;
  bool vlan = false;        // RoCEv2: an 802.1Q tag.
  bool ipv6 = false;        // RoCEv2: IPv6 instead of IPv4.
  bool global = false;      // InfiniBand: a GRH, as across subnets.
  bool delimiters = false;  // InfiniBand: the two delimiter symbols of 8b/10b links.
};

// Layer by layer.
inline constexpr std::int64_t kPreambleBytes = 8;
inline constexpr std::int64_t kInterFrameGapBytes = 12;
inline constexpr std::int64_t kEthernetHeaderBytes = 14;
inline constexpr std::int64_t kVlanTagBytes = 4;
inline constexpr std::int64_t kFrameCheckBytes = 4;
inline constexpr std::int64_t kLeastFrameBytes = 64;  // From the header to the FCS.
inline constexpr std::int64_t kIpv4Bytes = 20;
inline constexpr std::int64_t kIpv6Bytes = 40;
inline constexpr std::int64_t kUdpBytes = 8;
inline constexpr std::int64_t kBthBytes = 12;
inline constexpr std::int64_t kInvariantCrcBytes = 4;
inline constexpr std::int64_t kLocalRouteBytes = 8;
inline constexpr std::int64_t kGlobalRouteBytes = 40;
inline constexpr std::int64_t kVariantCrcBytes = 2;
inline constexpr std::int64_t kDelimiterBytes = 2;
inline constexpr std::int64_t kCreditBlockBytes = 64;

inline constexpr std::int64_t kRoceUdpPort = 4791;  // The destination port of RoCEv2.
// The largest message of a queue pair.
inline constexpr Bytes kMaxRdmaMessage{std::int64_t{1} << 31};

// The five sizes that an RDMA path may use: 256, 512, 1024, 2048, 4096. Whatever is larger, such as
// the 9000 B of a jumbo frame, is no path MTU and only good for a what-if.
[[nodiscard]] constexpr bool is_path_mtu(Bytes mtu) {
  return mtu == Bytes(256) || mtu == Bytes(512) || mtu == Bytes(1024) || mtu == Bytes(2048) ||
         mtu == Bytes(4096);
}

// Bytes of the headers between BTH and payload: RETH 16, AETH 4, ImmDt 4, AtomicETH 28,
// AtomicAckETH 8, and the 16 reserved bytes of a CNP.
[[nodiscard]] constexpr std::int64_t extension_bytes(RdmaOpcode opcode) {
  constexpr std::int64_t kReth = 16;
  constexpr std::int64_t kAeth = 4;
  constexpr std::int64_t kImmediate = 4;
  constexpr std::int64_t kAtomic = 28;
  constexpr std::int64_t kAtomicAck = 8;
  constexpr std::int64_t kCnpReserved = 16;
  switch (opcode) {
    case RdmaOpcode::SendFirst:
    case RdmaOpcode::SendMiddle:
    case RdmaOpcode::SendLast:
    case RdmaOpcode::SendOnly:
    case RdmaOpcode::WriteMiddle:
    case RdmaOpcode::WriteLast:
    case RdmaOpcode::ReadResponseMiddle:
      return 0;
    case RdmaOpcode::SendLastImmediate:
    case RdmaOpcode::SendOnlyImmediate:
    case RdmaOpcode::WriteLastImmediate:
      return kImmediate;
    case RdmaOpcode::WriteFirst:
    case RdmaOpcode::WriteOnly:
    case RdmaOpcode::ReadRequest:
      return kReth;
    case RdmaOpcode::WriteOnlyImmediate:
      return kReth + kImmediate;
    case RdmaOpcode::ReadResponseFirst:
    case RdmaOpcode::ReadResponseLast:
    case RdmaOpcode::ReadResponseOnly:
    case RdmaOpcode::Acknowledge:
      return kAeth;
    case RdmaOpcode::AtomicAcknowledge:
      return kAeth + kAtomicAck;
    case RdmaOpcode::CompareSwap:
    case RdmaOpcode::FetchAdd:
      return kAtomic;
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
[[nodiscard]] constexpr Bytes frame_bytes(const RdmaFraming& framing, RdmaOpcode opcode,
                                          Bytes payload) {
  const std::int64_t transport =
      kBthBytes + extension_bytes(opcode) + padded(payload) + kInvariantCrcBytes;
  if (framing.link == RdmaLink::InfiniBand) {
    const std::int64_t route = kLocalRouteBytes + (framing.global ? kGlobalRouteBytes : 0);
    return Bytes(route + transport + kVariantCrcBytes);
  }
  const std::int64_t network = (framing.ipv6 ? kIpv6Bytes : kIpv4Bytes) + kUdpBytes;
  const std::int64_t ethernet =
      kEthernetHeaderBytes + (framing.vlan ? kVlanTagBytes : 0) + kFrameCheckBytes;
  const std::int64_t frame = ethernet + network + transport;
  return Bytes(frame < kLeastFrameBytes ? kLeastFrameBytes : frame);
}

// All that takes time on the line: with preamble and gap of Ethernet, or the delimiters.
[[nodiscard]] constexpr Bytes wire_bytes(const RdmaFraming& framing, RdmaOpcode opcode,
                                         Bytes payload) {
  const Bytes frame = frame_bytes(framing, opcode, payload);
  if (framing.link == RdmaLink::InfiniBand) {
    return frame + Bytes(framing.delimiters ? kDelimiterBytes : 0);
  }
  return frame + Bytes(kPreambleBytes + kInterFrameGapBytes);
}

// Blocks of 64 B that an InfiniBand packet takes of the receiver's credits.
[[nodiscard]] constexpr std::int64_t credit_blocks(Bytes frame) {
  return (frame.count() + kCreditBlockBytes - 1) / kCreditBlockBytes;
}

// A message cut into packets of at most `mtu` bytes of payload: all but the last are full. Made
// once for a message; the sizes of its packets then cost a comparison.
class MessagePackets {
 public:
  // The packets that carry the data: those of the requester for SEND and WRITE, the responses for
  // READ. `size` must not be negative or above kMaxRdmaMessage, `mtu` must be positive (see
  // is_path_mtu for what is legal).
  constexpr MessagePackets(const RdmaFraming& framing, RdmaVerb verb, Bytes size, Bytes mtu)
      : size_(size), mtu_(mtu), verb_(verb) {
    CHECK(size >= Bytes(0) && size <= kMaxRdmaMessage, "not the size of an RDMA message");
    CHECK(mtu > Bytes(0), "an MTU of nothing");
    const std::int64_t full = (size.count() + mtu.count() - 1) / mtu.count();
    count_ = full < 1 ? 1 : full;
    first_wire_ = trainyard::wire_bytes(framing, opcode(0), payload(0));
    middle_wire_ = count_ > 2 ? trainyard::wire_bytes(framing, opcode(1), mtu) : Bytes(0);
    last_wire_ = trainyard::wire_bytes(framing, opcode(count_ - 1), payload(count_ - 1));
  }

  [[nodiscard]] constexpr std::int64_t count() const { return count_; }
  [[nodiscard]] constexpr Bytes size() const { return size_; }

  // Returns the payload of packet `index`, counted from 0.
  [[nodiscard]] constexpr Bytes payload(std::int64_t index) const {
    return index + 1 < count_ ? mtu_ : size_ - mtu_ * (count_ - 1);
  }
  [[nodiscard]] constexpr Bytes wire_bytes(std::int64_t index) const {
    if (index == 0) {
      return first_wire_;
    }
    return index + 1 < count_ ? middle_wire_ : last_wire_;
  }
  [[nodiscard]] constexpr RdmaOpcode opcode(std::int64_t index) const;

  // Returns the bytes of all packets together on the wire.
  [[nodiscard]] constexpr Bytes wire_bytes() const {
    if (count_ == 1) {
      return first_wire_;
    }
    return first_wire_ + middle_wire_ * (count_ - 2) + last_wire_;
  }

 private:
  Bytes size_;
  Bytes mtu_;
  std::int64_t count_ = 0;
  Bytes first_wire_;
  Bytes middle_wire_;
  Bytes last_wire_;
  RdmaVerb verb_;
};

constexpr RdmaOpcode MessagePackets::opcode(std::int64_t index) const {
  struct Opcodes {
    RdmaOpcode first, middle, last, only;
  };
  constexpr auto of = [](RdmaVerb verb) {
    switch (verb) {
      case RdmaVerb::Send:
        return Opcodes{RdmaOpcode::SendFirst, RdmaOpcode::SendMiddle, RdmaOpcode::SendLast,
                       RdmaOpcode::SendOnly};
      case RdmaVerb::SendImmediate:
        return Opcodes{RdmaOpcode::SendFirst, RdmaOpcode::SendMiddle, RdmaOpcode::SendLastImmediate,
                       RdmaOpcode::SendOnlyImmediate};
      case RdmaVerb::Write:
        return Opcodes{RdmaOpcode::WriteFirst, RdmaOpcode::WriteMiddle, RdmaOpcode::WriteLast,
                       RdmaOpcode::WriteOnly};
      case RdmaVerb::WriteImmediate:
        return Opcodes{RdmaOpcode::WriteFirst, RdmaOpcode::WriteMiddle,
                       RdmaOpcode::WriteLastImmediate, RdmaOpcode::WriteOnlyImmediate};
      case RdmaVerb::Read:
        break;
    }
    return Opcodes{RdmaOpcode::ReadResponseFirst, RdmaOpcode::ReadResponseMiddle,
                   RdmaOpcode::ReadResponseLast, RdmaOpcode::ReadResponseOnly};
  };
  const Opcodes opcodes = of(verb_);
  if (count_ == 1) {
    return opcodes.only;
  }
  if (index == 0) {
    return opcodes.first;
  }
  return index + 1 < count_ ? opcodes.middle : opcodes.last;
}

}  // namespace trainyard
