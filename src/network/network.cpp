// SPDX-License-Identifier: Apache-2.0
#include "network/network.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "network/analytical.h"
#include "network/flow.h"
#include "network/spray.h"
#include "sim/config_error.h"

namespace trainyard {

std::string_view to_string(Fidelity fidelity) {
  switch (fidelity) {
    case Fidelity::Analytical:
      return "analytical";
    case Fidelity::Flow:
      return "flow";
  }
  CHECK(false, "unknown fidelity");
}

namespace {

std::unique_ptr<Network> make_engine(Fidelity fidelity, Simulator& simulator, Routing& routing) {
  switch (fidelity) {
    case Fidelity::Analytical:
      return std::make_unique<AnalyticalNetwork>(simulator, routing);
    case Fidelity::Flow:
      return std::make_unique<FlowNetwork>(simulator, routing);
  }
  CHECK(false, "unknown fidelity");
}

}  // namespace

std::unique_ptr<Network> make_network(Fidelity fidelity, Simulator& simulator, Routing& routing) {
  auto engine = make_engine(fidelity, simulator, routing);
  if (routing.policy() != RoutingPolicy::Spray) {
    return engine;
  }
  return std::make_unique<SprayNetwork>(simulator, routing, std::move(engine));
}

void throw_unreachable(const Topology& topology, NodeId source, NodeId target) {
  throw ConfigError(fmt::format("no path leads from {} to {}: the cluster does not connect them",
                                topology.node(source).name, topology.node(target).name));
}

}  // namespace trainyard
