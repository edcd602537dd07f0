// SPDX-License-Identifier: Apache-2.0
// Schedules in a V whose memory is controlled by their building block. Qi et al., "Pipeline
// Parallelism with Controllable Memory", arXiv 2405.15362.
//
// A building block says when each rank runs the passes of one micro-batch: the forwards of its two
// chunks, the gradients of the inputs of the second chunk and of the first one. Time is counted in
// slots, each as long as a pass of a chunk. The next micro-batch follows 6 slots later, so a rank
// has one slot for each of its passes, and gradients of weights fill those that are left. Between
// the forward of a chunk and its gradients lies its lifespan, and a rank holds a sixth of the sum
// of both lifespans. In a block the distances from rank to rank alone decide about them:
//
//            forwards down and up   gradients down and up   slots of both chunks   activations
//   V-Min                    1, 1                    1, 1                    4 p         p / 3
//   V-Half                   2, 1                    2, 1                    6 p         p / 2
//
// with activations in those of a whole micro-batch on a rank, of which 1F1B holds p. Some numbers
// of ranks need a gap at the turn, as two passes of a rank would have the same slot otherwise.
// With the gap and the constant part it is (p + 4) / 3 and (p + 2) / 2, rounded down, as the
// authors' page says (huggingface.co/spaces/sail/pipeline-parallelism-with-controllable-memory).
// The offsets are those of sail-sg/zero-bubble-pipeline-parallelism, zbv_greedy.py.
//
// As each rank runs its list without waiting for slots, the passes before and after the steady
// state close up by themselves ("squeezing"). After the last forward no pass but gradients is
// left, so those of inputs come first and those of weights fill the slots between them
// ("reordering").
#include "parallelism/model/pipeline_schedule.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <tuple>
#include <utility>

#include "parallelism/model/pass_list.h"

namespace trainyard {
namespace {

constexpr int kPassesOfMicroBatch = 6;

// The passes of a building block in the order in which a micro-batch meets them.
enum BlockPass : std::size_t { kForward0, kForward1, kGradient1, kGradient0, kBlockPasses };

// The slots of micro-batch 0 on a rank.
using Block = std::array<int, kBlockPasses>;
using BlockOf = Block (*)(int ranks, int rank);

Block half_block(int ranks, int rank) {
  const int gap = ranks % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * ranks - 2 - rank, 3 * ranks - 1 + gap + 2 * rank,
          6 * ranks - 2 + gap - rank};
}

Block min_block(int ranks, int rank) {
  const int gap = ranks % 3 == 0 ? 2 : 0;
  return {rank, 2 * ranks - 1 - rank, 2 * ranks + gap + rank, 4 * ranks - 1 + gap - rank};
}

// The slots of all ranks, without those of gradients of weights.
class BlockSlots {
 public:
  BlockSlots(const PipelineShape& shape, BlockOf block)
      : ranks_(shape.ranks),
        // The micro-batches before have nothing left to do after the last forward of rank 0.
        first_(std::max(0, shape.micro_batches - shape.ranks - 1)),
        count_(shape.micro_batches - first_),
        begin_(kPassesOfMicroBatch * (shape.micro_batches - 1)) {
    for (int rank = 0; rank < ranks_; ++rank) {
      blocks_.push_back(block(ranks_, rank));
      for (const int slot : blocks_.back()) {
        for (int index = 0; index < count_; ++index) {
          last_.push_back(slot + kPassesOfMicroBatch * (first_ + index));
        }
      }
    }
    reorder();
  }

  [[nodiscard]] int slot(int rank, std::size_t pass, int micro_batch) const {
    return micro_batch < first_ ? blocks_[static_cast<std::size_t>(rank)].at(pass) +
                                      kPassesOfMicroBatch * micro_batch
                                : last_[at(rank, pass, micro_batch)];
  }

 private:
  [[nodiscard]] std::size_t at(int rank, std::size_t pass, int micro_batch) const {
    const std::size_t row = static_cast<std::size_t>(rank) * kBlockPasses + pass;
    return row * static_cast<std::size_t>(count_) + static_cast<std::size_t>(micro_batch - first_);
  }

