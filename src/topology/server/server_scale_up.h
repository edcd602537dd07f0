// SPDX-License-Identifier: Apache-2.0
// The links between the GPUs of a server.
#pragma once

#include <vector>

#include "topology/server/parts.h"
#include "topology/server/server_keys.h"

namespace trainyard {

// Checks and reads what `spec.layout` needs of the part that `gpu` names.
void read_scale_up_link(const ServerKeys& keys, PartLog& parts, ServerSpec& spec);
// Finds which GPUs are joined, and by how many links, once all GPUs of `spec` are known.
void read_gpu_links(const ServerKeys& keys, PartLog& parts, ServerSpec& spec);

// Joins GPUs without the NVSwitch of a domain of several servers (add_nvlink_domain).
void join_gpus(TopologyBuilder& builder, const ServerSpec& spec, const std::vector<NodeId>& gpus);

}  // namespace trainyard
