// SPDX-License-Identifier: Apache-2.0
// NCCL's graph file, as NCCL_GRAPH_DUMP_FILE writes and NCCL_GRAPH_FILE reads it: what the search
// found on one node (NVIDIA/nccl, src/graph/search.cc: ncclTopoGetXmlFromGraphs,
// ncclTopoGetGraphFromXml). A file written here makes a real NCCL use these channels.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/search/graph.h"

namespace trainyard::nccl {

// The names that a file gives the devices of a node: index of the host in the node in the upper 8
// of 64 bits, below it the NVML index of a GPU or the index of a NIC.
struct GraphNames {
  std::vector<std::uint64_t> gpus = {};    // Indexed by local rank.
  std::map<int, std::uint64_t> nics = {};  // NICs by the number that GraphChannel has.
  int first_rank = 0;
  bool several_nodes = true;  // Each channel has a NIC at both ends.
};

[[nodiscard]] constexpr std::uint64_t graph_device(int host, int device) {
  return static_cast<std::uint64_t>(host) << 56U | static_cast<std::uint64_t>(device);
}

// Attributes in NCCL's order, two blanks for each level.
[[nodiscard]] std::string write_graph_xml(const GraphSet& graphs, const GraphNames& names);

// Returns the graphs of a file, each before channels are doubled; those that it does not have, or
// without channels, do not exist. `name` represents the file in errors. A GPU is found by `rank`,
// if it has one, else by `dev`.
// Throws ConfigError "FILE:LINE:COLUMN: PATH: ..." for text that is no XML, what NCCL's format does
// not have, and channels that do not fit the node.
[[nodiscard]] GraphSet read_graph_xml(std::string_view text, const std::string& name,
                                      const GraphNames& names);

}  // namespace trainyard::nccl
