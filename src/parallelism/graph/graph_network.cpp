// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_network.h"

#include <algorithm>

#include "collectives/algorithms/algorithms.h"
#include "collectives/run/run.h"
#include "network/engines/make_network.h"
#include "network/engines/mixed.h"
#include "parallelism/walk/group_names.h"
#include "parallelism/walk/step_traffic.h"
#include "sim/check.h"

namespace trainyard {

SharedNetwork::SharedNetwork(Simulator& simulator, const Cluster& cluster, Fidelity fidelity,
                             const PacketOptions& packet, const NetworkExtras& extras)
    : routing(cluster.topology, cluster.routing),
      engine(make_network(fidelity, simulator, routing, packet, extras)) {
  CHECK(fidelity != Fidelity::Analytical, "an engine in which messages contend");
}

void SharedNetwork::set_purpose(std::string_view purpose) {
  if (MixedNetwork* const mixed = mixed_network(*engine)) {
    mixed->set_purpose(purpose);
  }
}

NetworkTraffic::NetworkTraffic(Simulator& simulator, const Cluster& cluster, SharedNetwork& network)
    : EventHandler(simulator),
      simulator_(simulator),
      whole_(cluster),
      group_(cluster),
      network_(network) {}

std::optional<SimTime> NetworkTraffic::call_time(const GraphCommunicator& communicator,
                                                 const GraphCall& call) {
  const auto ranks = static_cast<int>(communicator.ranks.size());
  return aligned_size(call.operation, call.size, ranks).count() == 0 ? std::optional(SimTime())
                                                                     : std::nullopt;
}

std::optional<SimTime> NetworkTraffic::message_time(int /*from*/, int /*to*/, Bytes /*size*/) {
  return std::nullopt;
}

std::size_t NetworkTraffic::prepare(const GraphCommunicator& communicator, const GraphCall& call) {
  std::vector<std::size_t>& known =
      of_call_[std::make_tuple(call.communicator, call.operation, call.size)];
  const auto unused = std::find_if(known.begin(), known.end(),
                                   [&](std::size_t index) { return running_[index]->left == 0; });
  if (unused != known.end()) {
    return *unused;
  }
  network_.set_purpose(purpose_of_communicator(communicator.name));
  keep_ranks(whole_.gpus, communicator.ranks, group_);
  const Algorithm algorithm = default_algorithm(call.operation);
  const Bytes size =
      aligned_size(call.operation, call.size, static_cast<int>(communicator.ranks.size()));
  auto added = std::make_unique<Running>();
  added->placement = place(group_, network_.routing, algorithm, std::nullopt);
  ScheduleOptions& options = added->placement.options;
  options.pieces = default_pieces(algorithm, call.operation, options.layout, size);
  added->schedule = make_schedule(algorithm, call.operation, options);
  added->executor.emplace(simulator_, *network_.engine, *added->schedule, added->placement.nodes,
                          size);
  const std::size_t index = running_.size();
  added->executor->notify(*this, index);
  running_.push_back(std::move(added));
  known.push_back(index);
  return index;
}

void NetworkTraffic::start_call(const GraphCommunicator& communicator, const GraphCall& call,
                                EventHandler& done, std::uint64_t token) {
  Running& running = *running_[prepare(communicator, call)];
  running.left = call.times;
  running.done = &done;
  running.token = token;
  running.executor->start();
}

void NetworkTraffic::on_event(std::uint64_t token) {
  Running& running = *running_[token];
  if (--running.left > 0) {
    running.executor->start();
  } else {
    simulator_.schedule(SimTime(), *running.done, running.token);
  }
}

void NetworkTraffic::start_message(int from, int to, Bytes size, EventHandler& done,
                                   std::uint64_t token) {
  auto found = connections_.find({from, to});
  if (found == connections_.end()) {
    const auto gpu = [&](int rank) { return whole_.gpus[static_cast<std::size_t>(rank)]; };
    network_.set_purpose(purpose_of(RankGroupKind::Pipeline));
    const ConnectionId connection =
        network_.engine->connect({.source = gpu(from), .target = gpu(to), .flow_label = 0});
    found = connections_.emplace(std::make_pair(from, to), connection).first;
  }
  network_.engine->send(found->second, size, done, token);
}

}  // namespace trainyard
