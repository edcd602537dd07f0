// SPDX-License-Identifier: Apache-2.0
// Workloads of other tools for tests: read from texts, refused, and run where times are round.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parallelism/trace_import/imported_run.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {

// By rank, called "0.file", "1.file", ...
[[nodiscard]] inline std::vector<ImportedFile> imported_files(
    const std::vector<std::string>& texts) {
  std::vector<ImportedFile> files;
  for (const std::string& text : texts) {
    const auto rank = static_cast<int>(files.size());
    files.push_back({.name = std::to_string(rank) + ".file", .rank = rank, .text = text});
  }
  return files;
}

// For GPUs of one server.
[[nodiscard]] inline ImportedWorkload imported_workload(ImportedFormat format,
                                                        const std::vector<ImportedFile>& files,
                                                        int gpus = 8,
                                                        Folding folding = Folding::Unfolded) {
  const std::vector<int> servers(static_cast<std::size_t>(gpus), 0);
  return read_imported(files, format, {.server_of_gpu = servers, .folding = folding});
}

[[nodiscard]] inline std::string imported_error(ImportedFormat format,
                                                const std::vector<ImportedFile>& files,
                                                int gpus = 8) {
  try {
    (void)imported_workload(format, files, gpus);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

// GPUs on one switch: a message takes 1 us on its way, and 1 ns for each byte.
[[nodiscard]] inline Cluster round_cluster(int gpus) {
  return cluster_of(one_switch(gpus, fabric_link(gigabits_per_second(8), nanoseconds(500))));
}

// With traffic on one network, by the flow engine, or each alone.
[[nodiscard]] inline GraphedRun run_round(const ImportedWorkload& workload,
                                          const GraphRunOptions& options = {},
                                          bool shares_network = true) {
  return run_imported(round_cluster(workload.graph.ranks()), workload,
                      {.shares_network = shares_network}, options);
}

}  // namespace trainyard
