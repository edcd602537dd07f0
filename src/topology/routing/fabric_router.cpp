// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/fabric_router.h"

#include "topology/routing/general_router.h"

namespace trainyard {

void FabricRouter::virtual_channels(std::span<const LinkId> path,
                                    std::vector<std::uint8_t>& channels) const {
  channels.assign(path.size(), 0);
}

std::unique_ptr<FabricRouter> make_fabric_router(const Topology& topology,
                                                 const RoutingOptions& options) {
  const MakeFabricRouter own = options.fabric.router;
  return own != nullptr ? own(topology, options) : make_router<GeneralRouter>(topology, options);
}

}  // namespace trainyard
