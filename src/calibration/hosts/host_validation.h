// SPDX-License-Identifier: Apache-2.0
// Times that were measured on a host beside those of a profile that was not fitted to them, but to
// other sizes, operations, numbers of ranks, passes or machines (docs/accuracy/hosts.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "calibration/hosts/host_collectives.h"
#include "calibration/hosts/host_set.h"
#include "calibration/solver/constant_fit.h"
#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct HostPrediction {
  HostRow row;
  double measured_us = 0.0;
  double predicted_us = 0.0;
};

struct HostPredictions {
  std::vector<HostPrediction> rows;  // In the order of the set.
  std::size_t crowded = 0;           // Collectives of more ranks than the host has cores: left out,
  std::size_t silent = 0;            // and rows of which the model says nothing.
};

// Predicts the collectives within one host, to which no constant is fitted.
[[nodiscard]] HostPredictions predict_unfitted(const HostSet& set,
                                               const HostCollectives& collectives,
                                               const MpiProfile& profile,
                                               const TaskRunner& run_tasks);
// Predicts all rows. Throws ConfigError as HostCollectives does.
[[nodiscard]] HostPredictions predict_host(const HostSet& set, const Cluster& cluster,
                                           const MpiRules& rules, const MpiProfile& profile,
                                           const TaskRunner& run_tasks);
// Says for people which rows are left out.
[[nodiscard]] std::vector<std::string> notes_of(const HostPredictions& predictions);

}  // namespace trainyard
