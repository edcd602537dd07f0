// SPDX-License-Identifier: Apache-2.0
// Switches that choose the port of a packet at the instant at which it reaches them, by what waits
// at each port that leads on (hw/switch/port_chooser.h). docs/models/packet.md says how the engine
// works through such switches.
//
// The ways of a connection are paths of as many links. Where several of them have come by the same
// links up to a switch and go on by different ones, these form a fan. A packet carries a position
// on one of the paths, so that after a choice it is on one that goes that way; paths that share all
// links up to there count as one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "network/packet_parts/packet_port.h"
#include "sim/ids.h"

namespace trainyard {

// Returns the seed of the draws of a switch.
[[nodiscard]] std::uint64_t chooser_seed(std::uint64_t seed, NodeId node);

// Finds the switches where the paths of connections part.
class PacketFans {
 public:
  struct Branch {
    std::uint32_t port;
    std::uint32_t position;  // Position of that port on a path that goes this way.
  };
  // Ranges of the fabric's list of all paths: the first link of each path, and how many links each
  // has.
  struct Ways {
    std::vector<std::uint32_t> firsts;
    std::uint32_t hops = 0;
  };
  using CanChoose = std::function<bool(const Port&)>;  // Whether what sends there does.

  [[nodiscard]] bool empty() const { return fan_of_.empty(); }
  // Finds the fans of a connection. Ways that part where nothing chooses are left out, but the
  // first.
  void add(const Ways& ways, std::span<const std::uint32_t> positions, std::span<const Port> ports,
           const CanChoose& can_choose);
  // Returns whether several ports lead on from here. Positions of control packets are never in a
  // fan.
  [[nodiscard]] bool has(std::uint32_t position) const {
    return position < fan_of_.size() && fan_of_[position] != kNoIndex;
  }
  // Returns the branches of a position, in order of the links.
  [[nodiscard]] std::span<const Branch> at(std::uint32_t position) const {
    const Fan& fan = fans_[fan_of_[position]];
    return std::span(branches_).subspan(fan.first, fan.count);
  }

 private:
  struct Fan {
    std::uint32_t first;
    std::uint32_t count;
  };
  std::vector<std::uint32_t> fan_of_;  // Indexed by position, up to the last one in a fan.
  std::vector<Fan> fans_;
  std::vector<Branch> branches_;
};

}  // namespace trainyard
