// SPDX-License-Identifier: Apache-2.0
#include "network/flow/analytical.h"

#include <algorithm>
#include <span>

namespace trainyard {

AnalyticalNetwork::AnalyticalNetwork(Simulator& simulator, Routing& routing)
    : simulator_(simulator), routing_(routing), loads_(routing.topology().link_count()) {}

ConnectionId AnalyticalNetwork::connect(const ConnectionSpec& spec) {
  const Topology& topology = routing_.topology();
  route_connection(routing_, spec, spec.path, route_);
  Connection connection{.path_first = static_cast<std::uint32_t>(path_links_.size()),
                        .path_length = static_cast<std::uint32_t>(route_.size()),
                        .bandwidth = kMaxBandwidth,
                        .latency = path_latency(topology, route_),
                        .free_at = SimTime()};
  if (!route_.empty()) {
    connection.bandwidth = path_bandwidth(topology, route_);
  }
  path_links_.insert(path_links_.end(), route_.begin(), route_.end());
  connections_.push_back(connection);
  return ConnectionId(static_cast<std::uint32_t>(connections_.size() - 1));
}

void AnalyticalNetwork::send(ConnectionId id, Bytes size, EventHandler& done, std::uint64_t token) {
  CHECK(size >= Bytes(0), "a message of negative size");
  Connection& connection = connections_[id.value()];
  const SimTime start = std::max(simulator_.now(), connection.free_at);
  SimTime end = start;
  if (connection.path_length > 0) {
    end += transfer_time(size, connection.bandwidth);
  }
  connection.free_at = end;
  simulator_.schedule_at(end + connection.latency, done, token);

  ++messages_;
  bytes_ += size;
  if (size == Bytes(0)) {
    return;
  }
  for (const LinkId link :
       std::span(path_links_).subspan(connection.path_first, connection.path_length)) {
    LinkLoad& load = loads_[link.value()];
    if (load.bytes == Bytes(0)) {
      load.first_send = simulator_.now();
    }
    load.bytes += size;
    load.min_latency = std::min(load.min_latency, connection.latency);
  }
}

SimTime AnalyticalNetwork::quiet_time() const {
  SimTime quiet = simulator_.now();
  for (std::uint32_t link = 0; link < loads_.size(); ++link) {
    const LinkLoad& load = loads_[link];
    if (load.bytes > Bytes(0)) {
      const Bandwidth capacity = routing_.topology().link(LinkId(link)).spec.bandwidth;
      quiet =
          std::max(quiet, load.first_send + transfer_time(load.bytes, capacity) + load.min_latency);
    }
  }
  return quiet;
}

NetworkStats AnalyticalNetwork::stats() const {
  return {.messages = messages_, .bytes = bytes_, .connections = connections_.size()};
}

std::vector<LinkUse> AnalyticalNetwork::link_use() const {
  std::vector<Bytes> bytes(loads_.size());
  std::ranges::transform(loads_, bytes.begin(), &LinkLoad::bytes);
  return use_of(bytes);
}

}  // namespace trainyard
