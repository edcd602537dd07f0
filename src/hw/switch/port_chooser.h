// SPDX-License-Identifier: Apache-2.0
// A switch that chooses among several ports when a packet reaches it: by what waits at each
// (port_choice.h), for each packet or for each flowlet (flowlet.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hw/switch/flowlet.h"
#include "hw/switch/port_choice.h"
#include "sim/units.h"

namespace trainyard {

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
  PortChooser(const AdaptiveOptions& options, std::uint64_t seed);

  // The position of the port that a packet of this flow takes at `now`, which must not fall, by the
  // bytes that wait at each of them.
  [[nodiscard]] std::uint32_t choose(std::span<const std::int64_t> queued, std::uint64_t flow,
                                     SimTime now);

 private:
  [[nodiscard]] std::uint32_t draw();

  GradeRule grades_;
  std::uint64_t random_;
  std::optional<FlowletTable> flowlets_;
};

}  // namespace trainyard
