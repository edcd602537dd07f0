// SPDX-License-Identifier: Apache-2.0
// The keys of a server as its file has them.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "sim/fields.h"
#include "topology/graph/topology.h"
#include "topology/server/server.h"

namespace trainyard {

// The names are in the order of ServerTemplate.
inline constexpr std::array<std::string_view, 5> kServerTemplates = {"nvswitch", "full-mesh",
                                                                     "cube-mesh", "pcie", "links"};
inline constexpr int kMaxServerDevices = 4096;
inline constexpr int kMaxServerNics = 256;

// A GPU, a NIC, or a PCIe switch or root complex with branches of its own.
struct ServerBranch {
  std::optional<ConfigNode> node = {};  // Where errors about it point.
  NodeKind kind = NodeKind::Gpu;
  int times = 1;
  const GpuModel* gpu = nullptr;  // Null: the part of the server, like `nic`.
  const NicModel* nic = nullptr;
  std::vector<ServerBranch> below = {};
  const LinkModel* uplink = nullptr;  // A switch may have one, and lanes.
  std::optional<int> lanes = {};
  std::optional<Bandwidth> bandwidth = {};  // Limit of a root complex.
};

// Parts are those of the catalogue, null where the file names none.
struct ServerKeys {
  Catalogue* catalogue = nullptr;       // Null where nothing is read.
  std::optional<ConfigNode> node = {};  // The mapping.
  ServerTemplate layout = ServerTemplate::NvSwitch;
  const GpuModel* gpu = nullptr;
  const NicModel* nic = nullptr;
  const CpuModel* cpu = nullptr;
  std::optional<int> gpus = {};
  std::optional<int> nics = {};
  int sockets = 1;
  int pcie_switches = 0;
  std::optional<std::vector<std::vector<ServerBranch>>> tree = {};
  const LinkModel* pcie_uplink = nullptr;
  std::optional<int> pcie_uplink_lanes = {};
  std::optional<double> pcie_efficiency = {};
  std::vector<ConfigNode> gpu_links = {};
  int nvlink_domain = 1;
  int nvswitch_boards = 1;
  std::optional<int> nvswitch_trunk_links = {};
  const NvSwitchModel* nvswitch = nullptr;
  std::optional<int> nvswitch_chips = {};
  const LinkModel* socket_link = nullptr;
  int socket_links = 1;
  ServerTraits traits = {};
};

void server_fields(Fields& fields, ServerKeys& keys);
// The same in a file of its own, perhaps with a base.
void server_file_fields(Fields& fields, ServerKeys& keys);

// The steps of read_server(), in this order.
// Checks and reads what `spec.layout` needs of the part that `gpu` names.
void read_scale_up_link(const ServerKeys& keys, PartLog& parts, ServerSpec& spec);
// Fills the devices of `spec` and their numbers: GPUs and NICs over PCIe switches to the sockets.
// Follows either `tree`, which says for each socket what hangs off it, or the numbers `gpus`,
// `nics`, `pcie_switches` and `sockets`, which stand for an even tree: GPU g of G hangs off PCIe
// switch floor(g S / G) of S, a NIC likewise, switch s off socket floor(s K / S) of K.
void read_server_tree(const ServerKeys& keys, PartLog& parts, ServerSpec& spec);
// Finds which GPUs are joined, and by how many links, once all GPUs of `spec` are known.
void read_gpu_links(const ServerKeys& keys, PartLog& parts, ServerSpec& spec);

}  // namespace trainyard
