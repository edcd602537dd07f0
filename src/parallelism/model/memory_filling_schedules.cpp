// SPDX-License-Identifier: Apache-2.0
// ZB-1p and ZB-2p: schedules with a split backward that a search fills up to a limit of memory. Qi
// et al., arXiv 2401.10241, section 3.1; rules as in the authors' code, sail-sg/zero-bubble,
// scheduler/zb.py and runtime.py.
//
// All ranks are laid out together, micro-batch by micro-batch. Forwards come first for as long as
// the first backward is under way and memory lasts. From then on each rank runs a forward and a
// gradient of inputs by turns; a gradient of weights comes where memory would not last otherwise,
// and where the rank waits for a neighbour. For the search, passes of all stages last the same, as
// in that code: equal ones, as it starts with before it has measured any, and a transfer of a
// thousandth. The limit is p, or 2 p, times what a forward of the first or the second stage keeps,
// whichever keeps more; a stage with fewer layers may have more micro-batches in it.
//
// Two choices are tried out, and the shortest step wins: whether a forward before the first
// backward may delay it, and whether a gradient of weights that outlasts a wait runs all the same
// while another rank has idled for longer.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "parallelism/model/pass_list.h"
#include "parallelism/model/pipeline_schedule.h"

namespace trainyard {
namespace {

// Ticks of the search. sail-sg/zero-bubble, runtime.py: f, b, w and c of the first schedule.
constexpr std::int64_t kPassTicks = 1000;
constexpr std::int64_t kTransferTicks = 1;

struct FillChoice {
  bool delays_first_backward = false;
  bool overfills_waits = false;
};

class MemoryFill {
 public:
  MemoryFill(const PipelineShape& shape, int limit, const FillChoice& choice)
      : micro_batches_(shape.micro_batches), choice_(choice) {
    ranks_.resize(static_cast<std::size_t>(shape.ranks));
    for (std::size_t at = 0; at < ranks_.size(); ++at) {
      ranks_[at].memory = shape.stage_memory.empty()
                              ? StageMemory{.forward = Bytes(1), .weight = Bytes(1)}
                              : shape.stage_memory[at];
    }
    const std::size_t second = std::min<std::size_t>(1, ranks_.size() - 1);
    limit_ = std::max(ranks_[0].memory.forward, ranks_[second].memory.forward) *
             (static_cast<std::int64_t>(limit) * shape.ranks);
  }

  void run() {
    warm_up();
    for (int round = 1; round < micro_batches_; ++round) {
      run_forwards();
      for (std::size_t at = ranks_.size(); at-- > 0;) {
        make_room(ranks_[at], ranks_[at].memory.weight - ranks_[at].memory.forward);
        fill_wait(ranks_[at], gradient_arrival(at));
        if (at == 0 && ranks_[at].list.forwards() == micro_batches_) {
          finish(ranks_[at]);
        }
        input_gradient(at);
      }
    }
    for (Rank& rank : ranks_) {
      finish(rank);
    }
  }

  // From the first pass of a rank to its last, of the rank that takes longest.
  [[nodiscard]] std::int64_t longest() const {
    std::int64_t longest = 0;
    for (const Rank& rank : ranks_) {
      longest = std::max(longest, rank.free - rank.forward_ends.front() + kPassTicks);
    }
    return longest;
  }

  [[nodiscard]] std::vector<Pass> passes(int rank) && {
    return std::move(ranks_[static_cast<std::size_t>(rank)].list).passes();
  }

 private:
  struct Rank {
    PassList list;
    StageMemory memory = {};
    std::vector<std::int64_t> forward_ends = {};
    std::vector<std::int64_t> gradient_ends = {};
    std::int64_t free = 0;
    std::int64_t idle = 0;  // After its first pass.
    Bytes held = {};
  };

  void start(Rank& rank, std::int64_t arrival, Bytes change) {
    const std::int64_t wait = std::max<std::int64_t>(0, arrival - rank.free);
    rank.idle += rank.list.forwards() > 0 ? wait : 0;
    most_idle_ = std::max(most_idle_, rank.idle);
    rank.free += wait + kPassTicks;
    rank.held += change;
  }

  void forward(std::size_t at) {
    Rank& rank = ranks_[at];
    start(rank, input_arrival(at), rank.memory.forward);
    rank.list.forward();
    rank.forward_ends.push_back(rank.free);
  }

  void input_gradient(std::size_t at) {
    Rank& rank = ranks_[at];
    start(rank, gradient_arrival(at), rank.memory.weight - rank.memory.forward);
    rank.list.input_gradient();
    rank.gradient_ends.push_back(rank.free);
  }

  void weight_gradient(Rank& rank) {
    start(rank, 0, Bytes() - rank.memory.weight);
    rank.list.weight_gradient();
  }

  void finish(Rank& rank) {
    while (rank.list.pending() > 0) {
      weight_gradient(rank);
    }
  }

  // The input of the next forward of the rank.
  [[nodiscard]] std::int64_t input_arrival(std::size_t at) const {
    return at == 0 ? 0
                   : ranks_[at - 1].forward_ends[ranks_[at].forward_ends.size()] + kTransferTicks;
  }

