// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/rank_groups.h"

#include <algorithm>
#include <array>
#include <vector>

namespace trainyard {
namespace {

using Ranks = std::vector<int>;

constexpr std::array kKinds{
    RankGroupKind::Tensor,   RankGroupKind::Context,      RankGroupKind::Pipeline,
    RankGroupKind::Gradient, RankGroupKind::Shard,        RankGroupKind::Replica,
    RankGroupKind::Expert,   RankGroupKind::ExpertTensor, RankGroupKind::ExpertGradient};

ParallelPlan plan_of() {
  return {.tensor = 2,
          .context = 3,
          .pipeline = 2,
          .data = 4,
          .expert = 4,
          .expert_tensor = 2,
          .zero_stage = 1,
          .shard_group = 6};
}

}  // namespace

TEST_CASE("groups of a kind are disjoint, cover all ranks and have its size", "[groups]") {
  for (const std::array<PlanAxis, 4>& order :
       {kMegatronOrder,
        std::array{PlanAxis::Data, PlanAxis::Pipeline, PlanAxis::Tensor, PlanAxis::Context}}) {
    ParallelPlan plan = plan_of();
    plan.order = order;
    for (const RankGroupKind kind : kKinds) {
      INFO(static_cast<int>(kind));
      for (int rank = 0; rank < plan.ranks(); ++rank) {
        const Ranks group = group_of(plan, kind, rank);
        REQUIRE(static_cast<int>(group.size()) == group_size(plan, kind));
        REQUIRE(std::is_sorted(group.begin(), group.end()));
        REQUIRE(std::count(group.begin(), group.end(), rank) == 1);
        for (const int member : group) {
          REQUIRE(group_of(plan, kind, member) == group);
        }
      }
    }
  }
}

TEST_CASE("axes lie on the machine in the order of the plan", "[groups]") {
  ParallelPlan plan = plan_of();
  REQUIRE(group_of(plan, RankGroupKind::Tensor, 5) == Ranks{4, 5});
  REQUIRE(group_of(plan, RankGroupKind::Context, 0) == Ranks{0, 2, 4});
  REQUIRE(group_of(plan, RankGroupKind::Pipeline, 1) == Ranks{1, 25});
  REQUIRE(group_of(plan, RankGroupKind::Gradient, 0).size() == 12);
  REQUIRE(group_of(plan, RankGroupKind::Shard, 0) == Ranks{0, 2, 4, 6, 8, 10});
  REQUIRE(group_of(plan, RankGroupKind::Replica, 0) == Ranks{0, 12});
  REQUIRE(group_of(plan, RankGroupKind::ExpertTensor, 0) == Ranks{0, 1});
  REQUIRE(group_of(plan, RankGroupKind::Expert, 1) == Ranks{1, 3, 5, 7});
  REQUIRE(group_of(plan, RankGroupKind::ExpertGradient, 24) == Ranks{24, 32, 40});
  REQUIRE(group_of(plan, RankGroupKind::Ends, 3) == Ranks{3, 27});
  plan.order = {PlanAxis::Pipeline, PlanAxis::Tensor, PlanAxis::Context, PlanAxis::Data};
  REQUIRE(group_of(plan, RankGroupKind::Pipeline, 1) == Ranks{0, 1});
  REQUIRE(group_of(plan, RankGroupKind::Tensor, 1) == Ranks{1, 3});
}

TEST_CASE("the widest group is the one on most servers", "[groups]") {
  const ParallelPlan plan{.tensor = 3, .data = 2};
  // Ranks 0 to 2 on one server, 3 to 5 on two.
  const Ranks servers{0, 0, 0, 0, 1, 1};
  REQUIRE(widest_group(plan, RankGroupKind::Tensor, servers) == Ranks{3, 4, 5});
  REQUIRE(widest_group(plan, RankGroupKind::Gradient, servers) == Ranks{1, 4});
}

}  // namespace trainyard
