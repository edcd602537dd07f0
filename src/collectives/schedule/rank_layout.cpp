// SPDX-License-Identifier: Apache-2.0
#include "collectives/schedule/rank_layout.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "sim/check.h"

namespace trainyard {

std::vector<std::uint32_t> RankLayout::first_ranks() const {
  std::vector<std::uint32_t> first{0};
  first.reserve(node_kinds.size() + 1);
  for (int node = 0; node < nodes(); ++node) {
    first.push_back(first.back() + static_cast<std::uint32_t>(local_order(node, 0).size()));
  }
  return first;
}

int RankLayout::ranks() const {
  return static_cast<int>(first_ranks().back());
}

int RankLayout::max_ranks_per_node() const {
  std::size_t max = 0;
  for (int node = 0; node < nodes(); ++node) {
    max = std::max(max, local_order(node, 0).size());
  }
  return static_cast<int>(max);
}

int RankLayout::min_ranks_per_node() const {
  std::size_t min = local_order(0, 0).size();
  for (int node = 1; node < nodes(); ++node) {
    min = std::min(min, local_order(node, 0).size());
  }
  return static_cast<int>(min);
}

std::vector<int> RankLayout::ring_order(int channel) const {
  std::vector<int> ring;
  ring.reserve(static_cast<std::size_t>(ranks()));
  for (int node = 0; node < nodes(); ++node) {
    const auto first = static_cast<int>(ring.size());
    const std::vector<int>& order = local_order(node, channel);
    if (alternate && node % 2 == 1) {
      std::transform(order.rbegin(), order.rend(), std::back_inserter(ring),
                     [first](int local) { return first + local; });
    } else {
      std::ranges::transform(order, std::back_inserter(ring),
                             [first](int local) { return first + local; });
    }
  }
  return ring;
}

RankLayout even_layout(int nodes, LocalOrders orders) {
  RankLayout layout;
  layout.kinds.push_back(std::move(orders));
  layout.node_kinds.assign(static_cast<std::size_t>(nodes), 0);
  return layout;
}

RankLayout flat_layout(int ranks, int channels) {
  std::vector<int> natural(static_cast<std::size_t>(ranks));
  std::iota(natural.begin(), natural.end(), 0);
  return even_layout(1, LocalOrders(static_cast<std::size_t>(channels), natural));
}

namespace {

// Depth-first search for the greatest number of cycles that can be taken together. A cycle and
// those before it in the order of generation are never looked at again after it was passed over, so
// each set is seen once. Exact where the budget suffices (8 GPUs of a cube mesh: some thousand
// steps).
class RingSearch {
 public:
  explicit RingSearch(const std::vector<std::vector<int>>& lanes)
      : free_(lanes), size_(lanes.size()) {}

  std::vector<std::vector<int>> best() {
    if (size_ < 2) {
      return {};
    }
    std::vector<int> cycle{0};
    std::vector<bool> visited(size_, false);
    visited[0] = true;
    enumerate(cycle, visited);
    max_possible_ = max_possible();
    take(0);
    return best_;
  }

 private:
  static constexpr std::size_t kMaxCycles = 20'000;
  static constexpr std::size_t kMaxSteps = 2'000'000;

  void enumerate(std::vector<int>& cycle, std::vector<bool>& visited) {
    if (cycles_.size() >= kMaxCycles || ++looked_ > kMaxSteps) {
      return;
    }
    const auto last = static_cast<std::size_t>(cycle.back());
    if (cycle.size() == size_) {
      if (free_[last][0] > 0) {
        cycles_.push_back(cycle);
      }
      return;
    }
    for (std::size_t next = 1; next < size_; ++next) {
      if (!visited[next] && free_[last][next] > 0) {
        visited[next] = true;
        cycle.push_back(static_cast<int>(next));
        enumerate(cycle, visited);
        cycle.pop_back();
        visited[next] = false;
      }
    }
  }

  // No more rings than links leave or enter any GPU.
  [[nodiscard]] std::size_t max_possible() const {
    int min = free_[0][0] + std::accumulate(free_[0].begin(), free_[0].end(), 0);
    for (std::size_t gpu = 0; gpu < size_; ++gpu) {
      int in = 0;
      for (std::size_t other = 0; other < size_; ++other) {
        in += free_[other][gpu];
      }
      min = std::min({min, in, std::accumulate(free_[gpu].begin(), free_[gpu].end(), 0)});
    }
    return static_cast<std::size_t>(min);
  }

  [[nodiscard]] int room(const std::vector<int>& cycle) const {
    int min = free_[static_cast<std::size_t>(cycle.back())][0];
    for (std::size_t i = 0; i + 1 < cycle.size(); ++i) {
      min = std::min(
          min, free_[static_cast<std::size_t>(cycle[i])][static_cast<std::size_t>(cycle[i + 1])]);
    }
    return min;
  }
  void use(const std::vector<int>& cycle, int count) {
    free_[static_cast<std::size_t>(cycle.back())][0] -= count;
    for (std::size_t i = 0; i + 1 < cycle.size(); ++i) {
      free_[static_cast<std::size_t>(cycle[i])][static_cast<std::size_t>(cycle[i + 1])] -= count;
    }
  }

  // True when no better set can be found, or the budget is spent.
  bool take(std::size_t first) {
    if (taken_.size() > best_.size()) {
      best_ = taken_;
    }
    if (best_.size() >= max_possible_ || ++steps_ > kMaxSteps) {
      return true;
    }
    for (std::size_t index = first; index < cycles_.size(); ++index) {
      if (room(cycles_[index]) > 0) {
        use(cycles_[index], 1);
        taken_.push_back(cycles_[index]);
        const bool done = take(index);
        taken_.pop_back();
        use(cycles_[index], -1);
        if (done) {
          return true;
        }
      }
    }
    return false;
  }

  std::vector<std::vector<int>> free_;
  std::size_t size_;
  std::vector<std::vector<int>> cycles_;
  std::vector<std::vector<int>> taken_;
  std::vector<std::vector<int>> best_;
  std::size_t max_possible_ = 0;
  std::size_t looked_ = 0;
  std::size_t steps_ = 0;
};

}  // namespace

std::vector<std::vector<int>> disjoint_rings(const std::vector<std::vector<int>>& lanes) {
  for (const std::vector<int>& row : lanes) {
    CHECK(row.size() == lanes.size(), "the matrix of links is not square");
  }
  return RingSearch(lanes).best();
}

}  // namespace trainyard
