// SPDX-License-Identifier: Apache-2.0
#include "network/engines/make_network.h"

#include <utility>

#include "network/flow/analytical.h"
#include "network/flow/flow.h"
#include "network/flow/spray.h"
#include "network/packet/packet.h"
#include "sim/check.h"

namespace trainyard {

std::unique_ptr<Network> make_network(Fidelity fidelity, Simulator& simulator, Routing& routing,
                                      const PacketOptions& packet) {
  std::unique_ptr<Network> engine;
  switch (fidelity) {
    case Fidelity::Analytical:
      engine = std::make_unique<AnalyticalNetwork>(simulator, routing);
      break;
    case Fidelity::Flow:
      engine = std::make_unique<FlowNetwork>(simulator, routing);
      break;
    case Fidelity::Packet:  // It sprays packets itself.
      return std::make_unique<PacketNetwork>(simulator, routing, packet);
  }
  CHECK(engine != nullptr, "unknown fidelity");
  if (!routing.policy().sprays) {
    return engine;
  }
  return std::make_unique<SprayNetwork>(simulator, routing, std::move(engine));
}

}  // namespace trainyard
