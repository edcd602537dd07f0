// SPDX-License-Identifier: Apache-2.0
// Networks as packet simulators describe them: hosts, switches and the cables between them, each
// with its rate and delay. What ns-3 reads after HPCC and SimAI, and what htsim reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/units.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/server_outline.h"

namespace trainyard {

struct SimulatedNetwork {
  // Nodes are numbered from zero, hosts before switches.
  struct Cable {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    Bandwidth rate = {};
    SimTime delay{};
    [[nodiscard]] bool operator==(const Cable&) const = default;
  };
  std::uint32_t hosts = 0;
  std::vector<SimTime> switch_delays = {};  // The time that each switch takes to forward.
  std::vector<Cable> cables = {};
  // Hosts are GPUs with a NIC each, and so many in a row are a server.
  std::uint32_t gpus_per_server = 1;
  std::string gpu_type = {};  // As SimAI names it; empty: the file knows no GPUs.
  Bandwidth nvlink = {};      // Rate of a GPU into the NVSwitches of its server; zero: none.
  std::vector<std::string> remarks = {};
};

// Returns whether `text` begins as a topology of ns-3 does: with a line of three whole numbers, or
// of five and a GPU.
[[nodiscard]] bool looks_like_hpcc_topology(std::string_view text);

// "nodes switches links", or "nodes gpus-per-server nvswitches switches links gpu"; the numbers of
// the switches; "node node rate delay error-rate" for each link. `name` represents the file in
// errors. Throws ConfigError "FILE:LINE: ...".
[[nodiscard]] SimulatedNetwork read_hpcc_topology(std::string_view text, const std::string& name);

// Returns whether `text` begins with a key of htsim's files of fat trees.
[[nodiscard]] bool looks_like_htsim_topology(std::string_view text);

// The fat tree of two or three tiers that such a file describes, cable by cable.
[[nodiscard]] SimulatedNetwork read_htsim_topology(std::string_view text, const std::string& name);

// The shape of a network that a template of fabrics describes wholly (docs/inputs/clusters.md).
struct TierShape {
  struct Tier {
    Bandwidth rate = {};  // Rate of the cables below these switches.
    SimTime cable_delay{};
    SimTime switch_delay{};
    int ports_down = 0;  // The most that one of them uses.
    int ports_up = 0;
    [[nodiscard]] bool operator==(const Tier&) const = default;
  };
  bool rails = false;
  int planes = 1;
  int ports_per_nic = 1;
  int nodes_per_leaf = 0;
  std::vector<Tier> tiers = {};  // Leaves, spines, cores.
  int spines = 0;                // Spines of a pod.
  int leaves_per_pod = 0;
  int cores = 0;  // Cores of a plane.
};

// Nothing where the network has no such shape. Switches count as alike whatever their numbers are.
[[nodiscard]] std::optional<TierShape> shape_of(const SimulatedNetwork& network);

// Returns the part of the GPUs: that of the options, else the one that SimAI's name means. Remarks
// what the cluster file cannot say. Throws ConfigError if the part is open or a host has no cable.
[[nodiscard]] std::string complete_network(SimulatedNetwork& network, const Catalogue& catalogue,
                                           const ImportOptions& options, const std::string& name);

// The text of a cluster file with this network: by a template if shape_of() finds one, else as a
// graph. Each host is a GPU with a NIC.
[[nodiscard]] std::string to_cluster_yaml(const SimulatedNetwork& network,
                                          const Catalogue& catalogue, const std::string& gpu,
                                          const ClusterText& text);

}  // namespace trainyard
