// SPDX-License-Identifier: Apache-2.0
// Switches whose buffer is counted, and PFC. packet_switch.h says when.
#include "network/packet_parts/packet_switch.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "hw/switch/pfc.h"
#include "network/packet/packet_worker.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// alibaba-edu/High-Precision-Congestion-Control: of the switches in its simulations.
constexpr Bytes kUsualBuffer = mib(32);

// One group alone with x bytes is below its threshold as long as x < alpha (S - x). Shares of
// 1 / (1 + alpha) with alpha up to 64 leave at least 1/65 of it.
std::int64_t below_threshold(Bytes shared, int exponent) {
  const std::int64_t all = shared.count();
  if (exponent >= 0) {
    return all - all / (1 + (std::int64_t{1} << exponent)) - 1;
  }
  const std::int64_t whole = all >> -exponent;
  return whole - (whole >> -exponent) - 1;  // x <= T - alpha T < T / (1 + alpha).
}

// The time of so many bytes at the rate of the link, whatever its port has of it.
Picoseconds whole_time(const PacketFabric& fabric, const Port& port, std::int64_t wire) {
  const LinkSpec& spec = fabric.topology().link(LinkId(port.link)).spec;
  const Bandwidth rate = fabric.line_rate(spec.bandwidth, spec.kind);
  return time_at(static_cast<std::uint64_t>(rate.bits_per_second()), wire);
}

}  // namespace

std::uint32_t PacketFabric::number_at(NodeId node, LinkId out) const {
  const auto links = topology_.links_from(node);
  const auto found = std::ranges::find(links, out);
  CHECK(found != links.end(), "a link of another node");
  return static_cast<std::uint32_t>(found - links.begin());
}

IngressLimits PacketFabric::ingress_limits(const Link& link) const {
  const Bandwidth rate = line_rate(link.spec.bandwidth, link.spec.kind);
  // The largest frame: the first of a message. One frame more than 802.1Qbb's bytes, because the
  // packet that triggers XOFF may lie in the headroom itself.
  const Bytes frame(wire_of(options_.mtu.count(), true) - sizes_.around_frame);
  const Bytes headroom =
      headroom_by(options_.headroom,
                  {.rate = rate,
                   .delay = link.spec.latency,
                   .mtu = frame,
                   .pipeline = topology_.node(link.target).latency + options_.pipeline}) +
      frame;
  return {.lossless = true,
          .reserve = options_.reserve,
          .headroom = options_.fixed_headroom.value_or(headroom),
          .alpha = options_.alpha_exponent,
          .resume_offset = options_.resume_offset};
}

std::uint32_t PacketFabric::switch_of(NodeId node) {
  std::uint32_t& index = switch_index_[node.value()];
  if (index != kNoIndex) {
    return index;
  }
  index = static_cast<std::uint32_t>(switches_.size());
  const auto links = topology_.links_from(node);
  const std::uint32_t lanes = options_.lanes ? LaneOptions::kLanes : 1;
  const auto is_lossless = [&](std::uint32_t lane) {
    return options_.pfc && (!options_.lanes || options_.lanes->is_lossless(lane));
  };
  std::vector<IngressLimits> limits;  // Limits of each port, in each of its lanes that have any.
  Bytes owned;
  for (const LinkId out : links) {
    limits.push_back(options_.pfc ? ingress_limits(topology_.link(link_back(out)))
                                  : IngressLimits{});
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      owned += is_lossless(lane) ? limits.back().reserve + limits.back().headroom : Bytes(0);
    }
  }
  constexpr Bytes kNoBounds{std::int64_t{1} << 60};
  const Bytes of_part = topology_.node(node).buffer;
  const Bytes known = of_part > Bytes(0) ? of_part : std::max(kUsualBuffer, owned * 4);
  const Bytes usual = has_bounds() ? known : kNoBounds;
  const Bytes size = options_.buffer > Bytes(0) ? options_.buffer : usual;
  // At least half is shared: below, thresholds are a few packets.
  if (owned * 2 > size) {
    throw ConfigError(fmt::format(
        "packet engine: {}: expected a buffer of at least {}, twice what {} ports reserve for "
        "PFC, found {}",
        topology_.node(node).name, to_string(owned * 2), links.size(), to_string(size)));
  }
  switches_.push_back({.buffer = SharedBuffer({.size = size, .rule = options_.admission},
                                              static_cast<std::uint32_t>(links.size()), lanes),
                       .ports = {}});
  PacketSwitch& record = switches_.back();
  for (std::uint32_t i = 0; i < links.size(); ++i) {
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      if (is_lossless(lane)) {
        record.buffer.set_ingress(i, lane, limits[i]);
      } else if (has_bounds()) {
        record.buffer.set_egress(i, lane, options_.lossy_alpha_exponent);
      }
    }
  }
  const Bytes shared = size - owned;
  const std::int64_t none = shared.count();
  record.open_limit =
      std::min(options_.pfc ? below_threshold(shared, options_.alpha_exponent) : none,
               has_lossy_lane() ? below_threshold(shared, options_.lossy_alpha_exponent) : none);
  const std::int64_t in_flight =
      static_cast<std::int64_t>(links.size()) * wire_of(options_.mtu.count(), true);
  record.open_limit = std::max<std::int64_t>(0, record.open_limit - in_flight);
  if (chooses()) {
    record.chooser.emplace(*options_.adaptive, chooser_seed(options_.seed, node));
  }
  loads_.push_back({.held = 0, .limit = is_never_open() ? -1 : record.open_limit});
  return index;
}

