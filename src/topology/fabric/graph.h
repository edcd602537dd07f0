// SPDX-License-Identifier: Apache-2.0
// A fabric as a list of switches and cables, of any form. NICs may be joined without a switch.
#pragma once

#include <memory>

#include "topology/fabric/fabric.h"

namespace trainyard {

void graph_fields(Fields& fields, FabricKeys& keys);

[[nodiscard]] std::unique_ptr<Fabric> read_graph(const FabricContext& context);

}  // namespace trainyard
