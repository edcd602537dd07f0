// SPDX-License-Identifier: Apache-2.0
// Links that lose packets, as the packet engine works with them.
#include "network/packet/packet_engine.h"
#include "network/packet_parts/packet_losses.h"
#include "sim/check.h"
#include "topology/routing/surviving_routes.h"

namespace trainyard {

void PacketEngine::fail_link(LinkId link, Picoseconds time) {
  CHECK(windows_ == 0, "a link that fails without notice");
  CHECK(time >= 0, "a link that fails before the run");
  fabric_.losses().fail(link, time);
  watch_link(link);
  if (const auto back = opposite_link(fabric_.topology(), link)) {
    fabric_.losses().fail(*back, time);
    watch_link(*back);
  }
}

void PacketEngine::set_bit_error_rate(LinkId link, double rate) {
  CHECK(windows_ == 0, "a link with bit errors from the middle of the run on");
  fabric_.losses().set_bit_error_rate(link, rate);
  watch_link(link);
}

// The link loses packets: each one is looked at, and the port that sends on it is told of the
// failure, which ends a pause.
void PacketEngine::watch_link(LinkId link) {
  watch_.is_on = true;
  if (!fabric_.options().sends_again()) {
    targets_.lose();
  }
  const Picoseconds time = fabric_.losses().fails_at(link);
  const std::uint32_t index = fabric_.port_index(link);
  if (fabric_.options().pfc && index != kNoIndex && time != kNeverTime && time >= begin_time_) {
    worker_of(index).notes().alarms.push(
        {.time = time, .port = index, .connection = kNoIndex, .kind = Alarm::Kind::LinkDown});
  }
}

// Sets up the losses of a link that got its port.
void PacketEngine::set_up_losses(LinkId link) {
  PacketLosses& losses = fabric_.losses();
  const PacketOptions& options = fabric_.options();
  const bool is_of_fabric = fabric_.topology().link(link).spec.kind == LinkKind::Network;
  if (options.draws_losses() && is_of_fabric && !losses.has_bit_error_rate(link)) {
    losses.set_bit_error_rate(link, options.bit_error_rate, options.loss);
  }
  if (losses.knows(link)) {
    watch_link(link);
  }
}

// Observes the packet that the port sends from `start` to `end`: for tests, and for HPCC, which has
// the port write into it. Whether it arrives; if not, it takes its time on the line all the same.
bool PacketWorker::observe(Port& port, std::uint32_t index, Packet packet, Picoseconds start,
                           Picoseconds end) {
  if (watch_.is_traced &&
      (watch_.ports.empty() || (index < watch_.ports.size() && watch_.ports[index]))) {
    notes_.starts.push_back({.time = start,
                             .link = port.link,
                             .connection = packet.connection,
                             .sequence = packet.sequence});
  }
  if (port.stamps && !packet.has(Packet::kControl)) {
    const StampElsewhere stamp{
        .connection = packet.connection,
        .sequence = packet.sequence,
        .position = packet.position,
        .stamp = {
            .time = start, .sent_bytes = port.counters.bytes, .queue = bytes_before(port, packet)}};
    if (fabric_.is_port_elsewhere(senders_.end(packet.connection).port)) [[unlikely]] {
      notes_.stamps.push_back(stamp);
    } else {
      senders_.take(stamp);
    }
  }
  PacketLosses& losses = fabric_.losses();
  const LinkId link(port.link);
  const Picoseconds arrival = end + fabric_.topology().link(link).spec.latency.picoseconds();
  if (!losses.is_active() || !losses.loses(link, packet.wire - sizes_.around_frame, arrival)) {
    if (!options_.slow_hosts.empty()) {
      tell_host(port, packet, arrival);
    }
    return true;
  }
  port.free_at = end;
  port.counters.bytes += packet.wire;
  if (!credits_.empty()) {
    use_credits(port, index, packet, end, true);
  }
  return false;
}

}  // namespace trainyard
