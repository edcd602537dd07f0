// SPDX-License-Identifier: Apache-2.0
// Costs of MPI's messages (configs/mpi/profile.yaml) fitted to what trainyard-calibrate-hosts
// measured on one host, and its collectives predicted with them (docs/accuracy/hosts.md).
//
// Collectives over TCP, of one rank on each host, are fitted to as mpi_run.h times them on the
// cluster. Those within a host are not. Every other row that is fitted to is a sum of constants
// that are times and of bytes over constants that are rates.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "calibration/hosts/host_set.h"
#include "calibration/solver/constant_fit.h"
#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "collectives/schedule/operation.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Rows of one test over one path that are fitted to, by number in HostSet::rows.
struct HostTable {
  std::string name;  // "ping-pong, shared, shared.send, ...", with its constants.
  std::vector<std::size_t> rows;
};

struct HostComparison {
  Operation operation = Operation::AllReduce;
  int ranks = 0;
  Bytes size;
  double measured_us = 0.0;
  double shipped_us = 0.0;  // Predicted with the profile as shipped,
  double fitted_us = 0.0;   // and with the fitted one.
};

struct HostCalibration {
  HostSet set;
  std::vector<FittedConstant> constants = {};
  std::vector<HostTable> tables = {};
  ConstantFit fit = {};  // Its tables are those above, row by row.
  std::vector<HostComparison> collectives = {};
  std::vector<std::string> notes = {};  // On rows that are neither fitted to nor compared.
  std::string profile = {};             // The YAML document, which MpiProfile reads.

  // Errors of the rows of one use, of all tables.
  [[nodiscard]] std::vector<EstimatedRow> rows(RowUse use) const;
};

// Returns the time of a row that counts, in microseconds: the least one, but the median of a
// rewrite, whose least time is one for which the other rank's cache had lost the lines meanwhile,
// to other jobs.
[[nodiscard]] double host_measured_us(const HostRow& row);
// The time of a row by the model, in seconds; none for a row of which it says nothing.
[[nodiscard]] std::optional<double> host_time(const HostRow& row, const MpiProfile& profile);

// `shipped` is profile.yaml. Collectives run on `cluster` as host_collectives.h says. Throws
// ConfigError for a set without a row to fit to, and for a cluster with too few servers, or GPUs in
// a server.
[[nodiscard]] HostCalibration calibrate_host(HostSet set, const Cluster& cluster,
                                             const MpiRules& rules,
                                             const std::filesystem::path& shipped,
                                             const ConstantFitOptions& options,
                                             const TaskRunner& run_tasks);

}  // namespace trainyard
