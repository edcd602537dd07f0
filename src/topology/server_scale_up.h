// SPDX-License-Identifier: Apache-2.0
// The links between the GPUs of a server.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "hw/catalogue.h"
#include "sim/config.h"
#include "topology/parts.h"
#include "topology/server.h"

namespace trainyard {

// In the order of ServerTemplate.
inline constexpr std::array<std::string_view, 4> kServerTemplates = {"nvswitch", "full-mesh",
                                                                     "cube-mesh", "pcie"};

// What `spec.layout` needs of the part that `gpu` names.
void read_scale_up(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts,
                   ServerSpec& spec);
// Whether the GPUs of `spec` fit it, once all are known.
void check_scale_up(const ConfigNode& node, const Catalogue& catalogue, const PartLog& parts,
                    const ServerSpec& spec);

void join_gpus(TopologyBuilder& builder, const ServerSpec& spec, const std::vector<NodeId>& gpus);

}  // namespace trainyard
