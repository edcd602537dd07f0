// SPDX-License-Identifier: Apache-2.0
// Ports, paths and messages; packet_window.cpp has the work of a window.
#include "network/packet_engine.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// The packet for which LinkSpec states rates: what the measurements behind the catalogue sent.
constexpr Bytes kRatedPayload{4096};
constexpr std::size_t kMostLinks = 255;
constexpr std::int64_t kMostMtu = 65'000;  // Packet::wire has 16 bits.

void check(const PacketOptions& options) {
  const std::int64_t mtu = options.mtu.count();
  if (mtu < 1 || mtu > kMostMtu) {
    throw ConfigError(
        fmt::format("packet engine: expected an MTU from 1 to {} B, found {} B", kMostMtu, mtu));
  }
  if (options.verb != RdmaVerb::Send && options.verb != RdmaVerb::Write) {
    throw ConfigError("packet engine: expected messages of SEND or WRITE, found another verb");
  }
}

}  // namespace

PacketEngine::PacketEngine(const Topology& topology, const PacketOptions& options)
    : topology_(topology), options_(options), port_index_(topology.link_count(), kNoIndex) {
  check(options);
  full_wire_ = wire_of(options.mtu.count(), false);
}

std::int64_t PacketEngine::wire_of(std::int64_t payload, bool first) const {
  const bool is_write = options_.verb == RdmaVerb::Write;
  const RdmaOpcode opcode =
      is_write ? (first ? RdmaOpcode::WriteOnly : RdmaOpcode::WriteLast) : RdmaOpcode::SendOnly;
  return wire_bytes(options_.framing, opcode, Bytes(payload)).count();
}

Picoseconds PacketEngine::time_on_line(const Port& port, std::int64_t wire) const {
  if (wire == full_wire_) [[likely]] {
    return port.full_time;
  }
  // At most 65,535 B: 5.3e17.
  constexpr std::uint64_t kBitPicoseconds = 8'000'000'000'000;
  const auto bits = static_cast<std::uint64_t>(wire) * kBitPicoseconds;
  return static_cast<Picoseconds>((bits + port.bits_per_second - 1) / port.bits_per_second);
}

std::uint32_t PacketEngine::port_of(LinkId id) {
  std::uint32_t& index = port_index_[id.value()];
  if (index != kNoIndex) {
    return index;
  }
  index = static_cast<std::uint32_t>(ports_.size());
  const Link& link = topology_.link(id);
  Port& port = ports_.emplace_back();
  port.link = id.value();
  Bandwidth rate = link.spec.bandwidth;
  if (options_.rates == RateMeaning::Payload) {
    const auto wire = wire_bytes(options_.framing, RdmaOpcode::SendOnly, kRatedPayload).count();
    rate = rate.scaled(static_cast<double>(wire) / static_cast<double>(kRatedPayload.count()));
  }
  port.bits_per_second = static_cast<std::uint64_t>(rate.bits_per_second());
  port.full_time = transfer_time(Bytes(full_wire_), rate).picoseconds();
  const Node& target = topology_.node(link.target);
  const Picoseconds flight = link.spec.latency.picoseconds();
  const Picoseconds node = target.latency.picoseconds();
  const bool is_switch = target.kind == NodeKind::Switch || target.kind == NodeKind::NvSwitch;
  // Adapters and what is inside servers pass data on in pieces far smaller than these packets.
  port.cuts_through =
      target.kind != NodeKind::Switch || options_.forwarding == Forwarding::CutThrough;
  port.through_delay = flight + node;
  port.end_delay = flight + (is_switch ? node : 0);
  return index;
}

Picoseconds PacketEngine::lookahead(const Port& port, bool is_last) const {
  const std::int64_t least_wire = wire_of(0, false);
  const std::int64_t read =
      is_last ? least_wire : std::min<std::int64_t>(least_wire, kCutThroughBytes);
  return time_on_line(port, read) + (is_last ? port.end_delay : port.through_delay);
}

// Windows are counted anew from the same instant on.
void PacketEngine::shorten_window(Picoseconds lookahead) {
  if (lookahead >= window_) {
    return;
  }
  window_ = lookahead;
  calendar_.reset(static_cast<std::uint64_t>(begin_time_ / window_));
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    Port& port = ports_[index];
    port.due = WindowCalendar::kNever;
    port.visited = WindowCalendar::kNever;
    if (!port.wire.empty()) {
      add_to_calendar(2 * index, port.wire.front().time);
    }
    schedule(port, index);
  }
}

