// SPDX-License-Identifier: Apache-2.0
// Adaptive routing in a switch: which of several ports a packet takes, by what waits at each, for
// each packet or for each flowlet.
//
// Switches compare grades and not bytes: DeTail (Zats et al., SIGCOMM 2012) has three, below 16 KB,
// below 64 KB and above. Of the ports with the best grade it draws one. With a step of one byte
// this is the shortest queue. `slack` keeps a flow at the port that it had as long as that is no
// more than so many grades worse.
//
// Flowlets: a flow may change its path after a gap that is longer than paths differ, and hardly any
// packet overtakes another (Sinha, Kandula, Katabi, "Harnessing TCP's burstiness with flowlet
// switching", HotNets 2004). LetFlow (Vanini et al., NSDI 2017) draws the path of each flowlet.
// Flows find an entry of the switch's table by their hash, and those that meet in one share it.
// Switches measure gaps with a bit that ages, so that theirs last from T to 2 T; here it is exactly
// T.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/check.h"
#include "sim/random.h"
#include "sim/units.h"

namespace trainyard {

struct GradeRule {
  Bytes step{16'384};        // Width of one grade.
  std::int64_t grades = 64;  // All that is longer has the last one.
  std::int64_t slack = 0;

  [[nodiscard]] std::int64_t of(std::int64_t queued) const {
    const std::int64_t grade = queued / step.count();
    return grade < grades ? grade : grades - 1;
  }
};

inline constexpr std::uint32_t kNoPort = 0xFFFF'FFFF;

// The position in `queued` (bytes that wait at each port, at least one) of the port to take.
// `previous` is where the flow was, or kNoPort; `draw` any 32 bits, which decide among equals.
[[nodiscard]] inline std::uint32_t choose_port(const GradeRule& rule,
                                               std::span<const std::int64_t> queued,
                                               std::uint32_t previous, std::uint32_t draw) {
  CHECK(!queued.empty(), "no port to choose");
  std::int64_t best = rule.grades;
  std::uint64_t equals = 0;
  for (const std::int64_t bytes : queued) {
    const std::int64_t grade = rule.of(bytes);
    equals = grade < best ? 1 : equals + (grade == best ? 1 : 0);
    best = grade < best ? grade : best;
  }
  if (previous < queued.size() && rule.of(queued[previous]) <= best + rule.slack) {
    return previous;
  }
  // Scaled to the range: a bias below equals / 2^32.
  std::uint64_t skip = (draw * equals) >> 32;
  for (std::uint32_t port = 0;; ++port) {
    if (rule.of(queued[port]) == best && skip-- == 0) {
      return port;
    }
  }
}

class FlowletTable {
 public:
  // Entries are a power of two.
  FlowletTable(SimTime gap, std::uint32_t entries) : gap_(gap), slots_(entries) {
    CHECK(entries > 0 && (entries & (entries - 1)) == 0, "a table that is no power of two");
    CHECK(gap >= SimTime(), "a gap below zero");
  }

  // The choice for a packet of the flow with this hash: that of its flowlet, or, if it begins one
  // because it is the first or more than the gap after the last, what `choose(previous)` says;
  // `previous` is kNoPort for the first one.
  template <typename Choose>
  std::uint32_t choice(std::uint64_t hash, SimTime now, const Choose& choose) {
    Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.choice == kNoPort || now - slot.last > gap_) {
      slot.choice = choose(slot.choice);
    }
    slot.last = now;
    return slot.choice;
  }

 private:
  struct Slot {
    SimTime last;
    std::uint32_t choice = kNoPort;
  };
  SimTime gap_;
  std::vector<Slot> slots_;
};

struct AdaptiveOptions {
  // The traffic for which a choice is made. Connection: once, when it begins, and not by queues but
  // by the connections of each link, as engines without queues do (topology/routing/chooser.h).
  enum class Unit : std::uint8_t { Connection, Flowlet, Packet };
  Unit unit = Unit::Packet;
  GradeRule grades = {};
  // Settings of flowlets. Sources: Junos OS, "inactivity-interval", 16 us unless set; "Configure
  // Flowset Table Size in DLB Flowlet Mode", 32,768 entries in all. Entries are a power of two.
  SimTime gap = microseconds(16);
  std::uint32_t entries = 32'768;
};

// Remembers the port of each flowlet. A flowlet keeps its port; the next one keeps it too if no
// other port has a better grade, but for the slack of the grades.
class PortChooser {
 public:
  // Unit::Connection has no chooser. Each switch has a seed of its own.
  PortChooser(const AdaptiveOptions& options, std::uint64_t seed)
      : grades_(options.grades), random_(seed) {
    if (options.unit == AdaptiveOptions::Unit::Flowlet) {
      flowlets_.emplace(options.gap, options.entries);
    }
  }

  // The position of the port that a packet of this flow takes at `now`, which must not fall, by the
  // bytes that wait at each of them.
  [[nodiscard]] std::uint32_t choose(std::span<const std::int64_t> queued, std::uint64_t flow,
                                     SimTime now) {
    const auto choose_after = [&](std::uint32_t previous) {
      random_ += 0x9E3779B97F4A7C15;  // The step of splitmix64.
      return choose_port(grades_, queued, previous,
                         static_cast<std::uint32_t>(mix64(random_) >> 32));
    };
    // Flows that share an entry may have other numbers of ports.
    return flowlets_ ? flowlets_->choice(hash64(flow), now, choose_after) %
                           static_cast<std::uint32_t>(queued.size())
                     : choose_after(kNoPort);
  }

 private:
  GradeRule grades_;
  std::uint64_t random_;
  std::optional<FlowletTable> flowlets_;
};

}  // namespace trainyard
