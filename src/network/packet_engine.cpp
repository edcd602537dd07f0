// SPDX-License-Identifier: Apache-2.0
// Ports, switches, paths and messages; packet_window.cpp has the work of a window.
#include "network/packet_engine.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "hw/pfc.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/random.h"
#include "topology/path.h"

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
  if (!(options.bit_error_rate >= 0.0 && options.bit_error_rate < 1.0)) {
    throw ConfigError(
        fmt::format("packet engine: expected a bit error rate from 0 to less than 1, found {}",
                    options.bit_error_rate));
  }
  if (options.verb != RdmaVerb::Send && options.verb != RdmaVerb::Write) {
    throw ConfigError("packet engine: expected messages of SEND or WRITE, found another verb");
  }
  if (options.pfc && options.fabric_credits > Bytes(0)) {
    throw ConfigError("packet engine: expected PFC or credits between switches, found both");
  }
  // A wait is bits over rate.
  if (options.dcqcn && options.dcqcn->least < Bandwidth(1)) {
    throw ConfigError(
        fmt::format("packet engine: expected a least rate of DCQCN of at least 1 bit/s, found {}",
                    options.dcqcn->least.bits_per_second()));
  }
}

}  // namespace

PacketEngine::PacketEngine(const Topology& topology, const PacketOptions& options)
    : topology_(topology),
      options_(options),
      port_index_(topology.link_count(), kNoIndex),
      switch_index_(topology.node_count(), kNoIndex),
      sampler_(options.sample_every),
      losses_(options.seed) {
  check(options);
  check_marking();
  check_retransmission();
  can_lose_ =
      options.retransmission == Retransmission::None && options.buffer > Bytes(0) && !options.pfc;
  for (const LinkFailure& failure : options.failures) {
    fail_link(failure.link, failure.time.picoseconds());
  }
  const RdmaFraming& framing = options.framing;
  around_frame_ = wire_of(options.mtu.count(), false) -
                  frame_bytes(framing, RdmaOpcode::SendOnly, options.mtu).count();
  ack_wire_ = wire_bytes(framing, RdmaOpcode::Acknowledge, Bytes(0)).count();
  cnp_wire_ = wire_bytes(framing, RdmaOpcode::Cnp, Bytes(0)).count();
  set_up_control();
  full_wire_ = wire_of(options.mtu.count(), false);
  largest_wire_ = wire_of(options.mtu.count(), true);
  if (options_.profile) {
    control_.emplace(*options_.profile, full_wire_);
    if (const int packets = packets_per_ack(*options_.profile, full_wire_); packets > 0) {
      options_.packets_per_ack = packets;
    }
  }
}

// Who answers marks with CNPs, and what switches write into packets.
void PacketEngine::set_up_control() {
  check_control(options_);
  if (!options_.profile) {
    sends_cnps_ = options_.control != CongestionControl::None;
    cnp_interval_ = cnp_interval(options_.control).picoseconds();
    return;
  }
  if (const DcqcnProfile* const dcqcn = options_.profile->dcqcn()) {
    sends_cnps_ = true;
    cnp_interval_ = dcqcn->cnp_interval.picoseconds();
  }
  if (options_.profile->wants_int()) {
    is_observed_ = true;
    int_wire_ = kIntWireBytes.count();
    ack_wire_ += int_wire_;
  }
}

std::int64_t PacketEngine::wire_of(std::int64_t payload, bool first) const {
  const bool is_write = options_.verb == RdmaVerb::Write;
  const RdmaOpcode opcode =
      is_write ? (first ? RdmaOpcode::WriteOnly : RdmaOpcode::WriteLast) : RdmaOpcode::SendOnly;
  return wire_bytes(options_.framing, opcode, Bytes(payload)).count() + int_wire_;
}

// ACKs and CNPs go back to the source.
bool PacketEngine::has_way_back() const {
  return options_.packets_per_ack > 0 || options_.control != CongestionControl::None ||
         options_.retransmission != Retransmission::None;
}

Bandwidth PacketEngine::line_rate(Bandwidth rate) const {
  if (options_.rates == RateMeaning::Line) {
    return rate;
  }
  const auto wire = wire_bytes(options_.framing, RdmaOpcode::SendOnly, kRatedPayload).count();
  return rate.scaled(static_cast<double>(wire) / static_cast<double>(kRatedPayload.count()));
}

