// SPDX-License-Identifier: Apache-2.0
// Reliable delivery that repeats only what is missing, as IRN has it (Mittal et al., SIGCOMM 2018):
// the receiver takes packets in any order and names with each the next one that it lacks and the
// one that has just come; the sender remembers that in a bitmap and sends the holes below the
// highest one first. The bandwidth-delay product of the network bounds what is in flight.
//
// A timeout makes every packet without an acknowledgement a hole: the paper leaves open what
// follows the first one, and this ends in one round trip more. The timer runs again from the first
// of them that is sent, however long a congestion control holds it back.
//
// Where switches trim packets (on_trimmed(); Handley et al., SIGCOMM 2017, NDP; Ultra Ethernet),
// the receiver names those of which only the headers came, and the sender sends these first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "hw/transport/go_back_n.h"
#include "sim/units.h"

namespace trainyard {

struct SelectiveSettings {
  std::int64_t window = 110;                  // Packets in flight; the paper's product at 40 Gb/s.
  SimTime short_timeout = microseconds(100);  // With few packets in flight.
  SimTime long_timeout = microseconds(320);
  std::int64_t few = 3;
  int retries = 7;
  // Number of later packets that may come before one counts as lost, where packets overtake each
  // other.
  std::int64_t reorder = 0;
};

// The timeouts of the paper are 4 and 13 times the round trip of its network, 24 us (section 4.1:
// 120 KB at 40 Gb/s). A timeout before the ACK can be back has everything sent twice, so that on
// paths whose idle round trip is longer they are 3 and 10 times that at least: an estimate, low
// enough to leave them as they are on paths of up to 32 us.
[[nodiscard]] inline SelectiveSettings with_time_for(SelectiveSettings settings,
                                                     SimTime round_trip) {
  constexpr std::int64_t kShortTrips = 3;
  constexpr std::int64_t kLongTrips = 10;
  settings.short_timeout = std::max(settings.short_timeout, round_trip * kShortTrips);
  settings.long_timeout = std::max(settings.long_timeout, round_trip * kLongTrips);
  return settings;
}

// One bit for each packet of a window that slides.
class PacketBitmap {
 public:
  explicit PacketBitmap(std::int64_t window);
  [[nodiscard]] bool has(Psn psn) const {
    return (words_[(psn >> 6) & mask_] >> (psn & 63) & 1U) != 0;
  }
  void set(Psn psn) { words_[(psn >> 6) & mask_] |= std::uint64_t{1} << (psn & 63); }
  void clear(Psn psn) { words_[(psn >> 6) & mask_] &= ~(std::uint64_t{1} << (psn & 63)); }

 private:
  std::vector<std::uint64_t> words_;
  Psn mask_;
};

class SelectiveSender {
 public:
  explicit SelectiveSender(const SelectiveSettings& settings);

  void post(std::int64_t packets) { end_ += static_cast<Psn>(packets); }
  [[nodiscard]] bool can_send(const SelectiveSettings& settings) const;
  Psn send(const SelectiveSettings& settings, SimTime now);

  // Everything before `upto` has come. How many packets that are more than before.
  std::int64_t on_ack(const SelectiveSettings& settings, Psn upto, SimTime now);
  // The same, and `received` has come out of order.
  std::int64_t on_nack(const SelectiveSettings& settings, Psn upto, Psn received, SimTime now);
  // Everything before `upto` has come, and only the headers of `trimmed`, which is sent again at
  // once. How many packets more have come. The receiver is alive, so the timer runs anew.
  std::int64_t on_trimmed(const SelectiveSettings& settings, Psn upto, Psn trimmed, SimTime now);
  void on_timeout(const SelectiveSettings& settings);
  [[nodiscard]] SimTime deadline() const { return deadline_; }

  // The packet that send() would send; there must be one.
  [[nodiscard]] Psn next() const {
    if (!trimmed_.empty()) {
      return trimmed_.front();
    }
    const Psn hole = next_hole();
    return hole < holes_end_ ? hole : next_;
  }
  [[nodiscard]] bool is_done() const { return oldest_ == end_; }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool is_recovering() const { return is_recovering_; }
  [[nodiscard]] std::int64_t in_flight() const {
    return static_cast<std::int64_t>(next_ - oldest_);
  }
  [[nodiscard]] std::int64_t resent() const { return resent_; }

 private:
  // The next hole to send again, or holes_end_.
  [[nodiscard]] Psn next_hole() const;
  void arm(const SelectiveSettings& settings, SimTime now);

  // Forgets trimmed packets that have come since.
  void forget_received();

  PacketBitmap received_;
  std::deque<Psn> trimmed_;  // Packets to send again; the first has not come.
  Psn oldest_ = 0;
  Psn next_ = 0;
  Psn end_ = 0;
  Psn hole_ = 0;       // Where to look for the next hole.
  Psn holes_end_ = 0;  // Packets from here on are not known to be lost.
  Psn recovery_ = 0;   // Recovery is over when everything before this has come.
  SimTime deadline_ = SimTime::max();
  std::int64_t resent_ = 0;
  int failures_ = 0;
  bool is_recovering_ = false;
  bool has_failed_ = false;
};

class SelectiveReceiver {
 public:
  explicit SelectiveReceiver(const SelectiveSettings& settings);

  struct Answer {
    bool is_new = false;
    bool is_nack = false;  // Names the packet itself beside `expected`.
    Psn expected = 0;
  };
  // Every packet is answered. Packets beyond the window break the rules.
  Answer on_packet(Psn psn);
  [[nodiscard]] Psn expected() const { return expected_; }
  [[nodiscard]] bool has(Psn psn) const { return psn < expected_ || received_.has(psn); }

 private:
  PacketBitmap received_;
  std::int64_t window_;
  Psn expected_ = 0;
};

}  // namespace trainyard
