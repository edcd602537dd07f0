// SPDX-License-Identifier: Apache-2.0
#include "support/placed_run.h"
#include "network/engines/make_network.h"
#include "support/paths.h"

#include <filesystem>
#include <set>

#include "collectives/placement/placement.h"
#include "collectives/run/executor.h"

namespace trainyard {

Cluster shipped_cluster(const std::string& name, const ClusterOverrides& overrides) {
  const std::filesystem::path configs = source_dir() / "configs";
  static const Catalogue catalogue = Catalogue::load(configs / "hardware");
  return load_cluster(configs / "clusters" / (name + ".yaml"), catalogue, overrides);
}

PlacedRun run_placed(const Cluster& cluster, const PlacedJob& job) {
  Routing routing(cluster.topology, cluster.routing);
  Placement placement = place(cluster, routing, job.algorithm, job.channels);
  placement.options.root = RankId(job.root);
  placement.options.pieces = job.pieces;
  const auto schedule = make_schedule(job.algorithm, job.operation, placement.options);
  Simulator simulator;
  const auto network = make_network(Fidelity::Flow, simulator, routing);
  Executor executor(simulator, *network, *schedule, placement.nodes, job.size);
  executor.start();
  simulator.run();
  const std::optional<std::string> violation = executor.contract_violation();
  CHECK(!violation, violation.value_or(""));
  PlacedRun run{.finish = executor.finish_time(), .bytes = {}};
  for (const LinkUse& use : network->link_use()) {
    run.bytes[use.link] = use.bytes.count();
  }
  return run;
}

std::vector<std::int64_t> loads(const Topology& topology, const PlacedRun& run, NodeKind source,
                                NodeKind target) {
  std::set<std::int64_t> found;
  for (const auto& [id, bytes] : run.bytes) {
    const Link& link = topology.link(id);
    if (topology.node(link.source).kind == source && topology.node(link.target).kind == target) {
      found.insert(bytes);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace trainyard