// The link back: of several between two nodes the first belongs to the first, and so on.
std::optional<LinkId> PacketEngine::opposite_of(LinkId id) const {
  const Link& link = topology_.link(id);
  std::size_t number = 0;
  for (const LinkId other : topology_.links_from(link.source)) {
    if (other == id) {
      break;
    }
    number += topology_.link(other).target == link.target ? 1 : 0;
  }
  for (const LinkId other : topology_.links_from(link.target)) {
    if (topology_.link(other).target == link.source && number-- == 0) {
      return other;
    }
  }
  return std::nullopt;
}

LinkId PacketEngine::link_back(LinkId id) const {
  if (const auto back = opposite_of(id)) {
    return *back;
  }
  const Link& link = topology_.link(id);
  throw ConfigError(fmt::format(
      "packet engine: expected a link back from {} to {} for pause frames and ACKs, found none",
      topology_.node(link.target).name, topology_.node(link.source).name));
}

std::uint32_t PacketEngine::port_of(LinkId id) {
  if (port_index_[id.value()] != kNoIndex) {
    return port_index_[id.value()];
  }
  const auto index = static_cast<std::uint32_t>(ports_.size());
  port_index_[id.value()] = index;
  const Link& link = topology_.link(id);
  Port& port = ports_.emplace_back();
  if (options_.queue_times) {
    queue_times_.emplace_back();
  }
  port.link = id.value();
  const Bandwidth rate = line_rate(link.spec.bandwidth);
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
  // The other side stops after the time that 802.3 allows it.
  port.pause_delay = flight + pause_time(reaction_quanta(rate), rate).picoseconds();
  set_up_switch(port, link);
  set_up_credits(port, link);
  set_up_losses(id);
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
  if (options_.longest_window > SimTime()) {
    lookahead = std::min(lookahead, options_.longest_window.picoseconds());
  }
  if (lookahead >= window_) {
    return;
  }
  window_ = lookahead;
  number_ = static_cast<std::uint64_t>(begin_time_ / window_);
  end_time_ = static_cast<Picoseconds>(number_ + 1) * window_;
  calendar_.reset(static_cast<std::uint64_t>(begin_time_ / window_));
  const auto add = [&](std::uint32_t index, CalendarItem kind, const Ring<Arrival>& ring) {
    if (!ring.empty()) {
      add_to_calendar(item_of(index, kind), ring.front().time);
    }
  };
  for (std::uint32_t index = 0; index < ports_.size(); ++index) {
    Port& port = ports_[index];
    port.due = kNoWindow;
    port.visited = kNoWindow;
    add(index, CalendarItem::Wire, port.wire);
    add(index, CalendarItem::Notices, port.notices);
    add(index, CalendarItem::Pauses, port.pauses);
    schedule(port, index);
    if (port.leaving.bytes > 0 && port.leaving.time >= begin_time_) {
      add_port_to_calendar(port, index, port.leaving.time);
    }
    if (port.credits != kNoIndex) {
      add_credits_to_calendar(index);
    }
  }
}

// Appends the ports of a path; the least lookahead on it.
Picoseconds PacketEngine::add_path(std::span<const LinkId> path) {
  Picoseconds least = kNeverTime;
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const LinkId link = path[hop];
    const std::uint32_t index = port_of(link);
    std::uint32_t entry = 0;
    if (options_.pfc || has_way_back()) {
      const LinkId back = link_back(link);
      const std::uint32_t opposite = port_of(back);
      ports_[index].opposite = opposite;
      ports_[opposite].opposite = index;
      least = std::min(least, time_on_line(ports_[opposite], kPfcWireBytes.count()) +
                                  ports_[opposite].pause_delay);
    }
    if (hop > 0 && ports_[index].node != kNoIndex) {
      const LinkId back = link_back(path[hop - 1]);
      entry = number_at(topology_.link(back).source, back);
    }
    positions_.push_back(index);
    entries_.push_back(static_cast<std::uint16_t>(entry));
    least = std::min(least, lookahead(ports_[index], hop + 1 == path.size()));
    if (hop > 0) {
      least = std::min(least, credit_lookahead(positions_[positions_.size() - 2], index));
    }
  }
  CHECK(positions_.size() < kNoIndex, "too many connections");
  return least;
}

