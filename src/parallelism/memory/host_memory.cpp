// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/host_memory.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "parallelism/model/rank_groups.h"

namespace trainyard {
namespace {

std::size_t place_in_pipeline(const ParallelPlan& plan, int rank) {
  const std::vector<int> group = group_of(plan, RankGroupKind::Pipeline, rank);
  return static_cast<std::size_t>(std::find(group.begin(), group.end(), rank) - group.begin());
}

// Bytes over what is there, or below it.
std::int64_t lacking(const HostMemoryUse& use) {
  return use.size ? use.hosted.total().count() - use.size->count() : 0;
}

bool is_worse(const HostMemoryUse& a, const HostMemoryUse& b) {
  if (a.fits() != b.fits()) {
    return !a.fits();
  }
  return a.fits() ? a.hosted.total() > b.hosted.total() : lacking(a) > lacking(b);
}

}  // namespace

std::string HostMemoryUse::verdict() const {
  constexpr double kGiga = 1e9;
  const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes.count()) / kGiga; };
  return fmt::format(
      "{}: a server needs {:.2f}{} GB of host memory: optimizer states {:.2f}, gradients {:.2f}, "
      "activations {:.2f}",
      !size    ? "host memory of the cluster is not given"
      : fits() ? "fits"
               : "out of host memory",
      gigabytes(hosted.total()), size ? fmt::format(" of {:.2f}", gigabytes(*size)) : "",
      gigabytes(hosted.optimizer), gigabytes(hosted.gradients), gigabytes(hosted.activations));
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
    if (is_worse(use, worst)) {
      worst = use;
    }
  }
  return worst;
}

}  // namespace trainyard
