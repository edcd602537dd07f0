// SPDX-License-Identifier: Apache-2.0
// A connection of the packet engine whose packets take several paths: which one each takes, and
// what the target waits for. The source goes round its paths, in an order of its own so that
// connections do not move in step; the target hands on in order, as adapters do that place data out
// of order but complete in order.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet_ring.h"

namespace trainyard {

class PacketSpray {
 public:
  struct SprayPath {
    std::uint32_t first = 0;  // Position of its first port.
    std::int64_t bytes = 0;   // Payload that took it.
  };

  explicit PacketSpray(std::uint32_t first) : paths_{{.first = first}} {}
  // Put at a place that `draw` decides.
  void add_path(std::uint32_t first, std::uint64_t draw);
  [[nodiscard]] const std::vector<SprayPath>& paths() const { return paths_; }

  // Of the source: the first position of the path for the packet with this number.
  [[nodiscard]] std::uint32_t next_path(std::int64_t payload, std::uint32_t sequence,
                                        bool ends_message);

  // Of the target: the least number that has not come, and, when a packet comes, how many messages
  // are whole with it.
  [[nodiscard]] std::uint32_t expected() const { return expected_; }
  [[nodiscard]] std::uint32_t arrive(std::uint32_t sequence);

 private:
  void grow(std::uint32_t distance);

  std::vector<SprayPath> paths_;
  std::uint32_t turn_ = 0;
  Ring<std::uint32_t> ends_;  // Numbers of the last packets of messages that are not whole.
  std::uint32_t expected_ = 0;
  // By number modulo the size, a power of two: what came beyond the expected one.
  std::vector<std::uint8_t> came_ = std::vector<std::uint8_t>(64);
};

}  // namespace trainyard