  // After the last forward of rank 0, each gradient of inputs takes the first slot that no other
  // pass has and that follows what it needs.
  void reorder() {
    // Slot, rank, pass, micro-batch.
    using Gradient = std::tuple<int, int, std::size_t, int>;
    std::vector<Gradient> gradients;
    std::vector<std::vector<bool>> taken(static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<bool>& of_rank = taken[static_cast<std::size_t>(rank)];
      of_rank.resize(kPassesOfMicroBatch * static_cast<std::size_t>(ranks_ + 2));
      for (std::size_t pass = 0; pass < kBlockPasses; ++pass) {
        for (int index = first_; index < first_ + count_; ++index) {
          const int slot = last_[at(rank, pass, index)];
          if (slot > begin_ && pass >= kGradient1) {
            gradients.emplace_back(slot, rank, pass, index);
          } else if (slot > begin_) {
            of_rank[static_cast<std::size_t>(slot - begin_)] = true;
          }
        }
      }
    }
    std::sort(gradients.begin(), gradients.end());
    for (const auto& [slot, rank, pass, index] : gradients) {
      std::vector<bool>& of_rank = taken[static_cast<std::size_t>(rank)];
      int earliest = std::max(begin_, needed(rank, pass, index)) + 1;
      while (of_rank[static_cast<std::size_t>(earliest - begin_)]) {
        ++earliest;
      }
      of_rank[static_cast<std::size_t>(earliest - begin_)] = true;
      last_[at(rank, pass, index)] = earliest;
    }
  }

  // The last slot of what a gradient of inputs needs: the same of the micro-batch before, the pass
  // before it on its rank, and the gradient of the stage behind.
  [[nodiscard]] int needed(int rank, std::size_t pass, int micro_batch) const {
    int last = slot(rank, pass - 1, micro_batch);
    if (micro_batch > 0) {
      last = std::max(last, slot(rank, pass, micro_batch - 1));
    }
    const int behind = pass == kGradient1 ? rank - 1 : rank + 1;
    if (behind >= 0 && behind < ranks_) {
      last = std::max(last, slot(behind, pass, micro_batch));
    }
    return last;
  }

  int ranks_;
  int first_;  // Micro-batch of those in last_,
  int count_;  // and how many.
  int begin_;  // The slot of the last forward of rank 0.
  std::vector<Block> blocks_;
  std::vector<int> last_;  // The index goes by rank, pass and micro-batch.
};

std::vector<Pass> passes_of_block(const PipelineShape& shape, int rank, BlockOf block) {
  const BlockSlots slots(shape, block);
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t pass = 0; pass < kBlockPasses; ++pass) {
    for (int index = 0; index < shape.micro_batches; ++index) {
      order.emplace_back(slots.slot(rank, pass, index), pass);
    }
  }
  std::sort(order.begin(), order.end());
  PassList list;
  int next = 0;
  for (const auto& [slot, pass] : order) {
    for (; next < slot && list.pending() > 0; ++next) {
      list.weight_gradient();
    }
    const int chunk = pass == kForward1 || pass == kGradient1 ? 1 : 0;
    if (pass < kGradient1) {
      list.forward(chunk);
    } else {
      list.input_gradient(chunk);
    }
    next = slot + 1;
  }
  list.all_weight_gradients();
  return std::move(list).passes();
}

}  // namespace

constinit const PipelineSchedule kVHalf{.name = "v-half",
                                        .chunks = 2,
                                        .layout = kVLayout,
                                        .splits_backward = true,
                                        .passes = [](const PipelineShape& shape, int rank) {
                                          return passes_of_block(shape, rank, half_block);
                                        }};

constinit const PipelineSchedule kVMin{.name = "v-min",
                                       .chunks = 2,
                                       .layout = kVLayout,
                                       .splits_backward = true,
                                       .passes = [](const PipelineShape& shape, int rank) {
                                         return passes_of_block(shape, rank, min_block);
                                       }};

}  // namespace trainyard
