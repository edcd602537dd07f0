// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/sister_groups.h"
#include "parallelism/model/whole_backward_schedules.h"

#include <algorithm>
#include <vector>

namespace trainyard {
namespace {

using GroupsRanks = std::vector<int>;

// Servers of eight.
GroupsRanks domains(const ParallelPlan& plan) {
  GroupsRanks of_rank;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    of_rank.push_back(rank / 8);
  }
  return of_rank;
}

}  // namespace

TEST_CASE("the sisters of a group are all groups of its kind", "[sister_groups]") {
  const ParallelPlan plan{.tensor = 2, .context = 2, .pipeline = 2, .data = 4, .expert = 8};
  SisterGroups sisters(plan, domains(plan));
  for (const RankGroupKind kind : {RankGroupKind::Tensor, RankGroupKind::Context,
                                   RankGroupKind::Gradient, RankGroupKind::Expert}) {
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const GroupsRanks group = group_of(plan, kind, rank);
      const SisterGroups::Groups& all = sisters.of(group);
      REQUIRE(static_cast<int>(all.size()) == plan.ranks() / group_size(plan, kind));
      REQUIRE(std::count(all.begin(), all.end(), group) == 1);
      GroupsRanks members;
      for (const GroupsRanks& one : all) {
        members.insert(members.end(), one.begin(), one.end());
      }
      std::sort(members.begin(), members.end());
      REQUIRE(std::unique(members.begin(), members.end()) == members.end());
      REQUIRE(static_cast<int>(members.size()) == plan.ranks());
    }
  }
  REQUIRE(sisters.of({0, 1, 2}).empty());
}

TEST_CASE("parts of expert groups have sisters in all of them", "[sister_groups]") {
  const ParallelPlan plan{.data = 32, .expert = 16};
  SisterGroups sisters(plan, domains(plan));
  REQUIRE(sisters.of({0, 1, 2, 3, 4, 5, 6, 7}).size() == 4);
  const SisterGroups::Groups& rails = sisters.of({3, 11});
  REQUIRE(rails.size() == 16);
  REQUIRE(std::count(rails.begin(), rails.end(), GroupsRanks{19, 27}) == 1);
}

TEST_CASE("messages between stages have those of all pipelines beside them", "[sister_groups]") {
  ParallelPlan plan{.tensor = 2, .pipeline = 4, .data = 2};
  SisterGroups sisters(plan, domains(plan));
  REQUIRE(sisters.of_message(0, 4) == SisterGroups::Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  REQUIRE(sisters.of_message(9, 13) == SisterGroups::Groups{{8, 12}, {9, 13}, {10, 14}, {11, 15}});
  REQUIRE(sisters.of_message(4, 0) == SisterGroups::Groups{{4, 0}, {5, 1}, {6, 2}, {7, 3}});
  REQUIRE(sisters.of_message(0, 12).empty());
  // Interleaved, the last stage hands over to the first.
  plan.schedule = &kInterleaved;
  plan.chunks = 2;
  SisterGroups interleaved(plan, domains(plan));
  REQUIRE(interleaved.of_message(12, 0).size() == 4);
}

TEST_CASE("tied embeddings join the ends of each pipeline", "[sister_groups]") {
  const ParallelPlan plan{.tensor = 2, .pipeline = 4, .data = 2};
  SisterGroups sisters(plan, domains(plan));
  const SisterGroups::Groups& ends = sisters.of({0, 12});
  REQUIRE(ends == SisterGroups::Groups{{0, 12}, {1, 13}, {2, 14}, {3, 15}});
}

}  // namespace trainyard
