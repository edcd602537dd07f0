// SPDX-License-Identifier: Apache-2.0
#include "network/network.h"

#include <spdlog/fmt/fmt.h>

#include "network/analytical.h"
#include "network/flow.h"
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

std::unique_ptr<Network> make_network(Fidelity fidelity, Simulator& simulator, Routing& routing) {
  switch (fidelity) {
    case Fidelity::Analytical:
      return std::make_unique<AnalyticalNetwork>(simulator, routing);
    case Fidelity::Flow:
      return std::make_unique<FlowNetwork>(simulator, routing);
  }
  CHECK(false, "unknown fidelity");
}

void throw_unreachable(const Topology& topology, NodeId source, NodeId target) {
  throw ConfigError(fmt::format("no path leads from {} to {}: the cluster does not connect them",
                                topology.node(source).name, topology.node(target).name));
}

}  // namespace trainyard
