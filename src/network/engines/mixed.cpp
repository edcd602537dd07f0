// SPDX-License-Identifier: Apache-2.0
#include "network/engines/mixed.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Tokens of events; the others are ends of messages.
constexpr std::uint64_t kExchange = 0;
constexpr std::uint64_t kBegin = 1;
constexpr std::uint64_t kFirstMessage = 2;

// The least part of a link that its port keeps for ACKs, pauses and the like is 1/64, an estimate:
// an ACK for every 16 packets of 4,096 B is 1/700 of them.
constexpr FlowRate kLeastPart = 64;

[[noreturn]] void refuse(std::string_view expected, std::string_view found) {
  throw ConfigError(fmt::format("mixed fidelity: expected {}, found {}", expected, found));
}

const PacketOptions& checked(const PacketOptions& packet, const Routing& routing) {
  if (routing.policy().spreads()) {
    refuse("a fabric on which a connection has one path, such as routing ecmp",
           routing.policy().name);
  }
  if (packet.fast_forward != FastForward::Off) {
    refuse("no fast-forward, since flows change the rates of ports", "both");
  }
  if (!packet.failures.empty()) {
    refuse("no cables that fail, since flows would go on", "some");
  }
  if (!packet.slow_hosts.empty()) {
    refuse("no slow receivers, since flows would not wait for them", "some");
  }
  if (packet.lanes) {
    refuse("a transport with one class of data, since flows have one", "queues");
  }
  if (control_traits(packet).is_receiver_driven) {
    refuse("a control of senders, since targets grant the whole rate of their links",
           control_name(packet));
  }
  return packet;
}

FlowRate rate_of(Bandwidth bandwidth) {
  return static_cast<FlowRate>(bandwidth.bits_per_second()) << kFlowRateFractionBits;
}

FlowRate rate_of(std::int64_t bytes, SimTime time) {
  constexpr unsigned __int128 kBitPicoseconds = 8'000'000'000'000;
  const auto bits = static_cast<unsigned __int128>(bytes) * kBitPicoseconds;
  return static_cast<FlowRate>((bits << kFlowRateFractionBits) /
                               static_cast<std::uint64_t>(time.picoseconds()));
}

}  // namespace

MixedNetwork::MixedNetwork(Simulator& simulator, Routing& routing, const PacketOptions& packet,
                           MixedOptions mixed)
    : EventHandler(simulator),
      simulator_(simulator),
      routing_(routing),
      options_(std::move(mixed)),
      sends_again_(packet.sends_again()),
      flows_(simulator, routing),
      packets_(simulator, routing, checked(packet, routing)),
      guests_(routing.topology().link_count()),
      crowds_(routing.topology().link_count()) {
  CHECK(options_.interval > SimTime(), "no time between two looks at what packets sent");
  flows_.watch(*this);
  mixed_stats_.interval = options_.interval;
}

ConnectionId MixedNetwork::connect(const ConnectionSpec& spec) {
  Connection connection{.spec = spec, .path = {}};
  route_connection(routing_, spec, spec.path, connection.path);
  connection.is_chosen =
      !connection.path.empty() && options_.is_chosen &&
      options_.is_chosen({.spec = spec, .path = connection.path, .purpose = purpose_});
  const auto index = static_cast<std::uint32_t>(connections_.size());
  connections_.push_back(std::move(connection));
  return ConnectionId(index);
}

// The packet engine takes the rates that ports have for those of their links.
void MixedNetwork::connect_packets(std::uint32_t index) {
  Connection& connection = connections_[index];
  std::vector<LinkId> links = connection.path;
  for (const LinkId link : connection.path) {
    if (const auto back = opposite_link(routing_.topology(), link)) {
      links.push_back(*back);
    }
  }
  for (const LinkId link : links) {
    set_port(link, 0);
  }
  connection.packet = packets_.connect(connection.spec);
  for (const LinkId link : links) {
    set_port(link, flows_.taken(link));
  }
  connection.guest = flows_.add_guest(connection.path);
  CHECK(connection.packet->value() == of_packets_.size(), "connections have other numbers");
  of_packets_.push_back(index);
}

