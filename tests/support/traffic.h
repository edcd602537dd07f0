// SPDX-License-Identifier: Apache-2.0
// Traffic from text, for tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/engines/make_network.h"
#include "network/traffic/traffic_flows.h"
#include "network/traffic/traffic_run.h"
#include "network/traffic/traffic_spec.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {

// `text` begins after the name.
[[nodiscard]] inline TrafficSpec traffic_of(const Cluster& cluster, const std::string& text,
                                            std::optional<std::uint64_t> seed = {}) {
  ConfigDocument document = ConfigDocument::parse("name: a test\n" + text, "my.yaml");
  TrafficSpec spec = read_traffic(
      document, cluster, {.shipped_sizes = kConfigsFolder / "traffic/sizes", .seed = seed});
  document.finish();
  return spec;
}

// All flows of a file with one group.
[[nodiscard]] inline std::vector<FlowStart> all_flows(const TrafficGroup& group) {
  std::vector<FlowStart> flows;
  FlowSource source(group);
  for (auto flow = source.next(); flow; flow = source.next()) {
    flows.push_back(*flow);
  }
  return flows;
}

// All of it on a network of its own.
[[nodiscard]] inline TrafficRun run_spec(const Cluster& cluster, const TrafficSpec& spec,
                                         Fidelity fidelity = Fidelity::Flow) {
  std::int64_t flows = 0;
  for (const GroupPlan& plan : plan_traffic(cluster, spec)) {
    flows += plan.flows;
  }
  Simulator simulator;
  Routing routing(cluster.topology, cluster.routing);
  Routing alone(cluster.topology, cluster.routing);
  const auto network = make_network(fidelity, simulator, routing);
  return run_traffic(simulator, *network, alone, spec, flows);
}

}  // namespace trainyard
