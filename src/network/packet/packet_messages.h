// SPDX-License-Identifier: Apache-2.0
// Messages that were sent and are not complete, and what is noted of them in a window.
//
// The list changes between windows only: send() adds, the end of a window takes out what completed
// in it. In a window both ends of a connection read it.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "network/packet/packet_control.h"
#include "network/packet/packet_reliability.h"
#include "network/packet_parts/packet_grants.h"
#include "network/packet_parts/packet_port.h"
#include "sim/event.h"

namespace trainyard {

struct PacketMessage {
  Picoseconds time = 0;  // Time of send().
  std::int64_t size = 0;
  std::uint64_t order = 0;  // Order of send().
  EventHandler* done = nullptr;
  std::uint64_t token = 0;
  std::uint32_t next = kNoIndex;  // Behind it on the connection, or in the list of free slots.
  std::uint32_t connection = kNoIndex;
};

class PacketMessages {
 public:
  // The next number in the order of send().
  [[nodiscard]] std::uint64_t take_order() { return sends_++; }
  // The slot of a message with its order, which is behind no other one.
  std::uint32_t add(const PacketMessage& message) {
    std::uint32_t slot = free_;
    if (slot == kNoIndex) {
      slot = static_cast<std::uint32_t>(messages_.size());
      messages_.push_back(message);
    } else {
      free_ = messages_[slot].next;
      messages_[slot] = message;
    }
    messages_[slot].next = kNoIndex;
    return slot;
  }
  // Another one of the connection takes its place.
  void replace(std::uint32_t slot, const PacketMessage& message) {
    const std::uint32_t next = messages_[slot].next;
    messages_[slot] = message;
    messages_[slot].next = next;
  }
  void append(std::uint32_t last, std::uint32_t slot) { messages_[last].next = slot; }
  void remove(std::uint32_t slot) {
    messages_[slot].next = free_;
    free_ = slot;
  }
  [[nodiscard]] const PacketMessage& operator[](std::uint32_t slot) const {
    return messages_[slot];
  }
  [[nodiscard]] std::uint64_t sends() const { return sends_; }

 private:
  std::vector<PacketMessage> messages_;
  std::uint32_t free_ = kNoIndex;
  std::uint64_t sends_ = 0;
};

struct PacketCounts {
  std::uint64_t messages = 0;  // Messages whose last packet left the source.
  std::uint64_t completed = 0;
  std::int64_t bytes = 0;         // Bytes of messages that left.
  std::uint64_t packet_hops = 0;  // Data packets.
  std::uint64_t windows = 0;
  std::uint64_t exact_windows = 0;  // Windows of single switches.
  std::uint64_t acks = 0;
  std::uint64_t cnps = 0;
  std::uint64_t reordered = 0;     // Packets that came before one with a lower number.
  std::uint64_t skipped_hops = 0;  // Part of packet_hops that was not simulated.
  double skip_error = 0.0;         // The part by which their rates are off at most.

  PacketCounts& operator+=(const PacketCounts& other) {
    messages += other.messages;
    completed += other.completed;
    bytes += other.bytes;
    packet_hops += other.packet_hops;
    windows += other.windows;
    exact_windows += other.exact_windows;
    acks += other.acks;
    cnps += other.cnps;
    reordered += other.reordered;
    skipped_hops += other.skipped_hops;
    skip_error = std::max(skip_error, other.skip_error);
    return *this;
  }
};

// A connection that gave up after too many retries.
struct PacketFailure {
  Picoseconds time;
  std::uint32_t connection;
  friend auto operator<=>(const PacketFailure&, const PacketFailure&) = default;
};

// One end of a connection, or a port, writes this for the other end.
struct StatementElsewhere {
  std::uint32_t connection;
  PacketStatement statement;
};
struct RequestElsewhere {
  std::uint32_t connection;
  CreditRequest request;
};
struct StampElsewhere {
  std::uint32_t connection;
  std::uint32_t sequence;
  std::uint32_t position;
  PacketControl::Stamp stamp;
};

// Notes of a worker for all: counters are summed when they are asked for, the rest is taken at the
// end of the window; alarms are those of its own ports.
struct PacketNotes {
  struct Whole {
    Picoseconds time;
    std::uint32_t slot;
  };
  PacketCounts counts;
  std::vector<Whole> whole;  // Messages whose last byte is at the target at `time`.
  std::vector<PacketFailure> failures;
  std::vector<PacketStart> starts;  // If they are traced.
  // These go beside packets to an end of a connection that another process works for.
  std::vector<StatementElsewhere> statements;
  std::vector<RequestElsewhere> requests;
  std::vector<StampElsewhere> stamps;
  // Ports that drew for a mark, and one of each switch that began to count, if it is asked for.
  std::vector<std::uint32_t> disturbed;
  std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> alarms;
};

}  // namespace trainyard
