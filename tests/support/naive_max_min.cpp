// SPDX-License-Identifier: Apache-2.0
#include "support/naive_max_min.h"

#include <algorithm>
#include <limits>

namespace trainyard {

namespace {

FlowRate units(Bandwidth capacity) {
  return static_cast<FlowRate>(capacity.bits_per_second()) << kFlowRateFractionBits;
}

// Flows without a rate, for each link.
std::vector<std::uint64_t> count_unfixed(const MaxMinInstance& instance,
                                         const std::vector<std::uint32_t>& flows,
                                         const std::vector<bool>& fixed) {
  std::vector<std::uint64_t> count(instance.capacities.size());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    for (const MaxMinSolver::LinkIndex link : instance.paths[i]) {
      count[link] += fixed[i] ? 0 : flows[i];
    }
  }
  return count;
}

// Fixes the unfixed classes of the links marked `full` at this rate.
template <typename Rate>
void fix(const MaxMinInstance& instance, const std::vector<std::uint32_t>& flows,
         const std::vector<bool>& full, Rate rate, std::vector<Rate>& left,
         std::vector<bool>& fixed, std::vector<Rate>& rates) {
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto is_full = [&](MaxMinSolver::LinkIndex link) { return full[link]; };
    if (!fixed[i] && std::ranges::any_of(instance.paths[i], is_full)) {
      fixed[i] = true;
      rates[i] = rate;
      for (const MaxMinSolver::LinkIndex link : instance.paths[i]) {
        left[link] -= rate * static_cast<Rate>(flows[i]);
      }
    }
  }
}

template <typename Rate>
std::vector<Rate> filled(const MaxMinInstance& instance, const std::vector<std::uint32_t>& flows) {
  std::vector<Rate> left;
  for (const Bandwidth capacity : instance.capacities) {
    left.push_back(static_cast<Rate>(units(capacity)));
  }
  std::vector<Rate> rates(flows.size());
  std::vector<bool> fixed(flows.size());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    fixed[i] = flows[i] == 0;
  }
  while (std::ranges::find(fixed, false) != fixed.end()) {
    const std::vector<std::uint64_t> unfixed = count_unfixed(instance, flows, fixed);
    Rate min = std::numeric_limits<Rate>::max();
    for (std::size_t link = 0; link < left.size(); ++link) {
      if (unfixed[link] > 0) {
        min = std::min(min, left[link] / static_cast<Rate>(unfixed[link]));
      }
    }
    std::vector<bool> full(left.size());
    for (std::size_t link = 0; link < left.size(); ++link) {
      full[link] = unfixed[link] > 0 && !(left[link] / static_cast<Rate>(unfixed[link]) > min);
    }
    fix(instance, flows, full, min, left, fixed, rates);
  }
  return rates;
}

Bandwidth random_capacity(RandomStream& random) {
  constexpr std::int64_t kChoices[] = {100, 200, 400, 400, 400, 800};
  return gigabits_per_second(kChoices[random.below(std::size(kChoices))]);
}

}  // namespace

std::vector<FlowRate> naive_rates(const MaxMinInstance& instance,
                                  const std::vector<std::uint32_t>& flows) {
  return filled<FlowRate>(instance, flows);
}

std::vector<long double> real_rates(const MaxMinInstance& instance,
                                    const std::vector<std::uint32_t>& flows) {
  return filled<long double>(instance, flows);
}

std::string max_min_violation(const MaxMinInstance& instance,
                              const std::vector<std::uint32_t>& flows,
                              const std::vector<FlowRate>& rates) {
  std::vector<FlowRate> taken(instance.capacities.size());
  std::vector<FlowRate> greatest(taken.size());
  std::vector<std::uint64_t> count(taken.size());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    for (const MaxMinSolver::LinkIndex link : instance.paths[i]) {
      taken[link] += rates[i] * flows[i];
      greatest[link] = std::max(greatest[link], flows[i] > 0 ? rates[i] : 0);
      count[link] += flows[i];
    }
  }
  for (std::size_t link = 0; link < taken.size(); ++link) {
    if (taken[link] > units(instance.capacities[link])) {
      return "link " + std::to_string(link) + " is above its capacity";
    }
  }
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const auto limits = [&](MaxMinSolver::LinkIndex link) {
      return rates[i] == greatest[link] &&
             units(instance.capacities[link]) - taken[link] < count[link];
    };
    if (flows[i] > 0 && std::ranges::none_of(instance.paths[i], limits)) {
      return "no link limits class " + std::to_string(i);
    }
  }
  return "";
}

MaxMinInstance random_paths(RandomStream& random, std::size_t links, std::size_t classes,
                            std::size_t longest, bool coarse) {
  MaxMinInstance instance;
  for (std::size_t link = 0; link < links; ++link) {
    instance.capacities.push_back(coarse ? Bandwidth(static_cast<std::int64_t>(1 + random.below(2)))
                                         : random_capacity(random));
  }
  for (std::size_t i = 0; i < classes; ++i) {
    std::vector<MaxMinSolver::LinkIndex> path;
    const std::size_t length = 1 + random.below(std::min(longest, links));
    while (path.size() < length) {
      const auto link = static_cast<MaxMinSolver::LinkIndex>(random.below(links));
      if (std::ranges::find(path, link) == path.end()) {
        path.push_back(link);
      }
    }
    instance.paths.push_back(path);
  }
  return instance;
}

MaxMinInstance random_star(RandomStream& random, std::size_t hosts, std::size_t classes) {
  MaxMinInstance instance;
  instance.capacities.assign(2 * hosts, gigabits_per_second(400));
  for (std::size_t i = 0; i < classes; ++i) {
    const std::size_t source = random.below(hosts);
    const std::size_t target = (source + 1 + random.below(hosts - 1)) % hosts;
    instance.paths.push_back({static_cast<MaxMinSolver::LinkIndex>(2 * source),
                              static_cast<MaxMinSolver::LinkIndex>(2 * target + 1)});
  }
  return instance;
}

MaxMinInstance random_clos(RandomStream& random, std::size_t leaves, std::size_t hosts_per_leaf,
                           std::size_t classes) {
  const std::size_t hosts = leaves * hosts_per_leaf;
  MaxMinInstance instance;
  instance.capacities.assign(4 * hosts, gigabits_per_second(400));
  // Link 4i leaves host i, 4i + 1 leads to it; 4(leaf, spine) + 2 goes up, + 3 down.
  for (std::size_t i = 0; i < classes; ++i) {
    const std::size_t source = random.below(hosts);
    const std::size_t target = (source + 1 + random.below(hosts - 1)) % hosts;
    const std::size_t spine = random.below(hosts_per_leaf);
    std::vector<MaxMinSolver::LinkIndex> path{static_cast<MaxMinSolver::LinkIndex>(4 * source)};
    const std::size_t first_leaf = source / hosts_per_leaf;
    const std::size_t last_leaf = target / hosts_per_leaf;
    if (first_leaf != last_leaf) {
      path.push_back(
          static_cast<MaxMinSolver::LinkIndex>(4 * (first_leaf * hosts_per_leaf + spine) + 2));
      path.push_back(
          static_cast<MaxMinSolver::LinkIndex>(4 * (last_leaf * hosts_per_leaf + spine) + 3));
    }
    path.push_back(static_cast<MaxMinSolver::LinkIndex>(4 * target + 1));
    instance.paths.push_back(path);
  }
  return instance;
}

}  // namespace trainyard
