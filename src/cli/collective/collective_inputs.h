// SPDX-License-Identifier: Apache-2.0
// The inputs of a request of `trainyard collective`: the ranks, the measured table, the sizes; and
// the parts of runs and reports that all runtimes have in common.
#pragma once

#include <spdlog/logger.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/measured/measurement.h"
#include "cli/collective/collective_request.h"
#include "collectives/run/run.h"
#include "report/results/collective_report.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct CollectiveInputs {
  Cluster cluster;  // Cut to the ranks that take part; its topology stays whole.
  std::optional<MeasuredTable> measured = {};
  std::optional<TrafficMatrix> matrix = {};
  // Those of the request; of `auto` only those that the cluster can run.
  std::vector<Algorithm> algorithms = {};
  std::unique_ptr<Schedule> imported = {};  // The algorithm of a file.
  std::vector<Bytes> sizes = {};            // Ascending, each once, at least one.
  std::vector<std::string> notes = {};      // A reader of the results should know them.

  [[nodiscard]] int ranks() const { return static_cast<int>(cluster.gpus.size()); }
  // Runs of each size.
  [[nodiscard]] std::size_t runs() const { return algorithms.size() + (imported ? 1 : 0); }
};

// Reads and checks the files that the request names, and logs the warnings of the cluster. Throws
// ConfigError.
[[nodiscard]] CollectiveInputs load_collective_inputs(const CollectiveRequest& request,
                                                      spdlog::logger& log);

// The parts of it. The cluster, cut to the ranks that take part.
[[nodiscard]] Cluster load_ranks(const CollectiveRequest& request, std::vector<std::string>& notes,
                                 spdlog::logger& log);
// Leaves the first `ranks` GPUs, node by node: of the last node perhaps a part.
void keep_first_ranks(Cluster& cluster, int ranks);
// Those of the table unless the request has bounds or a step of its own; otherwise a sweep, within
// the table's bounds where the request has none. Rounded as nccl-tests rounds for these ranks,
// except sizes that were measured.
[[nodiscard]] std::vector<Bytes> message_sizes(const CollectiveRequest& request, int ranks,
                                               const std::optional<MeasuredTable>& measured,
                                               std::vector<std::string>& notes);
// Turns a table of another number of ranks into what the same bus bandwidth gives on `ranks`.
void rescale(MeasuredTable& table, Operation operation, int ranks);

// A run of the plain runtime, without an algorithm.
[[nodiscard]] CollectiveJob plain_job(const CollectiveRequest& request,
                                      const CollectiveInputs& inputs, Bytes size);
// The name of its algorithm, also of an imported one.
[[nodiscard]] std::string_view algorithm_name(const CollectiveJob& job);

// Without rows and notes, runtime and fidelity.
[[nodiscard]] CollectiveReport empty_report(const CollectiveRequest& request,
                                            const CollectiveInputs& inputs);

// Size, time, bandwidths and what was measured.
[[nodiscard]] CollectiveRow timed_row(Operation operation, Bytes size, SimTime time,
                                      const CollectiveInputs& inputs);

}  // namespace trainyard
