// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/concurrent_groups.h"
#include "parallelism/model/pipeline_schedule.h"

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

TEST_CASE("the concurrent groups of a group are all groups of its kind", "[concurrent_groups]") {
  const ParallelPlan plan{.tensor = 2, .context = 2, .pipeline = 2, .data = 4, .expert = 8};
  ConcurrentGroups concurrent(plan, domains(plan));
  for (const RankGroupKind kind : {RankGroupKind::Tensor, RankGroupKind::Context,
                                   RankGroupKind::Gradient, RankGroupKind::Expert}) {
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const GroupsRanks group = group_of(plan, kind, rank);
      const ConcurrentGroups::Groups& all = concurrent.of(group);
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
  REQUIRE(concurrent.of({0, 1, 2}).empty());
}

TEST_CASE("parts of expert groups are concurrent with all of them", "[concurrent_groups]") {
  const ParallelPlan plan{.data = 32, .expert = 16};
  ConcurrentGroups concurrent(plan, domains(plan));
  REQUIRE(concurrent.of({0, 1, 2, 3, 4, 5, 6, 7}).size() == 4);
  const ConcurrentGroups::Groups& rails = concurrent.of({3, 11});
  REQUIRE(rails.size() == 16);
  REQUIRE(std::count(rails.begin(), rails.end(), GroupsRanks{19, 27}) == 1);
}

TEST_CASE("messages between stages have those of all pipelines beside them",
          "[concurrent_groups]") {
  ParallelPlan plan{.tensor = 2, .pipeline = 4, .data = 2};
  ConcurrentGroups concurrent(plan, domains(plan));
  REQUIRE(concurrent.of_message(0, 4) == ConcurrentGroups::Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  REQUIRE(concurrent.of_message(9, 13) ==
          ConcurrentGroups::Groups{{8, 12}, {9, 13}, {10, 14}, {11, 15}});
  REQUIRE(concurrent.of_message(4, 0) == ConcurrentGroups::Groups{{4, 0}, {5, 1}, {6, 2}, {7, 3}});
  REQUIRE(concurrent.of_message(0, 12).empty());
  // Interleaved, the last stage hands over to the first.
  plan.schedule = &kInterleaved;
  plan.chunks = 2;
  ConcurrentGroups interleaved(plan, domains(plan));
  REQUIRE(interleaved.of_message(12, 0).size() == 4);
}

TEST_CASE("tied embeddings join the ends of each pipeline", "[concurrent_groups]") {
  const ParallelPlan plan{.tensor = 2, .pipeline = 4, .data = 2};
  ConcurrentGroups concurrent(plan, domains(plan));
  const ConcurrentGroups::Groups& ends = concurrent.of({0, 12});
  REQUIRE(ends == ConcurrentGroups::Groups{{0, 12}, {1, 13}, {2, 14}, {3, 15}});
}

}  // namespace trainyard
