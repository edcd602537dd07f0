// SPDX-License-Identifier: Apache-2.0
// The inside of one server as imports and exports see it: which device hangs off which PCIe switch
// and CPU, and how many links join the GPUs. Between a Topology (server_export.h), NCCL's topology
// file, the matrix of nvidia-smi (import_parts.h, server_export.h) and the text of a cluster file
// (docs/commands/import.md).
#pragma once

#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "topology/exchange/smi_matrix.h"
#include "topology/graph/topology.h"

namespace trainyard {

struct OutlineBranch {
  // Gpu, Nic, PcieSwitch, or RootComplex: a host bridge of its own within a socket, which no file
  // format knows.
  NodeKind kind = NodeKind::Gpu;
  int index = 0;                             // Number of a GPU or NIC, from zero.
  std::string part = {};                     // Part of a NIC.
  int ports = 0;                             // Ports of a NIC that can be used; 0: all of its part.
  std::vector<OutlineBranch> children = {};  // Branches below a switch or root complex.
  // The link towards the CPU: a part of the catalogue and lanes; empty and 0 where it is unknown,
  // and then the one that a server has by itself.
  std::string link = {};
  int lanes = 0;
  [[nodiscard]] bool operator==(const OutlineBranch&) const = default;
};

struct ServerOutline {
  // Parts of the catalogue: of every GPU, of most NICs or none, of every CPU or empty if not known.
  std::string gpu;
  std::string nic;
  std::string cpu;
  int gpus = 0;
  int nics = 0;
  std::vector<std::vector<OutlineBranch>> sockets = {};
  // NVLinks (xGMI links) of each GPU into NVSwitches.
  std::vector<int> switch_links = {};
  // Links between each pair of GPUs directly, [a][b] = [b][a].
  std::vector<std::vector<int>> gpu_links = {};
  [[nodiscard]] bool operator==(const ServerOutline&) const = default;
};

// A ServerOutline of `gpus` GPUs without any link between them, and no sockets yet.
[[nodiscard]] ServerOutline empty_server(int gpus, int nics);

// Puts branches in one order, by the lowest GPU below, those without GPUs last and by the lowest
// NIC, and sockets likewise. Then numbers GPUs and NICs in the order of the tree, as a cluster file
// does. Returns for each kind the former index of each device: identity where nothing moved.
struct FormerIndices {
  std::vector<int> gpus;
  std::vector<int> nics;
};
[[nodiscard]] FormerIndices put_in_order(ServerOutline& tree);

// The matrix of nvidia-smi: GPUs, then NICs. Within a socket, what meets in no switch meets at a
// host bridge (PHB): the root complex of both, or the CPU if neither has one of its own. Else it is
// NODE.
[[nodiscard]] std::vector<std::vector<SmiCell>> distances(const ServerOutline& tree);

// A double-quoted YAML scalar.
[[nodiscard]] std::string quoted_scalar(const std::string& text);

// The text of a cluster file for this server (docs/inputs/clusters.md), the parts of `catalogue`
// being known: one server, no fabric. Remarks become comments.
struct ClusterText {
  std::string name;
  std::string source;
  std::vector<std::string> remarks = {};
};
[[nodiscard]] std::string to_cluster_yaml(const ServerOutline& tree, const Catalogue& catalogue,
                                          const ClusterText& text);

}  // namespace trainyard
