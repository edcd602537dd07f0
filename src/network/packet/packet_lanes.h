// SPDX-License-Identifier: Apache-2.0
// Classes of data on the links of the fabric. Each port has a queue for each class, PFC stops each
// class alone, and a scheduler says whose packet goes next (hw/switch/priority_scheduler.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hw/switch/pfc.h"
#include "hw/switch/priority_scheduler.h"

namespace trainyard {

struct LaneOptions {
  static constexpr std::size_t kLanes = kPriorities;

  std::uint8_t usual = 3;     // The class of connections that name none.
  std::uint8_t lossless = 0;  // Bit i: PFC, where it is on, stops class i. Others may lose packets.
  std::uint8_t strict = 0;    // Bit i: class i goes before all that are not strict.
  // Weights of the other lanes: full packets that they may send in a turn. At least 1.
  std::array<int, kLanes> weights{1, 1, 1, 1, 1, 1, 1, 1};

  [[nodiscard]] bool is_lossless(std::uint32_t lane) const { return (lossless >> lane & 1U) != 0; }
  // `largest`: bytes on the line of the largest packet.
  [[nodiscard]] PriorityScheduler::Sizes quanta(std::int64_t largest) const {
    PriorityScheduler::Sizes sizes{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sizes[lane] = weights[lane] * largest;
    }
    return sizes;
  }
};

struct PacketOptions;

// Throws ConfigError for lanes that make no sense.
void check_lanes(const PacketOptions& options);

}  // namespace trainyard
