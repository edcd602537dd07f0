// SPDX-License-Identifier: Apache-2.0
// The records of the packet engine: packets, what is under way on a link, the port that sends.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "sim/check.h"

namespace trainyard {

// Times inside the engine are plain picoseconds: sums of a few link times, far from overflow.
using Picoseconds = std::int64_t;
inline constexpr Picoseconds kNeverTime = std::numeric_limits<Picoseconds>::max();
inline constexpr std::uint32_t kNoIndex = 0xffff'ffff;
inline constexpr std::uint64_t kNeverWindow = ~std::uint64_t{0};  // Windows count from 0.

// A FIFO in one block of memory that doubles when it is full and never shrinks: nothing is
// allocated for an element. A ring that was never used owns no memory.
template <typename T>
class Ring {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] std::uint32_t size() const { return tail_ - head_; }
  [[nodiscard]] const T& front() const { return slots_[head_ & (capacity_ - 1)]; }
  // The element that is `index` behind the front.
  [[nodiscard]] const T& at(std::uint32_t index) const {
    return slots_[(head_ + index) & (capacity_ - 1)];
  }
  [[nodiscard]] T& at(std::uint32_t index) { return slots_[(head_ + index) & (capacity_ - 1)]; }

  void push(const T& value) {
    if (size() == capacity_) [[unlikely]] {
      grow();
    }
    slots_[tail_++ & (capacity_ - 1)] = value;
  }
  T pop() { return take(); }
  // The same where it lies: until the next push.
  T& take() {
    DCHECK(!empty(), "nothing to take from a ring");
    return slots_[head_++ & (capacity_ - 1)];
  }

 private:
  static constexpr std::uint32_t kMinSlots = 8;

  void grow() {
    const std::uint32_t capacity = capacity_ == 0 ? kMinSlots : 2 * capacity_;
    CHECK(capacity > capacity_, "too many packets in one queue");
    auto larger = std::make_unique<T[]>(capacity);  // NOLINT(modernize-avoid-c-arrays)
    const std::uint32_t count = size();
    for (std::uint32_t i = 0; i < count; ++i) {
      larger[i] = at(i);
    }
    slots_ = std::move(larger);
    capacity_ = capacity;
    head_ = 0;
    tail_ = count;
  }

  // A vector would be half as large again, and its size a division away.
  std::unique_ptr<T[]> slots_;  // NOLINT(modernize-avoid-c-arrays)
  std::uint32_t capacity_ = 0;  // A power of two.
  std::uint32_t head_ = 0;      // Both run on beyond the capacity; only their lower bits count.
  std::uint32_t tail_ = 0;
};

// Copied from queue to queue: as large as an index with what one would have to look up at once.
struct Packet {
  // Flags.
  static constexpr std::uint8_t kEndsMessage = 1;
  static constexpr std::uint8_t kMarked = 2;   // Congestion was experienced.
  static constexpr std::uint8_t kControl = 4;  // An ACK, or with kCnp a CNP; goes before data.
  static constexpr std::uint8_t kCnp = 8;      // With receiver credits a grant or a request.
  static constexpr std::uint8_t kPause = 16;   // A PFC frame, never in a queue; kMarked is XOFF.
  static constexpr std::uint8_t kNak = 32;     // Marks an ACK: packets are missing.
  // With kControl: the headers of data, which a switch has trimmed.
  static constexpr std::uint8_t kTrimmed = kCnp | kNak;
  static constexpr std::uint8_t kAlarm = 64;    // No packet: an Alarm, of the kind `sequence`.
  static constexpr std::uint8_t kCredit = 128;  // With kPause: credits for `wire` bytes instead.
  // Without kPause and kControl: an ACK that waits as data do, until its end.
  static constexpr std::uint8_t kWaits = kCredit;

  std::uint32_t connection = kNoIndex;
  std::uint32_t position = 0;  // Position of the next port that it takes, in the list of all paths.
  std::uint32_t sequence = 0;  // Its number in its connection, modulo 2^32; of an ACK, the next.
  std::uint16_t wire = 0;      // Bytes on the line.
  std::uint8_t left = 0;       // Links that it has still to take.
  std::uint8_t flags = 0;

  [[nodiscard]] bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  [[nodiscard]] bool is_trimmed() const {
    return (flags & (kControl | kTrimmed | kPause | kAlarm)) == (kControl | kTrimmed);
  }
};
static_assert(sizeof(Packet) == 16);

// A packet that a port gets: under way to it until its window, then in the list of what the port
// gets in that one.
struct Due {
  Picoseconds time;
  Packet packet;
  std::uint32_t by;    // The link that it comes by, and what kind it is: the order of equal times.
  std::uint32_t next;  // The port, or kNoIndex for the one that its connection sends by. In a list
                       // what comes next there.

  [[nodiscard]] bool is_before(const Due& other) const {
    return time != other.time ? time < other.time : by < other.by;
  }
};

