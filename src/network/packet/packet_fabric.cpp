// SPDX-License-Identifier: Apache-2.0
// Ports and paths of the packet engine; packet_switch.cpp and packet_credits.cpp have the rest.
#include "network/packet/packet_fabric.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "hw/packet/rdma_packet.h"
#include "hw/switch/pfc.h"
#include "network/packet/packet_control.h"
#include "network/packet/packet_reliability.h"
#include "network/packet_parts/packet_partition.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/graph/path.h"
#include "topology/routing/surviving_routes.h"

namespace trainyard {
namespace {

// The packet for which LinkSpec states rates of the fabric: what the measurements behind the
// catalogue sent.
constexpr Bytes kRatedPayload{4096};
// The same with TCP, at the usual MTU of 1,500 B: tools/boxing/graph.py shapes lines by it.
constexpr Bytes kRatedSegment = tcp_payload(Bytes(1500));
constexpr std::size_t kMaxLinks = 255;

}  // namespace

PacketFabric::PacketFabric(const Topology& topology, const PacketOptions& options)
    : topology_(topology),
      options_(options),
      port_index_(topology.link_count(), kNoIndex),
      switch_index_(topology.node_count(), kNoIndex),
      losses_(options.seed) {
  check_options(options);
  check_marking();
  set_sizes();
  if (parts() > 1) {
    part_ = cut_into_parts(topology, parts());
  }
  if (const ControlTraits traits = control_traits(options_);
      traits.needs_acks() && !options_.acks_wait()) {
    options_.packets_per_ack = traits.packets_for_ack(Bytes(sizes_.full));
  }
  add_hosts();
}

void PacketFabric::set_sizes() {
  const RdmaLink framing = options_.framing;
  sizes_.around_frame = wire_of(options_.mtu.count(), false) -
                        frame_bytes(framing, RdmaOpcode::SendOnly, options_.mtu).count();
  if (control_traits(options_).telemetry != IntFormat::None) {
    sizes_.stamps = kIntWireBytes.count();
  }
  sizes_.ack = wire_bytes(framing, RdmaOpcode::Acknowledge, Bytes(0)).count() + sizes_.stamps;
  sizes_.cnp = wire_bytes(framing, RdmaOpcode::Cnp, Bytes(0)).count();
  sizes_.full = wire_of(options_.mtu.count(), false);
  sizes_.largest = wire_of(options_.mtu.count(), true);
}

std::int64_t PacketFabric::wire_of(std::int64_t payload, bool first) const {
  const bool names_memory = first && options_.verb == RdmaVerb::Write;
  const RdmaOpcode opcode = names_memory ? RdmaOpcode::WriteOnly : RdmaOpcode::SendOnly;
  return wire_bytes(options_.framing, opcode, Bytes(payload)).count() + sizes_.stamps;
}

// ACKs and CNPs go back to the source.
bool PacketFabric::has_way_back() const {
  return options_.packets_per_ack > 0 || options_.control != CongestionControl::None ||
         options_.sends_again();
}

// NVLink, PCIe and the like carry data in packets of their own, far smaller than ours: full packets
// of any MTU get the rate that is stated.
Bandwidth PacketFabric::line_rate(Bandwidth rate, LinkKind kind) const {
  if (options_.rates == RateMeaning::Line) {
    return rate;
  }
  const Bytes rated = options_.framing == RdmaLink::Tcp ? kRatedSegment : kRatedPayload;
  const Bytes payload = kind == LinkKind::Network ? rated : options_.mtu;
  const auto wire = wire_bytes(options_.framing, RdmaOpcode::SendOnly, payload).count();
  return rate.scaled(static_cast<double>(wire) / static_cast<double>(payload.count()));
}

void PacketFabric::slow_down(LinkId link, Bandwidth rate) {
  CHECK(rate > Bandwidth(0) && rate <= topology_.link(link).spec.bandwidth,
        "a port at another rate than its link can have");
  Port& port = ports_[port_index_[link.value()]];
  const Bandwidth line = line_rate(rate, topology_.link(link).spec.kind);
  port.bits_per_second = static_cast<std::uint64_t>(line.bits_per_second());
  port.full_time = transfer_time(Bytes(sizes_.full), line).picoseconds();
}

LinkId PacketFabric::link_back(LinkId id) const {
  if (const auto back = opposite_link(topology_, id)) {
    return *back;
  }
  const Link& link = topology_.link(id);
  throw ConfigError(fmt::format(
      "packet engine: expected a link back from {} to {} for pause frames and ACKs, found none",
      topology_.node(link.target).name, topology_.node(link.source).name));
}

std::uint32_t PacketFabric::port_of(LinkId id) {
  if (port_index_[id.value()] != kNoIndex) {
    return port_index_[id.value()];
  }
  const auto index = static_cast<std::uint32_t>(ports_.size());
  port_index_[id.value()] = index;
  const Link& link = topology_.link(id);
  Port& port = ports_.emplace_back();
  port.link = id.value();
  if (!part_.empty()) {
    port.part = part_[link.source.value()];
    const std::uint32_t far = part_[link.target.value()];
    port.into = far == port.part ? kNoIndex : far;
  }
  const Bandwidth rate = line_rate(link.spec.bandwidth, link.spec.kind);
  port.bits_per_second = static_cast<std::uint64_t>(rate.bits_per_second());
  port.full_time = transfer_time(Bytes(sizes_.full), rate).picoseconds();
  if (options_.burst > Bytes(0)) {
    full_at_.push_back(link.spec.kind == LinkKind::Network
                           ? time_at(port.bits_per_second, options_.burst.count())
                           : kNeverTime);
  }
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
  port.pause_delay = flight + reaction_time(rate).picoseconds();
  set_up_lanes(port, link);
  set_up_switch(port, link);
  set_up_credits(port, link);
  set_up_pauses(port, link);
  return index;
}

Picoseconds PacketFabric::lookahead(const Port& port, bool is_last) const {
  const std::int64_t min_wire = wire_of(0, false);
  const std::int64_t read = is_last ? min_wire : std::min<std::int64_t>(min_wire, kCutThroughBytes);
  Picoseconds min = (has_bucket(port) ? 0 : time_on_line(port, sizes_, read)) +
                    (is_last ? port.end_delay : port.through_delay);
  if (!options_.slow_hosts.empty()) {  // Which are told of packets on their way through, too.
    min = std::min(min, time_on_line(port, sizes_, min_wire) + port.end_delay);
  }
  if (options_.watchdog) {
    min = std::min(min, options_.watchdog->poll.picoseconds() / 2);
  }
  return min;
}

Picoseconds PacketFabric::add_path(std::span<const LinkId> path) {
  CHECK(!path.empty() && path.size() <= kMaxLinks, "a path of no link or too many");
  Picoseconds min = kNeverTime;
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const LinkId link = path[hop];
    const std::uint32_t index = port_of(link);
    std::uint32_t entry = 0;
    if (options_.pfc || has_way_back()) {
      const LinkId back = link_back(link);
      const std::uint32_t opposite = port_of(back);
      ports_[index].opposite = opposite;
      ports_[opposite].opposite = index;
      min = std::min(min, time_on_line(ports_[opposite], sizes_, kPfcWireBytes.count()) +
                              ports_[opposite].pause_delay);
    }
    if (hop > 0 && ports_[index].node != kNoIndex) {
      const LinkId back = link_back(path[hop - 1]);
      entry = number_at(topology_.link(back).source, back);
    }
    positions_.push_back(index);
    entries_.push_back(static_cast<std::uint16_t>(entry));
    min = std::min(min, lookahead(ports_[index], hop + 1 == path.size()));
    if (hop > 0) {
      min = std::min(min, credit_lookahead(positions_[positions_.size() - 2], index));
    }
  }
  CHECK(positions_.size() < kNoIndex, "too many connections");
  return min;
}

