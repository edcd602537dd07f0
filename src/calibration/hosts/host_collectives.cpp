// SPDX-License-Identifier: Apache-2.0
#include "calibration/hosts/host_collectives.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <utility>

#include "collectives/mpi/mpi_run.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// The memories of the first server's ranks, or of the first rank of each server.
std::vector<NodeId> candidates(const Cluster& cluster, bool is_inside) {
  const std::vector<NodeId> all = mpi_nodes(cluster);
  if (is_inside) {
    return {all.begin(), all.begin() + cluster.server_gpus.front()};
  }
  std::vector<NodeId> nodes;
  std::size_t rank = 0;
  for (const int gpus : cluster.server_gpus) {
    nodes.push_back(all.at(rank));
    rank += static_cast<std::size_t>(gpus);
  }
  return nodes;
}

}  // namespace

HostCollectives::HostCollectives(const HostSet& set, const Cluster& cluster, const MpiRules& rules)
    : cluster_(cluster), rules_(rules), calls_(set.rows.size()) {
  const std::vector<NodeId> inside = candidates(cluster, true);
  const std::vector<NodeId> between = candidates(cluster, false);
  for (std::size_t index = 0; index < set.rows.size(); ++index) {
    const HostRow& row = set.rows[index];
    const std::optional<Operation> operation = row.operation();
    if (!operation || set.is_crowded(row)) {
      continue;
    }
    const std::vector<NodeId>& nodes = row.is_between_hosts() ? between : inside;
    if (static_cast<std::size_t>(row.ranks) > nodes.size()) {
      throw ConfigError(
          fmt::format("{}: expected a cluster with {} for each of the {} ranks, "
                      "found {} with {}",
                      set.name, row.is_between_hosts() ? "a server" : "a GPU of one server",
                      row.ranks, cluster.name, nodes.size()));
    }
    Call& one = calls_[index];
    one.call = {.operation = *operation, .ranks = row.ranks, .size = row.size};
    const auto name = mpi_algorithm(rules.choose(*operation, row.ranks, row.size), one.call);
    if (!name) {
      throw ConfigError(fmt::format("{}: expected a call that has a schedule, found {} of {}",
                                    set.name, to_string(*operation), to_string(row.size)));
    }
    one.algorithm = *name;
    one.nodes.assign(nodes.begin(), nodes.begin() + row.ranks);
  }
}

SimTime HostCollectives::time(std::size_t row, const MpiProfile& profile) const {
  const Call& one = calls_.at(row);
  CHECK(!one.algorithm.empty(), "a row that is a collective");
  return time_mpi(cluster_, one.nodes, one.algorithm, one.call, rules_, profile, Fidelity::Flow, {})
      .time;
}

}  // namespace trainyard
