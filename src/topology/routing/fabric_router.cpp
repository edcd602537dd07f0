// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/fabric_router.h"

#include "sim/check.h"
#include "topology/routing/dragonfly_router.h"
#include "topology/routing/general_router.h"
#include "topology/routing/grid_router.h"
#include "topology/routing/up_down_router.h"

namespace trainyard {

void FabricRouter::virtual_channels(std::span<const LinkId> path,
                                    std::vector<std::uint8_t>& channels) const {
  channels.assign(path.size(), 0);
}

std::unique_ptr<FabricRouter> make_fabric_router(const Topology& topology,
                                                 const RoutingOptions& options) {
  switch (options.fabric.kind) {
    case FabricKind::Grid:
      return std::make_unique<GridRouter>(topology, options);
    case FabricKind::Dragonfly:
      return std::make_unique<DragonflyRouter>(topology, options);
    case FabricKind::Clos:
      return std::make_unique<UpDownRouter>(topology);
    case FabricKind::General:
      return std::make_unique<GeneralRouter>(topology);
  }
  CHECK(false, "unknown kind of fabric");
}

}  // namespace trainyard
