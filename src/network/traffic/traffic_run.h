// SPDX-License-Identifier: Apache-2.0
// Runs the flows of a traffic file over a network: one connection and one message for each flow.
//
// A flow begins when its event comes, groups in the order of the file where starts are equal. Its
// completion time (FCT) lasts until its last byte is at the target. What it would take alone is
//     alone = latency of its path + size / least rate of its path,
// the form that the ns-3 simulation of HPCC uses (simulation/scratch/third.cc, qp_finish), there
// with the base round-trip time, because it waits for the last acknowledgement. The slowdown is
// FCT / alone. With packets it does not reach 1: what a packet waits for itself at each switch
// counts as slowdown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "network/contract/network.h"
#include "network/traffic/traffic_spec.h"
#include "sim/simulator.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct FlowRecord {
  SimTime start;
  std::optional<SimTime> end = {};  // Nothing if it never was complete.
  SimTime alone;
  Bytes size;
  NodeId source;
  NodeId target;
  std::uint32_t group;  // Group in the traffic file, from zero.
  std::uint32_t label;
  ConnectionId connection;
};

struct GroupPlan {
  std::int64_t flows = 0;
  Bytes bytes;
};

// Plans what a run will have to carry, group by group. Throws ConfigError if there are too many
// flows, a group has none, or no path leads from a source to its target: so nothing throws during
// the run.
[[nodiscard]] std::vector<GroupPlan> plan_traffic(const Cluster& cluster, const TrafficSpec& spec);

struct TrafficRun {
  std::vector<FlowRecord> flows;  // In the order in which they began.
  NetworkStats network;
  // A lower bound on the end of all flows, in engines where they do not contend; zero if one never
  // was complete.
  SimTime quiet_time;
  std::vector<LinkUse> link_use;
  std::optional<std::vector<PortCounters>> port_counters;
  std::uint64_t events = 0;
  std::uint64_t fingerprint = 0;
};

// Runs until nothing is left to do; the flows are as many as plan_traffic() said. `routing` gives
// the paths that `alone` is about; it must not be the one of the network, whose state it would
// change.
[[nodiscard]] TrafficRun run_traffic(Simulator& simulator, Network& network, Routing& routing,
                                     const TrafficSpec& spec, std::int64_t expected_flows);

// Lists what is wrong at the end of a run: flows that were never complete, by name, and bytes that
// the network does not account for. Empty if the run kept its promise; at most `most` lines.
[[nodiscard]] std::vector<std::string> broken_promises(const Topology& topology,
                                                       const TrafficSpec& spec,
                                                       const TrafficRun& run, std::size_t max);

}  // namespace trainyard
