// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pass_list.h"

#include <algorithm>

#include "sim/check.h"

namespace trainyard {

void PassList::forward(int chunk) {
  add(PassKind::Forward, chunk, forwards_.at(at(chunk))++);
}

void PassList::backward(int chunk) {
  add(PassKind::Backward, chunk, backwards_.at(at(chunk))++);
}

void PassList::input_gradient(int chunk) {
  const int micro_batch = backwards_.at(at(chunk))++;
  add(PassKind::InputGradient, chunk, micro_batch);
  pending_.push_back(
      {.kind = PassKind::WeightGradient, .micro_batch = micro_batch, .chunk = chunk});
}

void PassList::weight_gradient() {
  CHECK(!pending_.empty(), "a gradient of weights comes after that of inputs");
  weight_gradient(pending_.front().chunk);
}

bool PassList::weight_gradient(int chunk) {
  const auto oldest = std::find_if(pending_.begin(), pending_.end(),
                                   [&](const Pass& pass) { return pass.chunk == chunk; });
  if (oldest == pending_.end()) {
    return false;
  }
  passes_.push_back(*oldest);
  pending_.erase(oldest);
  return true;
}

void PassList::all_weight_gradients() {
  while (!pending_.empty()) {
    weight_gradient();
  }
}

void PassList::pair(int forward_chunk, int backward_chunk) {
  forward(forward_chunk);
  passes_.back().with_next = true;
  backward(backward_chunk);
}

void PassList::add(PassKind kind, int chunk, int micro_batch) {
  passes_.push_back({.kind = kind, .micro_batch = micro_batch, .chunk = chunk});
}

}  // namespace trainyard
