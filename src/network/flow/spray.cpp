// SPDX-License-Identifier: Apache-2.0
#include "network/flow/spray.h"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/check.h"

namespace trainyard {

SprayNetwork::SprayNetwork(Simulator& simulator, Routing& routing, std::unique_ptr<Network> engine)
    : EventHandler(simulator), simulator_(simulator), paths_(routing), engine_(std::move(engine)) {}

void SprayNetwork::reserve(std::size_t connections) {
  connections_.reserve(connections);
  engine_->reserve(connections);
}

std::vector<std::uint32_t> SprayPaths::next(const ConnectionSpec& spec) {
  std::vector<std::uint32_t> numbers = {next_path_};
  std::set<std::vector<LinkId>> known;
  std::vector<LinkId> path;
  for (std::uint32_t count = 0; count < kMaxPaths; ++count) {
    const std::uint32_t number = next_path_ + count;
    const bool found =
        routing_.route(spec.source, spec.target, spec.flow_label, path, number, spec.nic_turns);
    if (found && known.insert(path).second && count > 0) {
      numbers.push_back(number);
    }
  }
  next_path_ += kMaxPaths;
  return numbers;
}

ConnectionId SprayNetwork::connect(const ConnectionSpec& spec) {
  Connection connection;
  for (const std::uint32_t number : paths_.next(spec)) {
    ConnectionSpec part = spec;
    part.path = number;
    connection.paths.push_back(engine_->connect(part));
  }
  connections_.push_back(std::move(connection));
  return ConnectionId(static_cast<std::uint32_t>(connections_.size() - 1));
}

std::uint64_t SprayNetwork::take_slot(const Part& part) {
  if (free_parts_.empty()) {
    parts_.push_back(part);
    return parts_.size() - 1;
  }
  const std::uint64_t slot = free_parts_.back();
  free_parts_.pop_back();
  parts_[slot] = part;
  return slot;
}

void SprayNetwork::send(ConnectionId id, Bytes size, EventHandler& done, std::uint64_t token) {
  CHECK(size >= Bytes(0), "a message of negative size");
  Connection& connection = connections_[id.value()];
  const auto paths = static_cast<std::uint32_t>(connection.paths.size());
  if (paths == 1) {
    ++messages_;
    bytes_ += size;
    engine_->send(connection.paths[0], size, done, token);
    return;
  }
  const std::int64_t packets = (size.count() + kPacket.count() - 1) / kPacket.count();
  const std::int64_t parts = std::clamp<std::int64_t>(packets, 1, paths);
  const std::uint64_t number = connection.first + connection.messages.size();
  connection.messages.push_back({.size = size,
                                 .done = &done,
                                 .token = token,
                                 .parts_left = static_cast<std::uint32_t>(parts)});
  for (std::int64_t part = 0; part < parts; ++part) {
    const Bytes share(size.count() / parts + (part < size.count() % parts ? 1 : 0));
    const ConnectionId path = connection.paths[connection.next_path];
    connection.next_path = (connection.next_path + 1) % paths;
    engine_->send(path, share, *this, take_slot({.connection = id.value(), .message = number}));
  }
}

// A part has arrived. Completes the messages at the head of the connection that have none left.
void SprayNetwork::on_event(std::uint64_t token) {
  const Part part = parts_[token];
  free_parts_.push_back(token);
  Connection& connection = connections_[part.connection];
  --connection.messages[part.message - connection.first].parts_left;
  while (!connection.messages.empty() && connection.messages.front().parts_left == 0) {
    const Message& message = connection.messages.front();
    ++messages_;
    bytes_ += message.size;
    simulator_.schedule(SimTime(), *message.done, message.token);
    connection.messages.pop_front();
    ++connection.first;
  }
}

NetworkStats SprayNetwork::stats() const {
  NetworkStats stats = engine_->stats();
  stats.messages = messages_;
  stats.bytes = bytes_;
  stats.connections = connections_.size();
  return stats;
}

}  // namespace trainyard
