// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/rank_groups.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/check.h"

namespace trainyard {
namespace {

std::size_t at(PlanAxis axis) {
  return static_cast<std::size_t>(axis);
}

// The axes: the degree of each, and how far apart neighbours on it are.
struct Grid {
  explicit Grid(const ParallelPlan& plan) : degrees(plan.degrees()) {
    int stride = 1;
    for (const PlanAxis axis : plan.order) {
      strides[at(axis)] = stride;
      stride *= degrees[at(axis)];
    }
  }

  [[nodiscard]] int place(int rank, PlanAxis axis) const {
    return rank / strides[at(axis)] % degrees[at(axis)];
  }

  std::array<int, 4> degrees;
  std::array<int, 4> strides = {};
};

std::vector<int> along(const Grid& grid, PlanAxis axis, int rank) {
  std::vector<int> ranks;
  const int own = grid.place(rank, axis);
  for (int place = 0; place < grid.degrees[at(axis)]; ++place) {
    ranks.push_back(rank + (place - own) * grid.strides[at(axis)]);
  }
  return ranks;
}

std::vector<int> gradient_group(const Grid& grid, int rank) {
  std::vector<int> ranks;
  for (const int of_data : along(grid, PlanAxis::Data, rank)) {
    const std::vector<int> row = along(grid, PlanAxis::Context, of_data);
    ranks.insert(ranks.end(), row.begin(), row.end());
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

// Returns those of `all` whose index is that of `rank` in the digit of weight `stride` and base
// `count`.
std::vector<int> part_of(const std::vector<int>& all, int rank, int stride, int count) {
  const auto found = std::find(all.begin(), all.end(), rank);
  CHECK(found != all.end(), "a rank is in its own group");
  const auto index = static_cast<int>(found - all.begin());
  const int first = index - index / stride % count * stride;
  std::vector<int> ranks;
  for (int place = 0; place < count; ++place) {
    ranks.push_back(all[static_cast<std::size_t>(first + place * stride)]);
  }
  return ranks;
}

// All ranks of a stage of the pipeline.
std::vector<int> stage_ranks(const ParallelPlan& plan, const Grid& grid, int rank) {
  std::vector<int> ranks;
  for (int other = 0; other < plan.ranks(); ++other) {
    if (grid.place(other, PlanAxis::Pipeline) == grid.place(rank, PlanAxis::Pipeline)) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

}  // namespace

int group_size(const ParallelPlan& plan, RankGroupKind kind) {
  switch (kind) {
    case RankGroupKind::Tensor:
      return plan.tensor;
    case RankGroupKind::Context:
      return plan.context;
    case RankGroupKind::Pipeline:
      return plan.pipeline;
    case RankGroupKind::Gradient:
      return plan.gradient_ranks();
    case RankGroupKind::Shard:
      return plan.shards();
    case RankGroupKind::Replica:
      return plan.gradient_ranks() / plan.shards();
    case RankGroupKind::Expert:
      return plan.expert;
    case RankGroupKind::ExpertTensor:
      return plan.expert_tensor;
    case RankGroupKind::ExpertGradient:
      return plan.expert_gradient_ranks();
    case RankGroupKind::Ends:
      return plan.pipeline > 1 ? 2 : 1;
  }
  return 1;
}

std::vector<int> group_of(const ParallelPlan& plan, RankGroupKind kind, int rank) {
  const Grid grid(plan);
  switch (kind) {
    case RankGroupKind::Tensor:
      return along(grid, PlanAxis::Tensor, rank);
    case RankGroupKind::Context:
      return along(grid, PlanAxis::Context, rank);
    case RankGroupKind::Pipeline:
      return along(grid, PlanAxis::Pipeline, rank);
    case RankGroupKind::Gradient:
      return gradient_group(grid, rank);
    case RankGroupKind::Shard:
      return part_of(gradient_group(grid, rank), rank, 1, plan.shards());
    case RankGroupKind::Replica:
      return part_of(gradient_group(grid, rank), rank, plan.shards(),
                     group_size(plan, RankGroupKind::Replica));
    case RankGroupKind::ExpertTensor:
      return part_of(stage_ranks(plan, grid, rank), rank, 1, plan.expert_tensor);
    case RankGroupKind::Expert:
      return part_of(stage_ranks(plan, grid, rank), rank, plan.expert_tensor, plan.expert);
    case RankGroupKind::ExpertGradient:
      return part_of(stage_ranks(plan, grid, rank), rank, plan.expert_tensor * plan.expert,
                     plan.expert_gradient_ranks());
    case RankGroupKind::Ends: {
      const std::vector<int> all = along(grid, PlanAxis::Pipeline, rank);
      return all.size() == 1 ? all : std::vector<int>{all.front(), all.back()};
    }
  }
  return {rank};
}

std::vector<int> widest_group(const ParallelPlan& plan, RankGroupKind kind,
                              std::span<const int> server_of_rank) {
  std::vector<bool> seen(server_of_rank.size(), false);
  std::vector<int> widest;
  std::size_t max = 0;
  // Stages are alike but for their place, and groups of experts cost a pass over all ranks each: a
  // few stages' worth of ranks are looked at.
  constexpr int kMaxLooks = 256;
  int looks = 0;
  for (int rank = 0; rank < plan.ranks() && looks < kMaxLooks; ++rank) {
    if (seen[static_cast<std::size_t>(rank)]) {
      continue;
    }
    ++looks;
    std::vector<int> group = group_of(plan, kind, rank);
    std::vector<int> servers;
    for (const int member : group) {
      seen[static_cast<std::size_t>(member)] = true;
      servers.push_back(server_of_rank[static_cast<std::size_t>(member)]);
    }
    std::sort(servers.begin(), servers.end());
    const auto count =
        static_cast<std::size_t>(std::unique(servers.begin(), servers.end()) - servers.begin());
    if (count > max) {
      max = count;
      widest = std::move(group);
    }
  }
  return widest;
}

}  // namespace trainyard