// Leaves the port of a link what flows do not take of it.
bool MixedNetwork::set_port(LinkId link, FlowRate taken) {
  if (packets_.engine().port(link) == nullptr) {
    return false;
  }
  const Bandwidth whole = routing_.topology().link(link).spec.bandwidth;
  const FlowRate capacity = rate_of(whole);
  const FlowRate rest = std::max(capacity - std::min(capacity, taken), capacity / kLeastPart);
  const auto bits_per_second = static_cast<std::int64_t>(rest >> kFlowRateFractionBits);
  packets_.engine().slow_down(link, std::max(Bandwidth(bits_per_second), Bandwidth(1)));
  return true;
}

void MixedNetwork::on_taken(LinkId link, FlowRate rate) {
  mixed_stats_.port_changes += set_port(link, rate) ? 1 : 0;
}

void MixedNetwork::send(ConnectionId id, Bytes size, EventHandler& done, std::uint64_t token) {
  CHECK(size >= Bytes(0), "a message of negative size");
  Connection& connection = connections_[id.value()];
  const Message message{.connection = id.value(), .size = size, .done = &done, .token = token};
  if (options_.crowd == 0) {
    connection.under_way += connection.is_chosen ? 1 : 0;
    begin(message);
    return;
  }
  if (++connection.under_way == 1) {
    for (const LinkId link : connection.path) {
      ++crowds_[link.value()];
    }
  }
  // Behind everything that is due at this instant, when all of a crowd are there.
  if (begun_.empty()) {
    simulator_.schedule(SimTime(), *this, kBegin);
  }
  begun_.push_back(message);
}

bool MixedNetwork::is_crowded(const Connection& connection) const {
  return options_.crowd > 0 && std::ranges::any_of(connection.path, [&](LinkId link) {
           return crowds_[link.value()] >= options_.crowd;
         });
}

void MixedNetwork::begin(const Message& message) {
  Connection& connection = connections_[message.connection];
  if (!connection.is_decided) {
    connection.is_decided = true;
    connection.runs_as_packets = connection.is_chosen || is_crowded(connection);
  }
  if (connection.runs_as_packets) {
    begin_as_packets(message);
    return;
  }
  if (!connection.flow) {
    connection.flow = flows_.connect(connection.spec);
  }
  ++mixed_stats_.flow_messages;
  mixed_stats_.flow_bytes += message.size;
  if (options_.crowd == 0) {
    flows_.send(*connection.flow, message.size, *message.done, message.token);
  } else {
    flows_.send(*connection.flow, message.size, *this, kFirstMessage + take_slot(message));
  }
}

void MixedNetwork::begin_as_packets(const Message& message) {
  if (!connections_[message.connection].packet) {
    connect_packets(message.connection);
  }
  Connection& connection = connections_[message.connection];
  if (!connection.is_present) {
    connection.looked = simulator_.now();
    connection.sent = sent_by(connection);
    limit(connection, kUnlimited);
    set_present(connection, true);
    count_flows_met(connection);
  }
  if (!connection.is_listed) {
    connection.is_listed = true;
    active_.push_back(message.connection);
  }
  if (!is_exchange_due_) {
    is_exchange_due_ = true;
    simulator_.schedule(options_.interval, *this, kExchange);
  }
  connection.posted += message.size.count();
  ++mixed_stats_.packet_messages;
  mixed_stats_.packet_bytes += message.size;
  packets_.send(*connection.packet, message.size, *this, kFirstMessage + take_slot(message));
}

std::uint64_t MixedNetwork::take_slot(const Message& message) {
  if (free_.empty()) {
    messages_.push_back(message);
    return messages_.size() - 1;
  }
  const std::uint64_t slot = free_.back();
  free_.pop_back();
  messages_[slot] = message;
  return slot;
}

void MixedNetwork::on_event(std::uint64_t token) {
  if (token == kExchange) {
    exchange();
  } else if (token == kBegin) {
    std::vector<Message> begun;
    begun.swap(begun_);
    for (const Message& message : begun) {
      begin(message);
    }
  } else {
    end(token - kFirstMessage);
  }
}

void MixedNetwork::end(std::uint64_t slot) {
  const Message message = messages_[slot];
  free_.push_back(slot);
  last_end_ = simulator_.now();
  simulator_.schedule(SimTime(), *message.done, message.token);
  Connection& connection = connections_[message.connection];
  if (--connection.under_way > 0) {
    return;
  }
  connection.is_decided = false;
  if (options_.crowd > 0) {
    for (const LinkId link : connection.path) {
      --crowds_[link.value()];
    }
  }
  if (connection.is_present) {
    set_present(connection, false);
  }
}

