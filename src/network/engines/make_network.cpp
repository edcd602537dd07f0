// SPDX-License-Identifier: Apache-2.0
#include "network/engines/make_network.h"

#include <utility>

#include "network/flow/analytical.h"
#include "network/flow/flow.h"
#include "network/flow/spray.h"
#include "network/packet/packet.h"

namespace trainyard {

std::unique_ptr<Network> make_network(Fidelity fidelity, Simulator& simulator, Routing& routing,
                                      const PacketOptions& packet) {
  if (fidelity == Fidelity::Packet) {  // It sprays packets itself.
    return std::make_unique<PacketNetwork>(simulator, routing, packet);
  }
  std::unique_ptr<Network> engine;
  if (fidelity == Fidelity::Flow) {
    engine = std::make_unique<FlowNetwork>(simulator, routing);
  } else {
    engine = std::make_unique<AnalyticalNetwork>(simulator, routing);
  }
  if (!routing.policy().sprays) {
    return engine;
  }
  return std::make_unique<SprayNetwork>(simulator, routing, std::move(engine));
}

}  // namespace trainyard