void PacketFabric::set_up_switch(Port& port, const Link& link) {
  if (!is_of_fabric(link)) {
    return;
  }
  port.stamps = sizes_.stamps > 0;
  port.is_bounded = options_.port_queue > Bytes(0);
  const auto marking =
      red_profile(options_, Bandwidth(static_cast<std::int64_t>(port.bits_per_second)));
  if (marking) {
    const auto [entry, is_new] = marker_index_.try_emplace(
        port.bits_per_second, static_cast<std::uint32_t>(markers_.size()));
    if (is_new) {
      markers_.emplace_back(*marking);
    }
    port.marker = static_cast<std::uint16_t>(entry->second);
    port.mark_above = marking->kmin.count();
    port.random = hash64(options_.seed ^ hash64(port.link));
  }
  if (has_bounds() || chooses()) {
    port.node = switch_of(link.source);
    port.out = static_cast<std::uint16_t>(number_at(link.source, LinkId(port.link)));
    switches_[port.node].ports.push_back(port_index_[port.link]);
  }
}

// Checks that every port that marks has thresholds, before anything runs.
void PacketFabric::check_marking() const {
  for (std::uint32_t number = 0; options_.marking && number < topology_.link_count(); ++number) {
    const Link& link = topology_.link(LinkId(number));
    if (is_of_fabric(link)) {
      static_cast<void>(red_profile(options_, line_rate(link.spec.bandwidth, link.spec.kind)));
    }
  }
}

void PacketWorker::run_switch(std::uint32_t number) {
  PacketSwitch& node = switches_[number];
  const bool is_quiet = node.stopped == 0 && node.to_send == 0 && node.undecided.empty() &&
                        node.storms == 0 && node.polled != number_;
  if (is_quiet && !options_.always_exact && is_calm(node)) {
    for (const std::uint32_t index : node.ports) {
      if (ports_[index].visited == number_) {
        run_port(index, &node);
      }
    }
  } else {
    run_exactly(node);
  }
  // Half of the limit, so that it does not change to and fro.
  if (node.stopped == 0 && node.to_send == 0 && loads_[number].held <= node.open_limit / 2 &&
      !fabric_.is_never_open()) {
    stop_counting(number);
  }
}

// Returns whether no group reaches its threshold in this window, whatever the order of arrivals and
// even if nothing left: all that comes is taken from what is free first.
bool PacketWorker::is_calm(const PacketSwitch& node) {
  if (!fabric_.has_bounds() || fabric_.has_lossy_lane()) {
    return !fabric_.has_bounds();
  }
  const std::uint32_t lanes = options_.lanes ? LaneOptions::kLanes : 1;
  incoming_.assign(incoming_.size(), 0);
  std::int64_t total = 0;
  for (const std::uint32_t index : node.ports) {
    const Port& port = ports_[index];
    if (port.visited != number_) {
      continue;
    }
    for (std::uint32_t slot = port.first; slot != kNoIndex; slot = gets_[slot].next) {
      const Due& due = gets_[slot];
      if (due.packet.has(Packet::kControl | Packet::kPause)) {
        continue;
      }
      const std::uint32_t group =
          entries_[due.packet.position] * lanes + fabric_.lane_of(due.packet.connection);
      if (group >= incoming_.size()) {
        incoming_.resize(group + 1);
      }
      incoming_[group] += due.packet.wire;
      total += due.packet.wire;
    }
  }
  const int exponent = options_.alpha_exponent;
  const std::int64_t margin =
      exponent >= 0 ? total * (std::int64_t{1} << exponent) : (total >> -exponent) + 1;
  for (std::uint32_t group = 0; group < incoming_.size(); ++group) {
    const std::uint32_t in = group / lanes;
    const std::uint32_t lane = group % lanes;
    if (incoming_[group] > 0 && node.buffer.ingress_bytes(in, lane).count() + incoming_[group] >=
                                    node.buffer.threshold(in, lane).count() - margin) {
      return false;
    }
  }
  return true;
}