std::uint32_t PacketEngine::add_connection(std::span<const LinkId> path) {
  CHECK(!path.empty() && path.size() <= kMostLinks, "a path of no link or too many");
  Connection connection;
  connection.path = static_cast<std::uint32_t>(positions_.size());
  connection.hops = static_cast<std::uint8_t>(path.size());
  Picoseconds least = kNeverTime;
  for (const LinkId link : path) {
    const std::uint32_t index = port_of(link);
    positions_.push_back(index);
    least = std::min(least, lookahead(ports_[index], link == path.back()));
  }
  connection.port = positions_[connection.path];
  Port& first = ports_[connection.port];
  if (first.source == kNoIndex) {
    first.source = static_cast<std::uint32_t>(sources_.size());
    sources_.emplace_back();
  }
  connections_.push_back(connection);
  CHECK(positions_.size() < kNoIndex, "too many connections");
  shorten_window(least);
  return static_cast<std::uint32_t>(connections_.size() - 1);
}

std::uint32_t PacketEngine::take_slot(const Message& message) {
  if (free_message_ == kNoIndex) {
    messages_.push_back(message);
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t slot = free_message_;
  free_message_ = messages_[slot].next;
  messages_[slot] = message;
  return slot;
}

void PacketEngine::send(std::uint32_t id, const Message& message) {
  CHECK(message.time >= begin_time_, "a message was sent in a window that is over");
  const std::uint32_t slot = take_slot(message);
  messages_[slot].order = sends_++;
  messages_[slot].next = kNoIndex;
  Connection& connection = connections_[id];
  if (connection.oldest == kNoIndex) {
    connection.oldest = slot;
  } else {
    messages_[connection.last].next = slot;
  }
  connection.last = slot;
  if (connection.sending == kNoIndex) {
    connection.sending = slot;
    connection.unsent = message.size;
    Port& port = ports_[connection.port];
    sources_[port.source].wait(id, message.time, messages_[slot].order);
    schedule(port, connection.port);
  }
}

// Items of the calendar: 2 i is what is under way on the link of port i, 2 i + 1 the port itself.
void PacketEngine::add_to_calendar(std::uint32_t item, Picoseconds time) {
  calendar_.add(static_cast<std::uint64_t>(time / window_), item);
}

// Puts the port into the calendar for the window in which it can next begin a packet that it has.
void PacketEngine::schedule(Port& port, std::uint32_t index) {
  Picoseconds start = port.free_at;
  if (port.queue.empty()) {
    if (port.source == kNoIndex) {
      return;
    }
    const Picoseconds own = sources_[port.source].earliest();
    if (own == kNeverTime) {
      return;
    }
    start = std::max(start, own);
  }
  const auto window = static_cast<std::uint64_t>(start / window_);
  if (window != port.due) {
    port.due = window;
    calendar_.add(window, 2 * index + 1);
  }
}

Picoseconds PacketEngine::next_border() const {
  const WindowCalendar::Window next = calendar_.next();
  return next == WindowCalendar::kNever ? kNeverTime : static_cast<Picoseconds>(next + 1) * window_;
}

PacketEngine::Counts PacketEngine::counts() const {
  Counts counts = counts_;
  for (const Port& port : ports_) {
    counts.packet_hops += port.packets;
  }
  return counts;
}

const Port* PacketEngine::port(LinkId link) const {
  const std::uint32_t index = port_index_[link.value()];
  return index == kNoIndex ? nullptr : &ports_[index];
}

std::vector<std::pair<LinkId, std::int64_t>> PacketEngine::payload_by_link() const {
  std::vector<std::int64_t> bytes(ports_.size());
  for (const Connection& connection : connections_) {
    for (std::uint32_t hop = 0; hop < connection.hops; ++hop) {
      bytes[positions_[connection.path + hop]] += connection.sent_bytes;
    }
  }
  std::vector<std::pair<LinkId, std::int64_t>> result;
  for (std::uint32_t link = 0; link < port_index_.size(); ++link) {
    if (port_index_[link] != kNoIndex && bytes[port_index_[link]] > 0) {
      result.emplace_back(LinkId(link), bytes[port_index_[link]]);
    }
  }
  return result;
}

}  // namespace trainyard
