// SPDX-License-Identifier: Apache-2.0
// Adaptive routing in a switch: which of several ports a packet takes, by what waits at each.
//
// Switches compare grades and not bytes: DeTail (Zats et al., SIGCOMM 2012) has three, below 16 KB,
// below 64 KB and above. Of the ports with the best grade it draws one. With a step of one byte
// this is the shortest queue. `slack` keeps a flow at the port that it had as long as that is no
// more than so many grades worse.
#pragma once

#include <cstdint>
#include <span>

#include "sim/check.h"
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

}  // namespace trainyard
