// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates once more, as simply as they can be written, for comparison with
// network/flow/max_min.h, and random path sets to compare on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "network/flow/max_min.h"
#include "sim/random.h"

namespace trainyard {

struct MaxMinInstance {
  std::vector<Bandwidth> capacities;
  std::vector<std::vector<MaxMinSolver::LinkIndex>> paths;  // One for each class.
};

// Progressive filling in integers: the share of a link is floor(capacity left / flows left); all
// links of the least share fix their flows at once. Zero for a class without flows.
std::vector<FlowRate> naive_rates(const MaxMinInstance& instance,
                                  const std::vector<std::uint32_t>& flows);

// The same in real numbers, one link at a time.
std::vector<long double> real_rates(const MaxMinInstance& instance,
                                    const std::vector<std::uint32_t>& flows);

// What is wrong with these rates, or nothing: a link above its capacity; a class with flows without
// a link on its path that is full but for rounding and where no class has a greater rate.
std::string max_min_violation(const MaxMinInstance& instance,
                              const std::vector<std::uint32_t>& flows,
                              const std::vector<FlowRate>& rates);

// Capacities of a few hundred Gb/s; with `coarse` of a few bit/s, so that rounding shows.
MaxMinInstance random_paths(RandomStream& random, std::size_t links, std::size_t classes,
                            std::size_t longest, bool coarse);
// From any host of one switch to any other; even links lead to it, odd ones away.
MaxMinInstance random_star(RandomStream& random, std::size_t hosts, std::size_t classes);
// From any host to any other over one of as many spines as a leaf has hosts.
MaxMinInstance random_clos(RandomStream& random, std::size_t leaves, std::size_t hosts_per_leaf,
                           std::size_t classes);

}  // namespace trainyard