// Returns the place that a packet is charged to which waits at the port, or leaves it.
BufferPlace PacketWorker::place_of(const Port& port, const Packet& packet) const {
  return {.in_port = entries_[packet.position],
          .out_port = port.out,
          .priority = fabric_.lane_of(packet.connection)};
}

BufferPlace PacketWorker::place_of_leaving(const Port& port) const {
  return {.in_port = entries_[port.leaving.position],
          .out_port = port.out,
          .priority = port.lanes == kNoIndex ? 0U : lanes_[port.lanes].leaving};
}

// All that the switch stores: what leaves its ports, and what waits there.
template <typename Visit>
void PacketWorker::visit_stored(const PacketSwitch& node, const Visit& visit) const {
  for (const std::uint32_t index : node.ports) {
    const Port& port = ports_[index];
    if (port.leaving.bytes > 0) {
      visit(place_of_leaving(port), Bytes(port.leaving.bytes));
    }
    const auto visit_queue = [&](const Ring<Packet>& queue) {
      for (std::uint32_t i = 0; i < queue.size(); ++i) {
        const Packet& packet = queue.at(i);
        visit(place_of(port, packet), Bytes(packet.wire - sizes_.around_frame));
      }
    };
    visit_queue(port.queue);
    if (port.lanes != kNoIndex) {
      for (const LaneQueues::Lane& lane : lanes_[port.lanes].lanes) {
        visit_queue(lane.queue);
      }
    }
  }
}

// Tells the buffer of all that the switch stores at the beginning of the window.
void PacketWorker::count(std::uint32_t number) {
  PacketSwitch& node = switches_[number];
  loads_[number].limit = -1;
  if (watch_.notes_disturbed) {
    notes_.disturbed.push_back(node.ports.front());
  }
  for (const std::uint32_t index : node.ports) {
    Port& port = ports_[index];
    if (port.leaving.bytes > 0 && port.leaving.time < begin_time_) {
      port.leaving.bytes = 0;
    }
  }
  visit_stored(node, [&](const BufferPlace& place, Bytes bytes) {
    const Admission admission = node.buffer.admit(place, bytes);
    CHECK(admission.accepted && !admission.xoff, "an open switch was near a threshold");
  });
}

void PacketWorker::stop_counting(std::uint32_t number) {
  PacketSwitch& node = switches_[number];
  loads_[number].limit = node.open_limit;
  visit_stored(node, [&](const BufferPlace& place, Bytes bytes) {
    static_cast<void>(node.buffer.release(place, bytes));
  });
  CHECK(node.buffer.stored() == Bytes(0), "a switch stored what no queue holds");
}

// All ports together, in order of time; at one instant what leaves frees the buffer, then what
// arrives is stored, then ports begin to send.
void PacketWorker::run_exactly(PacketSwitch& node) {
  ++notes_.counts.exact_windows;
  collect(node);
  std::size_t next = 0;
  while (true) {
    const bool has_arrival = next < exact_arrivals_.size();
    if (!has_arrival && events_.empty()) {
      break;
    }
    const Picoseconds arrival = has_arrival ? exact_arrivals_[next].first.time : kNeverTime;
    if (!events_.empty() && (events_.top().time < arrival ||
                             (events_.top().time == arrival && !events_.top().is_start))) {
      take_event(node);
      continue;
    }
    auto& [due, index] = exact_arrivals_[next++];
    if (index == kNoIndex) {
      index = choose(node, due);
    }
    admit(ports_[index], index, due, &node);
    push_start(index);
  }
  for (const std::uint32_t index : node.ports) {
    Port& port = ports_[index];
    port.first = kNoIndex;
    if (port.grants != kNoIndex) {
      finish_grants(port);
    }
    schedule(port, index);
    // Freeing may let somebody go on, so it has its window even if nothing else is due there.
    if (port.leaving.bytes > 0) {
      add_port_to_calendar(port, index, port.leaving.time);
    }
  }
}

// Collects what happens in this window as far as it is known when it begins.
void PacketWorker::collect(PacketSwitch& node) {
  exact_arrivals_.clear();
  for (const Due& due : node.undecided) {
    exact_arrivals_.emplace_back(due, kNoIndex);
  }
  node.undecided.clear();
  for (const std::uint32_t index : node.ports) {
    Port& port = ports_[index];
    if (port.visited == number_) {
      for (std::uint32_t slot = port.first; slot != kNoIndex; slot = gets_[slot].next) {
        exact_arrivals_.emplace_back(gets_[slot], index);
      }
    }
    if (port.leaving.bytes > 0 && port.leaving.time < begin_time_) {
      release(port, node);
    }
    if (port.leaving.bytes > 0 && port.leaving.time < end_time_) {
      push_event(port.leaving.time, index, false);
    }
    push_start(index);
  }
  std::stable_sort(exact_arrivals_.begin(), exact_arrivals_.end(),
                   [](const auto& a, const auto& b) { return a.first.is_before(b.first); });
}