Picoseconds PacketFabric::add_way_back(std::span<const LinkId> path) {
  std::vector<LinkId> back;
  for (auto link = path.rbegin(); link != path.rend(); ++link) {
    back.push_back(link_back(*link));
  }
  return add_path(back);
}

std::uint64_t PacketFabric::own_rate(std::span<const LinkId> path) const {
  std::uint64_t rate = std::numeric_limits<std::uint64_t>::max();
  for (const LinkId link : path) {
    const std::uint32_t port = port_index_[link.value()];
    const LinkSpec& spec = topology_.link(link).spec;
    rate = std::min(rate, port != kNoIndex
                              ? ports_[port].bits_per_second
                              : static_cast<std::uint64_t>(
                                    line_rate(spec.bandwidth, spec.kind).bits_per_second()));
    if (topology_.link(link).spec.kind == LinkKind::Network) {
      break;
    }
  }
  // A host stages through bounce buffers of its own for each pair.
  const std::vector<LinkId> links(path.begin(), path.end());
  if (const auto staging = staging_bandwidth(topology_, links)) {
    const Bandwidth line = line_rate(*staging, LinkKind::Memory);
    rate = std::min(rate, static_cast<std::uint64_t>(line.bits_per_second()));
  }
  return rate;
}

std::span<const LinkId> PacketFabric::from_queue(std::span<const LinkId> path) const {
  const auto first = std::ranges::find_if(
      path, [&](LinkId link) { return topology_.link(link).spec.kind == LinkKind::Network; });
  return options_.has_sockets() && first != path.end() ? std::span(first, path.end()) : path;
}

bool PacketFabric::is_of_fabric(const Link& link) const {
  return topology_.node(link.source).kind == NodeKind::Switch &&
         link.spec.kind == LinkKind::Network;
}

Picoseconds PacketFabric::idle_time(std::uint32_t first, std::uint8_t hops,
                                    std::int64_t wire) const {
  Picoseconds time = 0;
  for (std::uint32_t hop = 0; hop < hops; ++hop) {
    const Port& port = ports_[positions_[first + hop]];
    const Picoseconds end = time + time_on_line(port, sizes_, wire);
    time = hop + 1U == hops ? end + port.end_delay
                            : handed_on(port, positions_[first + hop + 1], wire, time, end);
  }
  return time;
}

Picoseconds PacketFabric::stored_time(std::uint32_t first, std::uint8_t hops,
                                      std::int64_t wire) const {
  Picoseconds time = 0;
  for (std::uint32_t hop = 0; hop < hops; ++hop) {
    const Port& port = ports_[positions_[first + hop]];
    time +=
        time_on_line(port, sizes_, wire) + (hop + 1 == hops ? port.end_delay : port.through_delay);
  }
  return time;
}

}  // namespace trainyard
