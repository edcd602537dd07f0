// SPDX-License-Identifier: Apache-2.0
// Credits of links in the packet engine (packet_fabric.h).
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>

#include "hw/packet/rdma_packet.h"
#include "network/packet/packet_worker.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Returns the packet that a port gets when credits are back.
Packet credit_of(const LinkCredits::Return& back) {
  return {.sequence = back.lane,
          .wire = static_cast<std::uint16_t>(back.bytes),
          .flags = Packet::kPause | Packet::kCredit};
}

}  // namespace

void PacketFabric::set_up_credits(Port& port, const Link& link) {
  const bool is_fabric = link.spec.kind == LinkKind::Network;
  const Bytes given = is_fabric ? options_.fabric_credits : options_.server_credits;
  // A GPU takes everything at once, and room for a round trip would never hold anybody up. So does
  // memory: what is staged there has left the buffers of PCIe, and is read when it can be sent on.
  const NodeKind target = topology_.node(link.target).kind;
  const bool takes_all = !is_fabric && (target == NodeKind::Gpu || target == NodeKind::Memory);
  if (given == Bytes(0) || takes_all) {
    return;
  }
  std::int64_t buffer = given.count();
  if (is_fabric && buffer < sizes_.largest) {
    throw ConfigError(
        fmt::format("packet engine: expected credits for at least one packet of {} B, found {} B",
                    sizes_.largest, buffer));
  }
  if (!is_fabric) {
    // Beside a round trip and the packets at both ends, the one for which room is kept.
    const Bandwidth rate(static_cast<std::int64_t>(port.bits_per_second));
    buffer +=
        sizes_.largest + kCreditBlockBytes * credit_buffer(rate, link.spec.latency,
                                                           topology_.node(link.target).latency,
                                                           Bytes(sizes_.largest));
  }
  port.credits = static_cast<std::uint32_t>(credits_.size());
  credits_.push_back({.flight = link.spec.latency.picoseconds()});
  credits_.back().open.fill(buffer);
}

// The least time from when a packet begins at port `index` to when `before`, by which it came, may
// use its place.
Picoseconds PacketFabric::credit_lookahead(std::uint32_t before, std::uint32_t index) const {
  if (ports_[before].credits == kNoIndex) {
    return kNeverTime;
  }
  return time_on_line(ports_[index], sizes_, wire_of(0, false)) +
         credits_[ports_[before].credits].flight;
}

// A packet begins at the port, whose last byte leaves at `end`. Control packets have a lane of
// their own, whose buffers are never full.
void PacketWorker::use_credits(Port& port, std::uint32_t index, Packet packet, Picoseconds end,
                               bool is_lost) {
  if (packet.has(Packet::kControl)) {
    return;
  }
  if (index != senders_.end(packet.connection).port) {
    const std::uint32_t before = positions_[packet.position - 1];
    const Port& far = ports_[before];
    if (far.credits != kNoIndex) {
      const LinkCredits::Return back{.time = end + credits_[far.credits].flight,
                                     .bytes = packet.wire,
                                     .lane = fabric_.lane_at(far, packet.connection)};
      DCHECK(back.time >= end_time_, "credits come back in the window in which they were given");
      if (far.part == part_) {
        give_credits(before, back);
      } else {
        cross(far.part, {.time = back.time,
                         .packet = credit_of(back),
                         .by = by_link(far.link, DueKind::Credit),
                         .next = before});
      }
    }
  }
  if (port.credits == kNoIndex) {
    return;
  }
  LinkCredits& credits = credits_[port.credits];
  const std::uint32_t lane = fabric_.lane_at(port, packet.connection);
  credits.open[lane] -= packet.wire;
  if (credits.open[lane] < sizes_.largest) {
    const bool was_starved = (port.stops & Port::kStarved) != 0;
    credits.starved_since = was_starved ? credits.starved_since : end;
    port.stops |= Port::kStarved;
    if (port.lanes != kNoIndex) {
      lanes_[port.lanes].starved |= static_cast<std::uint8_t>(1U << lane);
    }
  }
  // The target takes everything at once, and what is lost is made up for: updates say what was
  // sent.
  if (packet.left == 1 || is_lost) {
    give_credits(
        index, {.time = end + port.end_delay + credits.flight, .bytes = packet.wire, .lane = lane});
  }
}

void PacketWorker::give_credits(std::uint32_t index, const LinkCredits::Return& back) {
  Port& port = ports_[index];
  std::vector<LinkCredits::Return>& returns = credits_[port.credits].returns;
  returns.push_back(back);
  std::push_heap(returns.begin(), returns.end(), std::greater<>());
  add_port_to_calendar(port, index, back.time);
}

// Credits that come back in this window are among what the port gets.
void PacketWorker::pull_credits(std::uint32_t index) {
  const Port& port = ports_[index];
  const std::uint32_t by = by_link(port.link, DueKind::Credit);
  std::vector<LinkCredits::Return>& returns = credits_[port.credits].returns;
  while (!returns.empty() && returns.front().time < end_time_) {
    const LinkCredits::Return& back = returns.front();
    get({.time = back.time, .packet = credit_of(back), .by = by, .next = index});
    std::pop_heap(returns.begin(), returns.end(), std::greater<>());
    returns.pop_back();
  }
}

void PacketWorker::take_credits(Port& port, const Due& due) {
  LinkCredits& credits = credits_[port.credits];
  const std::uint32_t lane = due.packet.sequence;
  credits.open[lane] += due.packet.wire;
  if ((port.stops & Port::kStarved) == 0 || credits.open[lane] < sizes_.largest) {
    return;
  }
  if (port.lanes != kNoIndex) {
    std::uint8_t& starved = lanes_[port.lanes].starved;
    starved &= static_cast<std::uint8_t>(~(1U << lane));
    if (starved != 0) {
      return;
    }
  }
  port.stops &= static_cast<std::uint8_t>(~Port::kStarved);
  credits.starved_time += std::max<Picoseconds>(0, due.time - credits.starved_since);
}

}  // namespace trainyard
