// SPDX-License-Identifier: Apache-2.0
// Writes the passes of one rank of a pipeline, and counts the micro-batches of each kind of pass:
// the generator of a schedule says only which kind is next.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {

// Each pass takes the next micro-batch of its kind and chunk; there are at most two chunks.
class PassList {
 public:
  void forward(int chunk = 0);
  void backward(int chunk = 0);
  // The gradient of the weights stays pending.
  void input_gradient(int chunk = 0);
  // The oldest pending one, which there must be.
  void weight_gradient();
  // The oldest pending one of this chunk; returns whether there was one.
  bool weight_gradient(int chunk);
  void all_weight_gradients();
  // A forward that runs at once with a whole backward.
  void pair(int forward_chunk, int backward_chunk);
  // Out of the order of micro-batches, and not counted.
  void add(PassKind kind, int chunk, int micro_batch);

  [[nodiscard]] int forwards(int chunk = 0) const { return forwards_.at(at(chunk)); }
  [[nodiscard]] int backwards(int chunk = 0) const { return backwards_.at(at(chunk)); }
  // Gradients of weights.
  [[nodiscard]] int pending() const { return static_cast<int>(pending_.size()); }
  [[nodiscard]] std::vector<Pass> passes() && { return std::move(passes_); }

 private:
  static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }

  std::vector<Pass> passes_;
  std::deque<Pass> pending_;  // In the order of the gradients of inputs.
  std::array<int, 2> forwards_{};
  std::array<int, 2> backwards_{};
};

}  // namespace trainyard
