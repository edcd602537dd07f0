// SPDX-License-Identifier: Apache-2.0
// A connection of the packet engine whose packets take several paths: at the source which one each
// takes, at the target what is waited for. The source goes round its paths, in an order of its own
// so that connections do not move in step; the target hands on in order, as adapters do that place
// data out of order but complete in order.
#pragma once

#include <cstdint>
#include <vector>

#include "network/packet_parts/packet_port.h"

namespace trainyard {

class PacketSpray {
 public:
  struct SprayPath {
    std::uint32_t first = 0;  // Position of its first port.
    std::int64_t bytes = 0;   // Payload that took it.
    Picoseconds until = kNeverTime;
  };

  explicit PacketSpray(std::uint32_t first) : paths_{{.first = first}} {}
  // Put at a place that `draw` decides.
  void add_path(std::uint32_t first, std::uint64_t draw);
  [[nodiscard]] const std::vector<SprayPath>& paths() const { return paths_; }
  [[nodiscard]] std::vector<SprayPath>& paths() { return paths_; }

  // From `time` on no packet takes the path that begins at `first`. One must be left at any time.
  void retire(std::uint32_t first, Picoseconds time);

  // The first position of the path for a packet that begins at `now`.
  [[nodiscard]] std::uint32_t next_path(std::int64_t payload, Picoseconds now);

 private:
  std::vector<SprayPath> paths_;
  std::uint32_t turn_ = 0;
};

class SprayedArrivals {
 public:
  // The least number that has not come, and, when a packet comes, how many messages are whole.
  [[nodiscard]] std::uint32_t expected() const { return expected_; }
  [[nodiscard]] std::uint32_t arrive(std::uint32_t sequence, bool ends_message);

 private:
  enum class Came : std::uint8_t { No, Yes, EndsMessage };

  void grow(std::uint32_t distance);

  std::uint32_t expected_ = 0;
  // Packets beyond the expected one, by number modulo the size, a power of two.
  std::vector<Came> came_ = std::vector<Came>(64);
};

}  // namespace trainyard