// The place in the buffer of the switch that the packet that is being sent frees.
struct Leaving {
  Picoseconds time = 0;        // Time of its last byte.
  std::uint32_t position = 0;  // Position of the port in the packet's path.
  std::int32_t bytes = 0;
};

struct PortTally {
  std::uint64_t packets = 0;    // Data.
  std::uint64_t bytes = 0;      // On the line, with control packets and PFC frames.
  std::int64_t max_queued = 0;  // Bytes of data frames.
  std::uint64_t marks = 0;
  std::uint64_t pauses_sent = 0;  // XOFF only.
  std::uint64_t pauses_received = 0;
  std::uint64_t drops = 0;
  Picoseconds paused_time = 0;
  std::uint64_t storm_drops = 0;  // Drops in pause storms.
};

// A directed link and what waits for it. The fields that a packet needs come first, by cache lines.
struct alignas(64) Port {
  std::uint64_t visited = kNeverWindow;  // The window in which it last had work.
  std::uint32_t first = kNoIndex;        // First of what it gets in this window, in order.
  std::uint32_t last = kNoIndex;
  std::uint32_t node = kNoIndex;  // The switch with a buffer that it sends from.
  std::uint32_t link = 0;
  Picoseconds free_at = 0;  // Nothing begins before.
  Ring<Packet> queue;
  std::int64_t queued_bytes = 0;  // Bytes of data frames.

  // Bits of `stops`.
  static constexpr std::uint8_t kPaused = 1;   // Stopped by PFC.
  static constexpr std::uint8_t kStarved = 2;  // No credits for the largest packet.
  static constexpr std::uint8_t kLanes = 4;    // For ever: its lanes say whether they may.
  static constexpr std::uint8_t kHost = 8;     // For ever: a host behind it may pause, and go on.
  static constexpr std::uint8_t kForced = 16;  // A watchdog has it send although it is paused.
  static constexpr std::uint8_t kGrants = 32;  // For ever: credits are granted to who sends by it.
  static constexpr std::uint8_t kFills = 64;   // For ever: sockets fill its queue.

  // Returns whether it may send no data, where it has no lanes.
  [[nodiscard]] bool is_stopped() const {
    return (stops & kStarved) != 0 || (stops & (kPaused | kForced)) == kPaused;
  }

  Picoseconds full_time = 0;      // Time that a full packet takes.
  Picoseconds through_delay = 0;  // From its end to the next queue: the link, then the node.
  Picoseconds end_delay = 0;      // From its end to the target, where the path ends.
  std::int64_t mark_above = std::numeric_limits<std::int64_t>::max();  // ECN: Kmin.
  std::uint64_t due = kNeverWindow;  // The window for which it is in the calendar.
  std::uint32_t source = kNoIndex;   // Source of its own connections.
  std::uint32_t urgent = 0;          // Control packets and PFC frames that wait.
  std::uint32_t into = kNoIndex;     // The part that its link leads into, if that is another one.
  std::uint32_t credits = kNoIndex;  // Index in the list of links with credits.
  std::uint8_t stops = 0;       // Why it may send no data, or something else is to be looked at.
  bool cuts_through = false;    // The node at the end of the link.
  bool own_turn = false;        // Own packets and those that pass through take turns.
  bool stamps : 1 = false;      // It writes into packets: HPCC.
  bool is_bounded : 1 = false;  // Its queue holds no more than PacketOptions::port_queue.
  std::uint32_t opposite = kNoIndex;  // The port of the link back, where anything goes back.

  Leaving leaving;
  std::uint64_t bits_per_second = 0;
  PortTally counters;

  Ring<Packet> control;
  Ring<std::uint8_t> to_pause;  // PFC frames to be sent: twice the lane, and 1 for XOFF.
  Picoseconds pause_delay = 0;  // From the end of a PFC frame to when it stops the other side.
  Picoseconds paused_since = 0;
  std::uint64_t random = 0;         // State of the draws for marks.
  std::uint16_t out = 0;            // Its number at the switch.
  std::uint16_t marker = 0;         // Index in the list of profiles.
  std::uint32_t part = 0;           // Part of the fabric in which it is.
  std::uint32_t lanes = kNoIndex;   // Index in the list of ports with lanes.
  std::uint32_t host = kNoIndex;    // Index in the list of hosts that pause: the one that it is of.
  std::uint32_t guard = kNoIndex;   // Index in the list of watchdogs.
  std::uint32_t grants = kNoIndex;  // Index in the list of pacers of receiver credits.
};
// An odd number of cache lines: with an even one the same lines of all ports would share half of
// the sets of a cache.
static_assert(sizeof(Port) == 5 * std::size_t{64});

// A packet that a port began to send, for tests that compare engines packet by packet.
struct PacketStart {
  Picoseconds time;
  std::uint32_t link;
  std::uint32_t connection;
  std::uint32_t sequence;
  friend auto operator<=>(const PacketStart&, const PacketStart&) = default;
};

}  // namespace trainyard