  // The same of its next gradient of inputs.
  [[nodiscard]] std::int64_t gradient_arrival(std::size_t at) const {
    return at + 1 == ranks_.size()
               ? 0
               : ranks_[at + 1].gradient_ends[ranks_[at].gradient_ends.size()] + kTransferTicks;
  }

  // Forwards up to the first backward, and that.
  void warm_up() {
    for (std::size_t at = 0; at < ranks_.size(); ++at) {
      forward(at);
    }
    std::vector<int> more(ranks_.size());
    std::int64_t gradient = ranks_.back().free + kPassTicks;
    for (std::size_t at = ranks_.size() - 1; at-- > 0;) {
      const Rank& rank = ranks_[at];
      const std::int64_t arrival = gradient + kTransferTicks;
      std::int64_t end = rank.free;
      const auto is_in_time = [&] {
        return choice_.delays_first_backward ? end < arrival : end + kPassTicks <= arrival;
      };
      while (1 + more[at] < micro_batches_ && is_in_time() &&
             rank.held + rank.memory.forward * (more[at] + 1) <= limit_) {
        ++more[at];
        end += kPassTicks;
      }
      gradient = std::max(end, arrival) + kPassTicks;
    }
    for (std::size_t at = 0; at < ranks_.size(); ++at) {
      // A rank behind another has fewer on their way, unless there are no others.
      if (at > 0 && 1 + more[at] < micro_batches_) {
        more[at] = std::min(more[at], std::max(0, more[at - 1] - 1));
      }
      for (int i = 0; i < more[at]; ++i) {
        forward(at);
      }
    }
    for (std::size_t at = ranks_.size(); at-- > 0;) {
      input_gradient(at);
    }
  }

  // One forward on each rank that has any left, but for ranks that hold back and those before.
  void run_forwards() {
    std::size_t first = ranks_.size();
    while (first > 0 && ranks_[first - 1].list.forwards() < micro_batches_ &&
           !holds_back(first - 1)) {
      --first;
    }
    for (std::size_t at = first; at < ranks_.size(); ++at) {
      make_room(ranks_[at], ranks_[at].memory.forward);
      if (at > 0) {
        fill_wait(ranks_[at], input_arrival(at));
      }
      forward(at);
    }
  }

  // Whether the next gradient of inputs comes first, as the rank behind has forwards enough.
  [[nodiscard]] bool holds_back(std::size_t at) const {
    const Rank& rank = ranks_[at];
    if (at + 1 == ranks_.size() || rank.list.forwards() < ranks_[at + 1].list.forwards() + 2) {
      return false;
    }
    const std::int64_t gradient = ranks_[at + 1].free + 2 * kPassTicks + kTransferTicks;
    if (rank.free >= gradient) {
      return true;
    }
    int weights = 0;
    while (weights < rank.list.pending() &&
           rank.held + rank.memory.forward - rank.memory.weight * weights > limit_) {
      ++weights;
    }
    return rank.free + (1 + weights) * kPassTicks > gradient &&
           gradient - rank.free <= most_idle_ - rank.idle;
  }

  void make_room(Rank& rank, Bytes more) {
    while (rank.held + more > limit_ && rank.list.pending() > 0) {
      weight_gradient(rank);
    }
  }

  void fill_wait(Rank& rank, std::int64_t arrival) {
    while (rank.list.pending() > 0 && rank.free + kPassTicks <= arrival) {
      weight_gradient(rank);
    }
    const bool idles_most = arrival - rank.free > most_idle_ - rank.idle;
    if (rank.list.pending() > 0 && rank.free < arrival && (idles_most || choice_.overfills_waits)) {
      weight_gradient(rank);
    }
  }

  int micro_batches_;
  FillChoice choice_;
  std::vector<Rank> ranks_;
  Bytes limit_ = {};
  std::int64_t most_idle_ = 0;
};

std::vector<Pass> filled(const PipelineShape& shape, int rank, int limit) {
  constexpr std::array kChoices{FillChoice{.overfills_waits = true}, FillChoice{},
                                FillChoice{.delays_first_backward = true, .overfills_waits = true},
                                FillChoice{.delays_first_backward = true}};
  std::vector<MemoryFill> fills;
  for (const FillChoice& choice : kChoices) {
    fills.emplace_back(shape, limit, choice).run();
  }
  return std::move(*std::ranges::min_element(fills, {}, &MemoryFill::longest)).passes(rank);
}

}  // namespace

constinit const PipelineSchedule kZeroBubble1p{
    .name = "zb-1p",
    .splits_backward = true,
    .fills_memory = true,
    .passes = [](const PipelineShape& shape, int rank) { return filled(shape, rank, 1); }};

constinit const PipelineSchedule kZeroBubble2p{
    .name = "zb-2p",
    .splits_backward = true,
    .fills_memory = true,
    .passes = [](const PipelineShape& shape, int rank) { return filled(shape, rank, 2); }};

}  // namespace trainyard
