// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/concurrent_groups.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "sim/ids.h"

namespace trainyard {
namespace {

constexpr std::array kKinds{
    RankGroupKind::Gradient,     RankGroupKind::Shard,          RankGroupKind::Replica,
    RankGroupKind::Tensor,       RankGroupKind::Context,        RankGroupKind::Expert,
    RankGroupKind::ExpertTensor, RankGroupKind::ExpertGradient, RankGroupKind::Ends};

}  // namespace

ConcurrentGroups::ConcurrentGroups(const ParallelPlan& plan, std::vector<int> domain_of_rank)
    : plan_(plan), domain_of_rank_(std::move(domain_of_rank)) {}

std::vector<int> ConcurrentGroups::group(const Kind& kind, int rank) const {
  std::vector<int> whole = group_of(plan_, kind.first, rank);
  std::sort(whole.begin(), whole.end());
  if (kind.second == Part::Whole) {
    return whole;
  }
  std::map<int, std::vector<int>> by_domain;
  for (const int member : whole) {
    by_domain[domain_of_rank_[as_index(member)]].push_back(member);
  }
  const std::vector<int>& own = by_domain.at(domain_of_rank_[as_index(rank)]);
  if (kind.second == Part::Domain) {
    return own;
  }
  const auto place = std::find(own.begin(), own.end(), rank) - own.begin();
  std::vector<int> rail;
  for (const auto& [domain, members] : by_domain) {
    if (place < static_cast<std::ptrdiff_t>(members.size())) {
      rail.push_back(members[static_cast<std::size_t>(place)]);
    }
  }
  std::sort(rail.begin(), rail.end());
  return rail;
}

const ConcurrentGroups::Groups& ConcurrentGroups::all(const Kind& kind) {
  const auto [entry, fresh] = known_.try_emplace(kind);
  if (!fresh) {
    return entry->second;
  }
  std::vector<bool> seen(as_index(plan_.ranks()), false);
  for (int rank = 0; rank < plan_.ranks(); ++rank) {
    if (seen[as_index(rank)]) {
      continue;
    }
    std::vector<int> members = group(kind, rank);
    for (const int member : members) {
      seen[as_index(member)] = true;
    }
    // For tied embeddings, ranks of the stages in between have the group of the ends.
    if (std::find(members.begin(), members.end(), rank) != members.end()) {
      entry->second.push_back(std::move(members));
    }
  }
  return entry->second;
}

const ConcurrentGroups::Groups& ConcurrentGroups::of(const std::vector<int>& ranks) {
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto has = [&](const Kind& kind) { return group(kind, sorted.front()) == sorted; };
  for (const RankGroupKind kind : kKinds) {
    if (group_size(plan_, kind) == static_cast<int>(sorted.size()) && has({kind, Part::Whole})) {
      return all({kind, Part::Whole});
    }
  }
  for (const Part part : {Part::Domain, Part::Rail}) {
    if (plan_.expert > 1 && has({RankGroupKind::Expert, part})) {
      return all({RankGroupKind::Expert, part});
    }
  }
  return none_;
}

// In a ring, the last stage of a round hands over to the first of the next.
ConcurrentGroups::Place ConcurrentGroups::place(int rank, bool is_next) const {
  const std::vector<int> ranks = group_of(plan_, RankGroupKind::Pipeline, rank);
  const auto count = static_cast<int>(ranks.size());
  const auto own = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  const int other = own + (is_next ? 1 : -1);
  const bool is_last = other < 0 || other == count;
  if (is_last && !plan_.schedule->layout.is_ring) {
    return {.stage = own, .neighbour = rank};
  }
  return {.stage = own, .neighbour = ranks[as_index((other + count) % count)]};
}

const ConcurrentGroups::Groups& ConcurrentGroups::of_message(int from, int to) {
  if (plan_.pipeline == 1) {
    return none_;
  }
  for (const bool is_next : {true, false}) {
    const Place sender = place(from, is_next);
    if (sender.neighbour != to) {
      continue;
    }
    const auto [entry, fresh] = messages_.try_emplace({sender.stage, is_next});
    for (int rank = 0; fresh && rank < plan_.ranks(); ++rank) {
      const Place other = place(rank, is_next);
      if (other.stage == sender.stage) {
        entry->second.push_back({rank, other.neighbour});
      }
    }
    return entry->second;
  }
  return none_;
}

}  // namespace trainyard
