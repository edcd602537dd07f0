// SPDX-License-Identifier: Apache-2.0
// A switch of the fabric with its shared buffer, as the packet engine works through it.
//
// The buffer couples the ports of a switch: whether a packet is admitted, and whether the sender is
// told to stop, depends on what all ports hold at that instant. That order matters only near a
// threshold, so a switch is in one of three modes in a window, with the same results:
//   open     what it holds and gets in this window could not bring any group to its threshold if
//            one group held it all: nothing is counted but the sum;
//   counted  no group can reach its threshold in this window: ports are worked through one after
//            the other, and the buffer is told of each packet in any order;
//   exact    all ports together, event by event.
// From open to counted the buffer is told of all that the queues hold. Where switches choose ports
// none is ever open, and one that gets data in a window for which it has still to choose is exact.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hw/switch/port_chooser.h"
#include "hw/switch/shared_buffer.h"
#include "network/packet_parts/packet_port.h"

namespace trainyard {

struct PacketSwitch {
  SharedBuffer buffer;
  std::vector<std::uint32_t> ports;      // Ports that send from here, in use.
  std::int64_t open_limit = 0;           // SwitchLoad::limit as long as it is open.
  std::uint64_t visited = kNeverWindow;  // The window in which it was last not open.
  std::uint32_t stopped = 0;             // Groups whose sender was told to stop.
  std::uint32_t to_send = 0;             // PFC frames that wait for their port.
  // State of watchdogs: ports whose packets are lost, by number and how many; the last window in
  // which one of them is polled.
  std::vector<bool> dropping = {};
  std::uint32_t storms = 0;
  std::uint64_t polled = kNeverWindow;
  // Chooser of a switch that chooses ports, and what it gets in this window and has not chosen one
  // for.
  std::optional<PortChooser> chooser = {};
  std::vector<Due> undecided = {};
};

// Keeps what is read for every packet apart from the rest, and from that of other workers.
struct alignas(64) SwitchLoad {
  // Bytes in its queues and on their way into them in this window.
  std::int64_t held = 0;
  // As long as the switch holds no more than this, no group can reach its threshold. Negative once
  // the buffer is counted.
  std::int64_t limit = 0;

  [[nodiscard]] bool is_open() const { return held <= limit; }
  [[nodiscard]] bool is_counted() const { return limit < 0; }
};

}  // namespace trainyard
