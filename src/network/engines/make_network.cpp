// SPDX-License-Identifier: Apache-2.0
#include "network/engines/make_network.h"

#include <utility>

#include "network/flow/analytical.h"
#include "network/flow/flow.h"
#include "network/flow/spray.h"
#include "network/packet/packet.h"
#include "sim/check.h"

namespace trainyard {
namespace {

std::unique_ptr<Network> make_engine(Fidelity fidelity, Simulator& simulator, Routing& routing,
                                     const PacketOptions& packet) {
  switch (fidelity) {
    case Fidelity::Analytical:
      return std::make_unique<AnalyticalNetwork>(simulator, routing);
    case Fidelity::Flow:
      return std::make_unique<FlowNetwork>(simulator, routing);
    case Fidelity::Packet:
      return std::make_unique<PacketNetwork>(simulator, routing, packet);
  }
  CHECK(false, "unknown fidelity");
}

}  // namespace

std::unique_ptr<Network> make_network(Fidelity fidelity, Simulator& simulator, Routing& routing,
                                      const PacketOptions& packet) {
  auto engine = make_engine(fidelity, simulator, routing, packet);
  if (!routing.policy().sprays || fidelity == Fidelity::Packet) {
    return engine;
  }
  return std::make_unique<SprayNetwork>(simulator, routing, std::move(engine));
}

}  // namespace trainyard
