// SPDX-License-Identifier: Apache-2.0
// Links that lose packets, as the packet engine works with them.
#include "network/packet_engine.h"
#include "network/packet_losses.h"
#include "sim/check.h"

namespace trainyard {

void PacketEngine::fail_link(LinkId link, Picoseconds time) {
  CHECK(counts_.windows == 0, "a link that fails without notice");
  CHECK(time >= 0, "a link that fails before the run");
  losses_.fail(link, time);
  watch_link(link);
  if (const auto back = opposite_of(link)) {
    losses_.fail(*back, time);
    watch_link(*back);
  }
}

void PacketEngine::set_bit_error_rate(LinkId link, double rate) {
  CHECK(counts_.windows == 0, "a link with bit errors from the middle of the run on");
  losses_.set_bit_error_rate(link, rate);
  watch_link(link);
}

// The link loses packets: each one is looked at, and the port that sends on it is told of the
// failure, which ends a pause.
void PacketEngine::watch_link(LinkId link) {
  is_observed_ = true;
  can_lose_ = options_.retransmission == Retransmission::None;
  const Picoseconds time = losses_.fails_at(link);
  const std::uint32_t index = port_index_[link.value()];
  if (options_.pfc && index != kNoIndex && time != kNeverTime && time >= begin_time_) {
    alarms_.push(
        {.time = time, .port = index, .connection = kNoIndex, .kind = Alarm::Kind::LinkDown});
  }
}

// Of a link that gets its port.
void PacketEngine::set_up_losses(LinkId link) {
  const bool has_own = losses_.has_bit_error_rate(link);
  if (options_.bit_error_rate > 0.0 && !has_own &&
      topology_.link(link).spec.kind == LinkKind::Network) {
    losses_.set_bit_error_rate(link, options_.bit_error_rate);
  }
  if (losses_.knows(link)) {
    watch_link(link);
  }
}

// Of the packet that the port begins to send: for tests, and for HPCC, which has the port write
// into it. Whether it arrives; if not, it takes its time on the line all the same.
bool PacketEngine::observe(Port& port, const Packet& packet, Picoseconds start) {
  if (starts_ != nullptr) {
    starts_->push_back({.time = start,
                        .link = port.link,
                        .connection = packet.connection,
                        .sequence = packet.sequence});
  }
  if (port.stamps && !packet.has(Packet::kControl)) {
    control_->stamp(packet.connection, packet.sequence, packet.position,
                    {.time = start, .sent_bytes = port.counters.bytes, .queue = port.queued_bytes});
  }
  if (!losses_.is_active()) {
    return true;
  }
  const LinkId link(port.link);
  const Picoseconds end = start + time_on_line(port, packet.wire);
  const Picoseconds arrival = end + topology_.link(link).spec.latency.picoseconds();
  if (!losses_.loses(link, packet.wire - around_frame_, arrival)) {
    return true;
  }
  port.free_at = end;
  port.counters.bytes += packet.wire;
  if (!credits_.empty()) {
    use_credits(port, port_index_[port.link], packet, end, true);
  }
  return false;
}

}  // namespace trainyard
