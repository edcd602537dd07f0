// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/expert_routing.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kMaxLoad = 1e9;
constexpr double kMaxFactor = 1e6;

// C(all - held, active) / C(all, active).
double share_without(std::int64_t all, std::int64_t held, std::int64_t active) {
  double share = 1.0;
  for (std::int64_t index = 0; index < active; ++index) {
    share *= static_cast<double>(std::max<std::int64_t>(0, all - held - index)) /
             static_cast<double>(all - index);
  }
  return share;
}

// Experts of a place, from `first` on, by group.
std::vector<std::int64_t> held_by_group(std::int64_t first, std::int64_t count,
                                        std::int64_t of_group, std::int64_t groups) {
  std::vector<std::int64_t> held;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t from = std::max(first, group * of_group);
    const std::int64_t to = std::min(first + count, (group + 1) * of_group);
    held.push_back(std::max<std::int64_t>(0, to - from));
  }
  return held;
}

// Probability of each number of experts within reach at the place: `active` groups are taken.
std::map<std::int64_t, double> reachable(const std::vector<std::int64_t>& held,
                                         std::int64_t active) {
  // Counts the choices by groups taken and experts held by them.
  std::map<std::pair<std::int64_t, std::int64_t>, double> choices{{{0, 0}, 1.0}};
  for (const std::int64_t count : held) {
    auto next = choices;
    for (const auto& [taken, ways] : choices) {
      if (taken.first < active) {
        next[{taken.first + 1, taken.second + count}] += ways;
      }
    }
    choices = std::move(next);
  }
  std::map<std::int64_t, double> found;
  double all = 0.0;
  for (const auto& [taken, ways] : choices) {
    if (taken.first == active) {
      found[taken.second] += ways;
      all += ways;
    }
  }
  for (auto& [count, probability] : found) {
    probability /= all;
  }
  return found;
}

void check_loads(const ConfigNode& list, const ExpertLoads::Layers& run, const Model& model) {
  for (std::int64_t layer = run.first; layer <= run.last; ++layer) {
    const auto& experts = model.layers[static_cast<std::size_t>(layer)].experts;
    const std::size_t count = experts ? static_cast<std::size_t>(experts->count) : 0;
    if (count != run.loads.size()) {
      list.fail(fmt::format("as many loads as layer {} has experts, {}", layer, count),
                fmt::format("{}", run.loads.size()));
    }
  }
  if (std::accumulate(run.loads.begin(), run.loads.end(), 0.0) <= 0.0) {
    list.fail("a load above zero", "none");
  }
}

}  // namespace

double expected_places(const Experts& experts, std::int64_t places) {
  CHECK(places > 0, "experts are somewhere");
  CHECK(experts.count % places == 0, "experts are sharded evenly");
  const std::int64_t of_place = experts.count / places;
  const std::int64_t of_group = experts.count / experts.groups;
  const std::int64_t within_reach = of_group * experts.active_groups;
  double sum = 0.0;
  for (std::int64_t place = 0; place < places; ++place) {
    const auto held = held_by_group(place * of_place, of_place, of_group, experts.groups);
    for (const auto& [count, probability] : reachable(held, experts.active_groups)) {
      sum += probability * (1.0 - share_without(within_reach, count, experts.active));
    }
  }
  return sum;
}

ExpertDomains expert_domains(const std::vector<int>& group, std::span<const int> domain_of_rank) {
  std::map<int, std::vector<int>> by_domain;
  for (const int rank : group) {
    by_domain[domain_of_rank[static_cast<std::size_t>(rank)]].push_back(rank);
  }
  const std::vector<int>& first = by_domain.at(domain_of_rank[static_cast<std::size_t>(group[0])]);
  const bool are_equal = std::all_of(by_domain.begin(), by_domain.end(), [&](const auto& one) {
    return one.second.size() == first.size();
  });
  if (!are_equal) {
    return {.domain = {group.front()}, .rail = group};
  }
  ExpertDomains domains{.domain = first, .rail = {}};
  for (const auto& [domain, ranks] : by_domain) {
    domains.rail.push_back(ranks.front());
  }
  std::sort(domains.rail.begin(), domains.rail.end());
  return domains;
}

double fullest_rank(const ExpertLoads& loads, std::int64_t layer, const Experts& experts,
                    std::int64_t ranks) {
  const auto found = std::find_if(
      loads.layers.begin(), loads.layers.end(),
      [&](const ExpertLoads::Layers& one) { return one.first <= layer && layer <= one.last; });
  if (found == loads.layers.end()) {
    if (ranks == 1) {
      return 1.0;  // It has all experts.
    }
    return loads.capacity ? std::min(loads.imbalance, *loads.capacity) : loads.imbalance;
  }
  CHECK(found->loads.size() == static_cast<std::size_t>(experts.count), "a load for each expert");
  const double mean = std::accumulate(found->loads.begin(), found->loads.end(), 0.0) /
                      static_cast<double>(experts.count);
  const auto of_rank = static_cast<std::ptrdiff_t>(experts.count / ranks);
  double max = 0.0;
  for (auto rank = found->loads.begin(); rank != found->loads.end(); rank += of_rank) {
    double sum = 0.0;
    for (auto load = rank; load != rank + of_rank; ++load) {
      sum += loads.capacity ? std::min(*load, *loads.capacity * mean) : *load;
    }
    max = std::max(max, sum);
  }
  return max / (mean * static_cast<double>(of_rank));
}

void expert_load_fields(Fields& fields, ExpertLoads& loads, const Model& model) {
  constexpr Number kFactor{1.0, kMaxFactor};
  const std::int64_t last = std::max<std::int64_t>(0, std::ssize(model.layers) - 1);
  fields.optional("imbalance", loads.imbalance, kFactor, "Load of the fullest rank over the mean.");
  fields.optional("capacity", loads.capacity, kFactor, "Most that an expert takes, over the mean.");
  const auto run_fields = [&](Fields& of_run, ExpertLoads::Layers& run) {
    of_run.required("first", run.first, Whole{0, last}, "First layer.");
    of_run.required("last", run.last, Whole{run.first, last}, "Last layer.");
    of_run.required("loads", run.loads, List{Number{0.0, kMaxLoad}}, "One for each expert.");
    of_run.check([&](const ConfigNode& node) { check_loads(node.required("loads"), run, model); });
  };
  fields.optional("layers", loads.layers, List{Group{run_fields}}, "Loads of experts by layers.");
}

}  // namespace trainyard
