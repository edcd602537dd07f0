// SPDX-License-Identifier: Apache-2.0
// A communicator as NCCL makes it, from a cluster or from NCCL's own topology files: search on each
// kind of node, channels over all ranks, cost model, channels of sends and receives (NVIDIA/nccl,
// src/init.cc: initTransportsRank).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nccl/machine/job_nodes.h"
#include "nccl/machine/machine.h"
#include "nccl/search/search_memory.h"
#include "nccl/tuning/communicator.h"
#include "nccl/tuning/graph_xml.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

struct InitOptions {
  Version version = kNewestVersion;
  Environment environment = {};
  // A graph file for every node, instead of the search: its text, and its name in errors.
  std::optional<std::string> graph_text = {};
  std::string graph_name = {};
};

struct InitResult {
  Communicator communicator;
  GraphNames names;               // Names of the first node, for write_graph_xml().
  std::vector<Machine> machines;  // Machines that the search ran on, one for each kind of node.
};

// Throws ConfigError for fewer than two ranks, for what the search cannot take, and for mistakes in
// the graph file. `searches`: what was found before, and where what is found now is kept.
[[nodiscard]] InitResult make_communicator(const JobNodes& nodes, const InitOptions& options,
                                           SearchMemory* searches = nullptr);

}  // namespace trainyard::nccl
