// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/host_memory.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "parallelism/model/rank_groups.h"

namespace trainyard {
namespace {

std::size_t place_in_pipeline(const ParallelPlan& plan, int rank) {
  const std::vector<int> group = group_of(plan, RankGroupKind::Pipeline, rank);
  return static_cast<std::size_t>(std::find(group.begin(), group.end(), rank) - group.begin());
}

// Use that does not fit is worse, then what lacks more, or takes more.
std::pair<bool, Bytes> badness(const HostMemoryUse& use) {
  return {!use.fits(), use.fits() ? use.hosted.total() : use.hosted.total() - *use.size};
}

}  // namespace

std::string HostMemoryUse::verdict() const {
  return fmt::format(
      "{}: a server needs {:.2f}{} GiB of host memory: optimizer states {:.2f}, gradients {:.2f}, "
      "activations {:.2f}",
      !size    ? "host memory of the cluster is not given"
      : fits() ? "fits"
               : "out of host memory",
      gibibytes(hosted.total()), size ? fmt::format(" of {:.2f}", gibibytes(*size)) : "",
      gibibytes(hosted.optimizer), gibibytes(hosted.gradients), gibibytes(hosted.activations));
}

HostMemoryUse host_memory_use(const Cluster& cluster, const ParallelPlan& plan,
                              const StepMemory& memory) {
  const Topology& topology = cluster.topology;
  std::map<ServerId, HostMemoryUse> servers;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    const NodeId gpu = cluster.gpus[static_cast<std::size_t>(rank)];
    const std::optional<ServerId> server = topology.node(gpu).server;
    if (!server) {
      continue;
    }
    HostMemoryUse& use = servers[*server];
    const HostedMemory& of_rank = memory.ranks[place_in_pipeline(plan, rank)].host;
    use.hosted.optimizer += of_rank.optimizer;
    use.hosted.gradients += of_rank.gradients;
    use.hosted.activations += of_rank.activations;
    use.size = topology.server(*server).host_memory;
  }
  HostMemoryUse worst;
  for (const auto& [server, use] : servers) {
    if (badness(use) > badness(worst)) {
      worst = use;
    }
  }
  return worst;
}

}  // namespace trainyard
