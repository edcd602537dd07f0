// SPDX-License-Identifier: Apache-2.0
#include "network/engines/make_network.h"

#include <utility>

#include "network/engines/mixed.h"
#include "network/flow/analytical.h"
#include "network/flow/flow.h"
#include "network/flow/spray.h"
#include "network/packet/packet.h"
#include "sim/check.h"

namespace trainyard {

namespace {

std::unique_ptr<Network> make_engine(Fidelity fidelity, Simulator& simulator, Routing& routing,
                                     const PacketOptions& packet, const NetworkExtras& extras) {
  if (extras.mixed) {
    CHECK(fidelity == Fidelity::Packet, "packets among what is mixed");
    return std::make_unique<MixedNetwork>(simulator, routing, packet,
                                          extras.mixed(routing.topology()));
  }
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

}  // namespace

std::unique_ptr<Network> make_network(Fidelity fidelity, Simulator& simulator, Routing& routing,
                                      const PacketOptions& packet, const NetworkExtras& extras) {
  std::unique_ptr<Network> engine = make_engine(fidelity, simulator, routing, packet, extras);
  if (!extras.times_messages) {
    return engine;
  }
  return std::make_unique<TimedNetwork>(simulator, std::move(engine));
}

ExtraResults extra_results(const Network& network) {
  ExtraResults results;
  const Network* engine = &network;
  if (const auto* const timed = dynamic_cast<const TimedNetwork*>(engine)) {
    results.messages = timed->times();
    engine = &timed->network();
  }
  if (const auto* const mixed = dynamic_cast<const MixedNetwork*>(engine)) {
    results.mixed = mixed->mixed_stats();
  }
  return results;
}

MixedNetwork* mixed_network(Network& network) {
  auto* const timed = dynamic_cast<TimedNetwork*>(&network);
  return dynamic_cast<MixedNetwork*>(timed != nullptr ? &timed->network() : &network);
}

}  // namespace trainyard
