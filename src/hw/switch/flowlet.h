// SPDX-License-Identifier: Apache-2.0
// Flowlets: a flow may change its path after a gap that is longer than paths differ, and hardly any
// packet overtakes another (Sinha, Kandula, Katabi, "Harnessing TCP's burstiness with flowlet
// switching", HotNets 2004). LetFlow (Vanini et al., NSDI 2017) draws the path of each flowlet.
//
// The table is that of a switch: flows find an entry by their hash, and those that meet in one
// share it. Switches measure gaps with a bit that ages, so that theirs last from T to 2 T; here it
// is exactly T.
#pragma once

#include <cstdint>
#include <vector>

#include "hw/switch/port_choice.h"
#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

// One entry.
class Flowlet {
 public:
  // Returns whether a packet at `now` begins a flowlet: it is the first, or more than `gap` after
  // the last.
  bool begins(SimTime now, SimTime gap) {
    const bool is_new = !is_used_ || now - last_ > gap;
    is_used_ = true;
    last_ = now;
    return is_new;
  }

 private:
  SimTime last_;
  bool is_used_ = false;
};

class FlowletTable {
 public:
  // Entries are a power of two.
  FlowletTable(SimTime gap, std::uint32_t entries) : gap_(gap), slots_(entries) {
    CHECK(entries > 0 && (entries & (entries - 1)) == 0, "a table that is no power of two");
    CHECK(gap >= SimTime(), "a gap below zero");
  }

  // The choice for a packet of the flow with this hash: that of its flowlet, or, if it begins one,
  // what `choose(previous)` says; `previous` is kNoPort for the first one.
  template <typename Choose>
  std::uint32_t choice(std::uint64_t hash, SimTime now, const Choose& choose) {
    Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (slot.flowlet.begins(now, gap_)) {
      slot.choice = choose(slot.choice);
    }
    return slot.choice;
  }

 private:
  struct Slot {
    Flowlet flowlet;
    std::uint32_t choice = kNoPort;
  };
  SimTime gap_;
  std::vector<Slot> slots_;
};

}  // namespace trainyard