void MixedNetwork::set_present(Connection& connection, bool is_present) {
  connection.is_present = is_present;
  flows_.set_present(connection.guest, is_present);
  for (const LinkId link : connection.path) {
    guests_[link.value()] += is_present ? 1U : ~0U;
  }
}

void MixedNetwork::count_flows_met(const Connection& connection) {
  for (const LinkId link : connection.path) {
    const std::uint32_t all = flows_.flows_on(link);
    const std::uint32_t guests = guests_[link.value()];
    mixed_stats_.max_flows_met = std::max(mixed_stats_.max_flows_met, all - std::min(all, guests));
  }
}

void MixedNetwork::exchange() {
  ++mixed_stats_.exchanges;
  std::erase_if(active_, [&](std::uint32_t index) {
    Connection& connection = connections_[index];
    connection.is_listed = connection.runs_as_packets && connection.under_way > 0;
    return !connection.is_listed;
  });
  is_exchange_due_ = !active_.empty();
  if (!is_exchange_due_) {
    return;
  }
  for (const std::uint32_t index : active_) {
    look_at(connections_[index]);
  }
  simulator_.schedule(options_.interval, *this, kExchange);
}

// A connection that began a moment ago has not shown yet what it sends.
void MixedNetwork::look_at(Connection& connection) {
  const SimTime elapsed = simulator_.now() - connection.looked;
  if (!connection.is_present || elapsed + elapsed < options_.interval) {
    return;
  }
  count_flows_met(connection);
  const std::int64_t sent = sent_by(connection);
  const FlowRate rate = rate_of(sent - connection.sent, elapsed);
  connection.looked = simulator_.now();
  connection.sent = sent;
  if (sent == connection.posted && !sends_again_) {
    if (!has_queue(connection)) {  // The rest is on the lines.
      set_present(connection, false);
    }
    return;
  }
  const FlowRate share = flows_.share_of_guest(connection.guest);
  const FlowRate least = rate_of(path_bandwidth(routing_.topology(), connection.path)) / kLeastPart;
  limit(connection, rate >= share / 8 * 7 ? kUnlimited : std::max(rate + rate / 2, least));
}

void MixedNetwork::limit(Connection& connection, FlowRate max) {
  if (max != connection.limit) {
    connection.limit = max;
    flows_.limit_guest(connection.guest, max);
  }
}

std::int64_t MixedNetwork::sent_by(const Connection& connection) const {
  return packets_.engine().senders().payload_sent(connection.packet->value());
}

bool MixedNetwork::has_queue(const Connection& connection) const {
  return std::ranges::any_of(connection.path, [&](LinkId link) {
    const Port* const port = packets_.engine().port(link);  // None before the queue of a socket.
    return port != nullptr && port->queued_bytes > 0;
  });
}

NetworkStats MixedNetwork::stats() const {
  NetworkStats stats = flows_.stats();
  const NetworkStats packets = packets_.stats();
  stats.messages += packets.messages;
  stats.bytes += packets.bytes;
  stats.connections = connections_.size();
  stats.packets = packets.packets;
  return stats;
}

std::vector<LinkUse> MixedNetwork::link_use() const {
  std::vector<Bytes> bytes(routing_.topology().link_count());
  for (const std::vector<LinkUse>& uses : {flows_.link_use(), packets_.link_use()}) {
    for (const LinkUse& use : uses) {
      bytes[use.link.value()] += use.bytes;
    }
  }
  return use_of(bytes);
}

std::optional<ConnectionCounters> MixedNetwork::connection_counters(ConnectionId id) const {
  const Connection& connection = connections_[id.value()];
  return connection.packet ? packets_.connection_counters(*connection.packet)
                           : ConnectionCounters{};
}

std::optional<PacketSamples> MixedNetwork::samples() const {
  std::optional<PacketSamples> samples = packets_.samples();
  if (samples) {
    for (RateSample& rate : samples->rates) {
      rate.connection = ConnectionId(of_packets_[rate.connection.value()]);
    }
  }
  return samples;
}

}  // namespace trainyard
