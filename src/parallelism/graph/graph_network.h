// SPDX-License-Identifier: Apache-2.0
// Traffic of an operation graph on the links of a cluster: all calls and messages are on one
// network, so that groups that work at the same time take bandwidth from each other.
//
// Calls run as the schedules of the plain runtime: rings, and direct messages for alltoall and
// sendrecv. Fidelity::Analytical has no contention, for which TimedTraffic is as good.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/placement/placement.h"
#include "collectives/run/executor.h"
#include "network/contract/network.h"
#include "network/engines/network_extras.h"
#include "network/packet/packet_options.h"
#include "parallelism/graph/graph_traffic.h"
#include "sim/simulator.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard {

// The network of a cluster, for the traffic of one graph or of several at once.
struct SharedNetwork {
  // Does not take Fidelity::Analytical. The first two must outlive this.
  SharedNetwork(Simulator& simulator, const Cluster& cluster, Fidelity fidelity,
                const PacketOptions& packet = roce_options(), const NetworkExtras& extras = {});

  // Says what connections are for that are made from now on: "tensor", "data", ... (group_names.h).
  void set_purpose(std::string_view purpose);

  Routing routing;
  std::unique_ptr<Network> engine;
};

class NetworkTraffic final : public GraphTraffic, private EventHandler {
 public:
  // Rank r of the graph is the GPU r of `cluster`, which is that of the network or a part of it.
  // For one graph, not folded; the arguments must outlive this.
  NetworkTraffic(Simulator& simulator, const Cluster& cluster, SharedNetwork& network);

  // Returns a time only for calls that move no data.
  [[nodiscard]] std::optional<SimTime> call_time(const GraphCommunicator& communicator,
                                                 const GraphCall& call) override;
  [[nodiscard]] std::optional<SimTime> message_time(int from, int to, Bytes size) override;
  // Throw ConfigError where there is no path.
  void start_call(const GraphCommunicator& communicator, const GraphCall& call, EventHandler& done,
                  std::uint64_t token) override;
  void start_message(int from, int to, Bytes size, EventHandler& done,
                     std::uint64_t token) override;

 private:
  // A schedule that runs, or ran and can run again.
  struct Running {
    Placement placement;
    std::unique_ptr<Schedule> schedule;
    std::optional<Executor> executor;
    int left = 0;  // Times to run; 0: nobody uses it.
    EventHandler* done = nullptr;
    std::uint64_t token = 0;
  };

  void on_event(std::uint64_t token) override;
  [[nodiscard]] std::size_t prepare(const GraphCommunicator& communicator, const GraphCall& call);

  Simulator& simulator_;
  const Cluster& whole_;
  Cluster group_;  // Ranks in question, of whole_.
  SharedNetwork& network_;
  std::vector<std::unique_ptr<Running>> running_;
  std::map<std::tuple<CommunicatorId, Operation, Bytes>, std::vector<std::size_t>> of_call_;
  std::map<std::pair<int, int>, ConnectionId> connections_;
};

}  // namespace trainyard
