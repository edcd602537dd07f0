// SPDX-License-Identifier: Apache-2.0
#include "calibration/hosts/host_validation.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>

#include "calibration/hosts/host_calibration.h"
#include "collectives/mpi/mpi_run.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

double time_us(const HostSet& set, const HostRow& row, Operation operation, const Cluster& cluster,
               const std::vector<NodeId>& all, const MpiRules& rules, const MpiProfile& profile) {
  if (static_cast<std::size_t>(row.ranks) > all.size()) {
    throw ConfigError(
        fmt::format("--cluster: expected a server with a GPU for each of the {} ranks, found {}",
                    row.ranks, all.size()));
  }
  const MpiCall call{.operation = operation, .ranks = row.ranks, .size = row.size};
  const auto name = mpi_algorithm(rules.choose(call.operation, call.ranks, call.size), call);
  if (!name) {
    throw ConfigError(fmt::format("{}: expected a call that has a schedule, found {} of {}",
                                  set.name, row.test, to_string(call.size)));
  }
  const std::vector<NodeId> nodes(all.begin(), all.begin() + row.ranks);
  return time_mpi(cluster, nodes, *name, call, rules, profile, Fidelity::Flow, {})
      .time.microseconds();
}

HostPredictions predict(const HostSet& set, const Cluster& cluster, const MpiRules& rules,
                        const MpiProfile& profile, const TaskRunner& run_tasks,
                        bool only_collectives) {
  HostPredictions made;
  for (const HostRow& row : set.rows) {
    const bool is_collective = parse_operation(row.test).has_value();
    const std::optional<double> seconds = host_time(row, profile);
    if (is_collective && row.ranks > set.cores) {
      ++made.crowded;
    } else if (!is_collective && !seconds) {
      ++made.silent;
    } else if (is_collective || !only_collectives) {
      made.rows.push_back({.row = row,
                           .measured_us = host_measured_us(row),
                           .predicted_us = seconds.value_or(0.0) * 1e6});
    }
  }
  const std::vector<NodeId> all = mpi_nodes(cluster);
  run_tasks(made.rows.size(), [&](std::size_t index) {
    HostPrediction& one = made.rows[index];
    if (const std::optional<Operation> operation = parse_operation(one.row.test)) {
      one.predicted_us = time_us(set, one.row, *operation, cluster, all, rules, profile);
    }
  });
  return made;
}

}  // namespace

HostPredictions predict_collectives(const HostSet& set, const Cluster& cluster,
                                    const MpiRules& rules, const MpiProfile& profile,
                                    const TaskRunner& run_tasks) {
  return predict(set, cluster, rules, profile, run_tasks, true);
}

HostPredictions predict_host(const HostSet& set, const Cluster& cluster, const MpiRules& rules,
                             const MpiProfile& profile, const TaskRunner& run_tasks) {
  return predict(set, cluster, rules, profile, run_tasks, false);
}

std::vector<std::string> notes_of(const HostPredictions& predictions) {
  std::vector<std::string> notes;
  if (predictions.crowded > 0) {
    notes.push_back(fmt::format("{} rows of more ranks than the host has cores: not compared",
                                predictions.crowded));
  }
  if (predictions.silent > 0) {
    notes.push_back(
        fmt::format("{} rows of sockets and long messages of TCP: no key of the profile is for "
                    "them",
                    predictions.silent));
  }
  return notes;
}

}  // namespace trainyard
