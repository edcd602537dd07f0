// SPDX-License-Identifier: Apache-2.0
// The links between the GPUs of a server.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "topology/server/parts.h"
#include "topology/server/server.h"

namespace trainyard {

// The names are in the order of ServerTemplate.
inline constexpr std::array<std::string_view, 5> kServerTemplates = {"nvswitch", "full-mesh",
                                                                     "cube-mesh", "pcie", "links"};

// Checks and reads what `spec.layout` needs of the part that `gpu` names.
void read_scale_up_link(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts,
                        ServerSpec& spec);
// Reads which GPUs are joined, and by how many links, once all GPUs of `spec` are known.
void read_gpu_links(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts,
                    ServerSpec& spec);

// Joins GPUs without the NVSwitch of a domain of several servers (add_nvlink_domain).
void join_gpus(TopologyBuilder& builder, const ServerSpec& spec, const std::vector<NodeId>& gpus);

}  // namespace trainyard
