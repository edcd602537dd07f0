// SPDX-License-Identifier: Apache-2.0
// Divides the time of a step into parts that add up to it exactly.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "sim/units.h"

namespace trainyard {

enum class StepPart : std::uint8_t {
  Linear,       // Products of the layers with weights, and those that make tokens.
  Attention,    // Its core: scores and their sums over values.
  MemoryBound,  // Norms, activations, residuals, dropout, embedding.
  Casts,        // To and from FP8, from NF4.
  Head,         // Logits and loss.
  Host,         // The GPU waits for launches.
  Recompute,    // Everything that is computed again, with its traffic.
  Tensor,       // Exposed traffic of tensor ranks,
  Context,      // of context ranks,
  Expert,       // of expert ranks,
  Data,         // of ranks that share gradients or weights.
  Offload,      // Copies to and from host memory, as far as they show.
  Pipeline,     // Transfers between stages.
  Bubble,       // Waiting for other stages.
  Optimizer,
  Jitter,  // Spread of ranks that wait for each other in every step.
  Fixed,   // A constant time of each step.
};

inline constexpr std::size_t kStepParts = 17;

[[nodiscard]] inline std::string_view to_string(StepPart part) {
  constexpr std::array<std::string_view, kStepParts> kNames{
      "linear",    "attention", "memory_bound", "casts",  "head", "host",
      "recompute", "tensor",    "context",      "expert", "data", "offload",
      "pipeline",  "bubble",    "optimizer",    "jitter", "fixed"};
  return kNames[static_cast<std::size_t>(part)];
}

struct StepParts {
  std::array<SimTime, kStepParts> times = {};

  [[nodiscard]] SimTime& operator[](StepPart part) { return times[static_cast<std::size_t>(part)]; }
  [[nodiscard]] SimTime operator[](StepPart part) const {
    return times[static_cast<std::size_t>(part)];
  }
  [[nodiscard]] SimTime total() const {
    return std::accumulate(times.begin(), times.end(), SimTime());
  }
  StepParts& operator+=(const StepParts& other) {
    for (std::size_t index = 0; index < kStepParts; ++index) {
      times[index] += other.times[index];
    }
    return *this;
  }
  StepParts& operator-=(const StepParts& other) {
    for (std::size_t index = 0; index < kStepParts; ++index) {
      times[index] = times[index] - other.times[index];
    }
    return *this;
  }
  bool operator==(const StepParts&) const = default;
};

}  // namespace trainyard