void PacketWorker::push_event(Picoseconds time, std::uint32_t port, bool is_start) {
  events_.push({.time = time, .is_start = is_start, .link = ports_[port].link, .port = port});
}

void PacketWorker::push_start(std::uint32_t index) {
  const Picoseconds start = next_start(ports_[index]);
  if (start < end_time_) {
    push_event(start, index, true);
  }
}

// The start of a port may have been put off since it was noted, or noted twice.
void PacketWorker::take_event(PacketSwitch& node) {
  const SwitchEvent event = events_.top();
  events_.pop();
  Port& port = ports_[event.port];
  if (!event.is_start) {
    if (port.leaving.bytes > 0 && port.leaving.time == event.time) {
      release(port, node);
    }
    return;
  }
  if (next_start(port) != event.time) {
    return;
  }
  send_next(port, event.port, event.time, &node);
  if (port.leaving.bytes > 0 && port.leaving.time < end_time_) {
    push_event(port.leaving.time, event.port, false);
  }
  push_start(event.port);
}

void PacketWorker::store(Port& port, std::uint32_t index, const Due& due, PacketSwitch& node) {
  const Packet& packet = due.packet;
  if (node.storms > 0 && loses_in_storm(port, packet, node)) {
    return;
  }
  const BufferPlace place = place_of(port, packet);
  const Admission admission = node.buffer.admit(place, Bytes(packet.wire - sizes_.around_frame));
  if (!admission.accepted) {
    loads_[port.node].held -= packet.wire;
    if (options_.trims) {
      trim(port, packet);
    } else {
      ++port.counters.drops;
    }
    return;
  }
  enqueue(port, index, packet, due.time);
  if (admission.xoff) {
    say(node, place, true, due.time);
  }
}

// Data that find no room go on as headers, before all data.
void PacketWorker::trim(Port& port, Packet packet) const {
  packet.wire = static_cast<std::uint16_t>(
      std::min<std::int64_t>(packet.wire, kTrimmedFrame.count() + sizes_.around_frame));
  packet.flags |= Packet::kControl | Packet::kTrimmed;
  port.control.push(packet);
  ++port.urgent;
}

// The last byte of the packet that the port sent has left.
void PacketWorker::release(Port& port, PacketSwitch& node) {
  const Leaving leaving = port.leaving;
  const BufferPlace place = place_of_leaving(port);
  const bool xon = node.buffer.release(place, Bytes(leaving.bytes));
  port.leaving.bytes = 0;
  if (xon) {
    say(node, place, false, leaving.time);
  }
}

// Tells the sender of an ingress group to stop or to go on: a PFC frame goes out by the link back,
// before all that waits there.
void PacketWorker::say(PacketSwitch& node, const BufferPlace& place, bool stop, Picoseconds time) {
  const auto found = std::ranges::find(node.ports, place.in_port,
                                       [&](std::uint32_t index) { return ports_[index].out; });
  CHECK(found != node.ports.end(), "a packet came by a link without a way back");
  Port& port = ports_[*found];
  port.to_pause.push(static_cast<std::uint8_t>(2 * place.priority + (stop ? 1 : 0)));
  ++port.urgent;
  // Flows have the line of a port that is slowed down, too: its packet is over before free_at.
  const Picoseconds latest = time + whole_time(fabric_, port, sizes_.largest);
  port.free_at = std::clamp(port.free_at, time, latest);
  port.counters.pauses_sent += stop ? 1 : 0;
  node.stopped = stop ? node.stopped + 1 : node.stopped - 1;
  ++node.to_send;
  push_start(*found);
}

void PacketWorker::send_pause(Port& port, Picoseconds start) {
  const std::uint8_t said = port.to_pause.pop();
  const bool stop = said % 2 != 0;
  if (port.node != kNoIndex) {
    --switches_[port.node].to_send;
  }
  const Picoseconds end = start + whole_time(fabric_, port, kPfcWireBytes.count());
  port.free_at = end;
  port.counters.bytes += static_cast<std::uint64_t>(kPfcWireBytes.count());
  const Picoseconds time = end + port.pause_delay;
  DCHECK(time >= end_time_, "a pause takes effect in the window in which it was sent");
  if (watch_.is_on && time > fabric_.losses().fails_at(LinkId(port.link))) {
    return;
  }
  const std::uint8_t flags = stop ? Packet::kPause | Packet::kMarked : Packet::kPause;
  put_on_link(port, DueKind::Pause, port.opposite, time, {.sequence = said / 2U, .flags = flags});
}

}  // namespace trainyard
