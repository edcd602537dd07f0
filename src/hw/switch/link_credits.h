// SPDX-License-Identifier: Apache-2.0
// Link-level credits of InfiniBand (Architecture Specification 1.4, section 7.9): the receiver of
// each virtual lane says up to which block the sender may send. Blocks are 64 B of packet from LRH
// to VCRC; counters have 12 bits and wrap.
//
// No bytes are ever lost for lack of a buffer, so that there is nothing like headroom; but a lane
// reaches the full rate only if its buffer holds a round trip (credit_buffer()).
#pragma once

#include <algorithm>
#include <cstdint>

#include "hw/packet/rdma_packet.h"
#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

inline constexpr int kDataLanes = 15;  // VL15 is for management and has no credits.
inline constexpr int kManagementLane = 15;
inline constexpr std::uint16_t kCreditMask = 0xFFF;
// More blocks are never open at once, so that wrapped counters can be compared.
inline constexpr std::int64_t kMostCredits = 2048;
// A flow control packet with its CRC and delimiters.
inline constexpr Bytes kCreditPacketBytes{8};

// The content of a flow control packet about one lane.
struct CreditUpdate {
  std::uint16_t total_sent = 0;  // FCTBS, by the sender of this packet in its own direction.
  std::uint16_t limit = 0;       // FCCL: up to where the other side may send.
};

// The sender of one lane.
class LaneSender {
 public:
  [[nodiscard]] bool can_send(std::int64_t blocks) const {
    return ((limit_ - sent_ - blocks) & kCreditMask) <= kMostCredits;
  }
  void send(std::int64_t blocks) {
    DCHECK(can_send(blocks), "sent without credit");
    sent_ = static_cast<std::uint16_t>((sent_ + blocks) & kCreditMask);
  }
  void on_limit(std::uint16_t limit) { limit_ = limit; }
  [[nodiscard]] std::uint16_t total_sent() const { return sent_; }
  // Blocks that may be sent now.
  [[nodiscard]] std::int64_t open() const { return (limit_ - sent_) & kCreditMask; }

 private:
  std::uint16_t sent_ = 0;
  std::uint16_t limit_ = 0;
};

// The receiver of one lane, with its buffer.
class LaneReceiver {
 public:
  explicit LaneReceiver(std::int64_t buffer_blocks) : free_(buffer_blocks), size_(buffer_blocks) {
    CHECK(buffer_blocks > 0, "a lane without a buffer");
  }

  // A packet has come. There was room, or the sender broke the rules.
  void receive(std::int64_t blocks) {
    CHECK(blocks <= free_, "a packet came without credit");
    received_ = static_cast<std::uint16_t>((received_ + blocks) & kCreditMask);
    free_ -= blocks;
  }
  // It has left the buffer.
  void release(std::int64_t blocks) {
    free_ += blocks;
    CHECK(free_ <= size_, "released more than came");
  }
  // The other side has sent `total` blocks in all; those of packets lost on the line never come.
  void on_total_sent(std::uint16_t total) { received_ = total; }

  // Returns the limit for the sender: FCCL.
  [[nodiscard]] std::uint16_t limit() const {
    return static_cast<std::uint16_t>((received_ + std::min(free_, kMostCredits)) & kCreditMask);
  }
  // Blocks that limit() opens beyond what the sender was told last.
  [[nodiscard]] std::int64_t news(std::uint16_t told) const {
    return (limit() - told) & kCreditMask;
  }
  [[nodiscard]] std::int64_t free_blocks() const { return free_; }

 private:
  std::uint16_t received_ = 0;  // ABR
  std::int64_t free_;
  std::int64_t size_;
};

// The longest time without an update: 65,536 symbols of 8 bits of data on each of `lanes` lanes.
[[nodiscard]] inline SimTime credit_update_period(Bandwidth rate, int lanes) {
  constexpr std::int64_t kSymbols = 65'536;
  return transfer_time(Bytes(kSymbols * lanes), rate);
}

// Blocks that keep a lane of this rate busy: a round trip, the time in which updates are made, a
// packet under way in each direction.
[[nodiscard]] inline std::int64_t credit_buffer(Bandwidth rate, SimTime delay, SimTime processing,
                                                Bytes packet) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const SimTime loop = delay * 2 + processing;
  const Wide bytes = (Wide{rate.bits_per_second()} * loop.picoseconds() + kBits - 1) / kBits;
  return credit_blocks(Bytes(static_cast<std::int64_t>(bytes)) + packet * 2);
}

}  // namespace trainyard
