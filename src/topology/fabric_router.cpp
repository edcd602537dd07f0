// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric_router.h"

#include "topology/general_router.h"
#include "topology/up_down_router.h"

namespace trainyard {

void FabricRouter::virtual_channels(std::span<const LinkId> path,
                                    std::vector<std::uint8_t>& channels) const {
  channels.assign(path.size(), 0);
}

std::unique_ptr<FabricRouter> make_fabric_router(const Topology& topology,
                                                 const RoutingOptions& options) {
  if (options.fabric.kind == FabricKind::Clos) {
    return std::make_unique<UpDownRouter>(topology);
  }
  return std::make_unique<GeneralRouter>(topology);
}

}  // namespace trainyard
