// SPDX-License-Identifier: Apache-2.0
// Lists which groups of ranks of a plan do the same at the same time: all groups of a kind, as all
// tensor ranks reduce their gradients when the first does, and all pipelines hand over when one
// does.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "parallelism/model/parallel_plan.h"
#include "parallelism/model/rank_groups.h"

namespace trainyard {

class ConcurrentGroups {
 public:
  using Groups = std::vector<std::vector<int>>;

  // `domain_of_rank`: the NVLink domain of each, by which experts are reached (expert_routing.h).
  ConcurrentGroups(const ParallelPlan& plan, std::vector<int> domain_of_rank);

  // All groups of the first kind that has this one, each in rising order, by their first ranks;
  // empty if no kind has it. Also the parts of expert groups within a domain and across domains.
  [[nodiscard]] const Groups& of(const std::vector<int>& ranks);
  // The messages of all pipelines from the stage of `from` to that of `to`, sender first; empty if
  // the two are not neighbours in a pipeline. Those of other stages come at other times: of
  // neighbours, one is in a forward pass while the other is in a backward pass.
  [[nodiscard]] const Groups& of_message(int from, int to);

 private:
  enum class Part : std::uint8_t { Whole, Domain, Rail };
  using Kind = std::pair<RankGroupKind, Part>;

  [[nodiscard]] std::vector<int> group(const Kind& kind, int rank) const;
  [[nodiscard]] const Groups& all(const Kind& kind);
  // Place of a rank in its pipeline, and its neighbour there; itself if it has none.
  struct Place {
    int stage = 0;
    int neighbour = 0;
  };
  [[nodiscard]] Place place(int rank, bool is_next) const;

  ParallelPlan plan_;
  std::vector<int> domain_of_rank_;
  std::map<Kind, Groups> known_;
  // Groups by place of the sender in its pipeline, to the next stage or to the one before.
  std::map<std::pair<int, bool>, Groups> messages_;
  Groups none_;
};

}  // namespace trainyard
