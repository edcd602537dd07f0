// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric_router.h"

#include "sim/check.h"
#include "topology/dragonfly_router.h"
#include "topology/general_router.h"
#include "topology/grid_router.h"
#include "topology/up_down_router.h"

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
