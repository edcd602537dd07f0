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

// alibaba-edu/High-Precision-Congestion-Control: of the switches in its simulations.
constexpr Bytes kUsualBuffer = mib(32);

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
      losses_(options.seed),
      sampler_(options.sample_every) {
  check(options);
  check_marking();
  check_retransmission();
  can_lose_ =
      options.retransmission == Retransmission::None && options.buffer > Bytes(0) && !options.pfc;
  full_wire_ = wire_of(options.mtu.count(), false);
  largest_wire_ = wire_of(options.mtu.count(), true);
  const RdmaFraming& framing = options.framing;
  around_frame_ = full_wire_ - frame_bytes(framing, RdmaOpcode::SendOnly, options.mtu).count();
  ack_wire_ = wire_bytes(framing, RdmaOpcode::Acknowledge, Bytes(0)).count();
  cnp_wire_ = wire_bytes(framing, RdmaOpcode::Cnp, Bytes(0)).count();
  cnp_interval_ = cnp_interval(options.control).picoseconds();
}

// That every port that marks has thresholds, before anything runs.
void PacketEngine::check_marking() const {
  for (std::uint32_t number = 0; options_.marking && number < topology_.link_count(); ++number) {
    const Link& link = topology_.link(LinkId(number));
    if (has_buffer(link)) {
      static_cast<void>(red_profile(options_, line_rate(link.spec.bandwidth)));
    }
  }
}

// Ports of switches of the fabric.
bool PacketEngine::has_buffer(const Link& link) const {
  return topology_.node(link.source).kind == NodeKind::Switch &&
         link.spec.kind == LinkKind::Network;
}

std::int64_t PacketEngine::wire_of(std::int64_t payload, bool first) const {
  const bool is_write = options_.verb == RdmaVerb::Write;
  const RdmaOpcode opcode =
      is_write ? (first ? RdmaOpcode::WriteOnly : RdmaOpcode::WriteLast) : RdmaOpcode::SendOnly;
  return wire_bytes(options_.framing, opcode, Bytes(payload)).count();
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

std::uint32_t PacketEngine::number_at(NodeId node, LinkId out) const {
  std::uint32_t number = 0;
  for (const LinkId link : topology_.links_from(node)) {
    if (link == out) {
      return number;
    }
    ++number;
  }
  CHECK(false, "a link of another node");
}

IngressLimits PacketEngine::ingress_limits(const Link& link) const {
  if (!options_.pfc) {
    return {};
  }
  const Bandwidth rate = line_rate(link.spec.bandwidth);
  // The largest frame: the first of a message. One frame more than 802.1Qbb's bytes, because the
  // packet that triggers XOFF may lie in the headroom itself.
  const Bytes frame(wire_of(options_.mtu.count(), true) - around_frame_);
  const Bytes headroom =
      headroom_by(options_.headroom,
                  {.rate = rate,
                   .delay = link.spec.latency,
                   .mtu = frame,
                   .pipeline = topology_.node(link.target).latency + options_.pipeline}) +
      frame;
  return {.lossless = true,
          .exempt = false,
          .reserve = options_.reserve,
          .headroom = options_.fixed_headroom.value_or(headroom),
          .threshold = {.kind = BufferThreshold::Kind::Dynamic,
                        .alpha_exponent = options_.alpha_exponent},
          .resume_offset = options_.resume_offset};
}

std::uint32_t PacketEngine::switch_of(NodeId node) {
  std::uint32_t& index = switch_index_[node.value()];
  if (index != kNoIndex) {
    return index;
  }
  index = static_cast<std::uint32_t>(switches_.size());
  const auto links = topology_.links_from(node);
  std::vector<IngressLimits> limits;
  Bytes owned;
  for (const LinkId out : links) {
    limits.push_back(options_.pfc ? ingress_limits(topology_.link(link_back(out)))
                                  : IngressLimits{});
    owned += limits.back().reserve + limits.back().headroom;
  }
  const Bytes size =
      options_.buffer > Bytes(0) ? options_.buffer : std::max(kUsualBuffer, owned * 4);
  // At least half is shared: below, thresholds are a few packets.
  if (owned * 2 > size) {
    throw ConfigError(fmt::format(
        "packet engine: {}: expected a buffer of at least {}, twice what {} ports reserve for "
        "PFC, found {}",
        topology_.node(node).name, to_string(owned * 2), links.size(), to_string(size)));
  }
  switches_.push_back({.buffer = SharedBuffer({.size = size, .rule = options_.admission},
                                              static_cast<std::uint32_t>(links.size()), 1),
                       .ports = {}});
  PacketSwitch& record = switches_.back();
  // With alpha 1 a queue may take half of what is free and its own.
  const BufferThreshold lossy{.kind = BufferThreshold::Kind::Dynamic,
                              .alpha_exponent = options_.lossy_alpha_exponent};
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    if (options_.pfc) {
      record.buffer.set_ingress(i, 0, limits[i]);
    } else {
      record.buffer.set_egress(i, 0, lossy);
    }
  }
  // One group alone with x bytes is below its threshold as long as x < alpha (S - x). Shares of
  // 1 / (1 + alpha) with alpha up to 64 leave at least 1/65 of it.
  const std::int64_t shared = (size - owned).count();
  const int exponent = options_.pfc ? options_.alpha_exponent : options_.lossy_alpha_exponent;
  const std::int64_t whole = exponent >= 0 ? shared : shared >> -exponent;
  const std::int64_t divisor = exponent >= 0 ? 1 + (std::int64_t{1} << exponent) : 0;
  record.open_limit =
      divisor > 0 ? shared - shared / divisor - 1
                  : whole - (whole >> (-exponent)) - 1;  // x <= T - alpha T < T / (1 + alpha).
  const std::int64_t in_flight =
      static_cast<std::int64_t>(links.size()) * wire_of(options_.mtu.count(), true);
  record.open_limit = std::max<std::int64_t>(0, record.open_limit - in_flight);
  loads_.push_back({.held = 0, .limit = options_.always_exact ? -1 : record.open_limit});
  return index;
}

void PacketEngine::set_up_switch(Port& port, const Link& link) {
  if (!has_buffer(link)) {
    return;
  }
  const auto marking =
      red_profile(options_, Bandwidth(static_cast<std::int64_t>(port.bits_per_second)));
  if (marking) {
    const auto [entry, is_new] = marker_index_.try_emplace(
        port.bits_per_second, static_cast<std::uint32_t>(markers_.size()));
    if (is_new) {
      markers_.emplace_back(*marking);
    }
    port.marker = entry->second;
    port.mark_above = marking->kmin.count();
    port.random = hash64(options_.seed ^ hash64(port.link));
  }
  if (options_.buffer > Bytes(0) || options_.pfc) {
    port.node = switch_of(link.source);
    port.out = number_at(link.source, LinkId(port.link));
    switches_[port.node].ports.push_back(port_index_[port.link]);
  }
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
  if (options_.control != CongestionControl::None) {
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