std::uint32_t PacketEngine::add_connection(std::span<const LinkId> path) {
  CHECK(!path.empty() && path.size() <= kMostLinks, "a path of no link or too many");
  Connection connection;
  connection.path = static_cast<std::uint32_t>(positions_.size());
  connection.hops = static_cast<std::uint8_t>(path.size());
  Picoseconds least = add_path(path);
  connection.port = positions_[connection.path];
  const std::uint64_t first_rate = ports_[connection.port].bits_per_second;
  connection.rate = first_rate;
  for (const LinkId link : path) {
    connection.rate = std::min(connection.rate, ports_[port_index_[link.value()]].bits_per_second);
    if (topology_.link(link).spec.kind == LinkKind::Network) {
      break;
    }
  }
  // A host stages through bounce buffers of its own for each pair.
  const std::vector<LinkId> links(path.begin(), path.end());
  if (const auto staging = staging_bandwidth(topology_, links)) {
    connection.rate = std::min(connection.rate,
                               static_cast<std::uint64_t>(line_rate(*staging).bits_per_second()));
  }
  connection.is_paced = connection.rate < first_rate;
  if (has_way_back()) {
    std::vector<LinkId> back;
    for (auto link = path.rbegin(); link != path.rend(); ++link) {
      back.push_back(link_back(*link));
    }
    connection.reverse = static_cast<std::uint32_t>(positions_.size());
    least = std::min(least, add_path(back));
  }
  if (control_) {
    add_sender(connection);
  } else if (options_.control != CongestionControl::None) {
    const auto line = Bandwidth(static_cast<std::int64_t>(connection.rate));
    DcqcnSettings settings = options_.dcqcn.value_or(dcqcn_settings(options_.control, line));
    settings.line = line;
    const auto entry = settings_.try_emplace(connection.rate, settings).first;
    reactions_.emplace_back(entry->second);
  }
  Port& first = ports_[connection.port];
  if (first.source == kNoIndex) {
    first.source = static_cast<std::uint32_t>(sources_.size());
    sources_.emplace_back();
  }
  if (options_.retransmission != Retransmission::None) {
    least = std::min(least, add_ends(connection));
  }
  connections_.push_back(connection);
  shorten_window(least);
  return static_cast<std::uint32_t>(connections_.size() - 1);
}

void PacketEngine::add_alternative(std::uint32_t id, std::span<const LinkId> path) {
  Connection& connection = connections_[id];
  CHECK(path.size() == connection.hops, "sprayed paths of different lengths");
  if (control_ && control_->needs_acks()) {
    throw ConfigError(
        "packet engine: expected a congestion control that needs no ACKs over sprayed paths, where "
        "packets overtake; found spraying and one that does");
  }
  if (options_.retransmission != Retransmission::None) {
    throw ConfigError(
        "packet engine: expected no retransmission over sprayed paths, where packets that overtake "
        "would count as lost; found retransmission and spraying");
  }
  if (connection.spray == kNoIndex) {
    connection.spray = static_cast<std::uint32_t>(sprays_.size());
    sprays_.emplace_back(connection.path);
  }
  const auto first = static_cast<std::uint32_t>(positions_.size());
  const Picoseconds least = add_path(path);
  const std::uint32_t last = connection.hops - 1;
  CHECK(positions_[first] == connection.port &&
            positions_[first + last] == positions_[connection.path + last],
        "sprayed paths that do not begin and end alike");
  sprays_[connection.spray].add_path(first, hash64(options_.seed ^ hash64(id)));
  shorten_window(least);
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
  if (!reliable_.empty()) {
    post(id, messages_[slot]);
    return;
  }
  if (connection.sending == kNoIndex) {
    connection.sending = slot;
    connection.unsent = message.size;
    Port& port = ports_[connection.port];
    sources_[port.source].wait(id, std::max(message.time, connection.next_start),
                               messages_[slot].order);
    schedule(port, connection.port);
  }
}

// Puts the port into the calendar for the window in which it can next begin a packet that it has.
void PacketEngine::schedule(Port& port, std::uint32_t index) {
  const Picoseconds start = next_start(port);
  if (start != kNeverTime) {
    add_port_to_calendar(port, index, start);
  }
}

}  // namespace trainyard
