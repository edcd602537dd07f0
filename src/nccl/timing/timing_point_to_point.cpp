// SPDX-License-Identifier: Apache-2.0
// Operations made of sends and receives: what the critical rank's blocks, ports, NICs and host
// need, of which the longest counts, beside the way of the first message.
#include <algorithm>
#include <optional>

#include "nccl/timing/timing_state.h"
#include "nccl/tuning/point_to_point.h"
#include "sim/check.h"

namespace trainyard::nccl {
namespace {

// The bytes that one rank sends to one peer and receives from another, and how many such peers it
// has in its own node and in others.
struct Exchange {
  Bytes bytes;
  int near_peers = 0;
  int far_peers = 0;
};

// Returns the exchange of the rank with most to do.
Exchange busiest(const Communicator& communicator, Operation operation, Bytes size) {
  const int ranks = communicator.ranks;
  const int local = communicator.max_ranks_per_node();
  if (operation == Operation::SendReceive) {
    // Rank r sends to r + 1: one rank of each node sends to another node.
    return {.bytes = size,
            .near_peers = communicator.nodes == 1 ? 1 : 0,
            .far_peers = communicator.nodes == 1 ? 0 : 1};
  }
  return {.bytes = Bytes(size.count() / ranks),
          .near_peers = std::min(local, ranks) - 1,
          .far_peers = ranks - local};
}

std::int64_t chunks_of(Bytes bytes, Bytes chunk) {
  return (bytes.count() + chunk.count() - 1) / std::max<std::int64_t>(1, chunk.count());
}

}  // namespace

int Timer::State::send_channels(Operation operation, Bytes size) const {
  const Exchange work = busiest(communicator, operation, size);
  const auto parts = [&](int peers, bool network) {
    return peers == 0
               ? 0
               : peers * plan_point_to_point(communicator, environment, work.bytes, network).parts;
  };
  return std::clamp(parts(work.near_peers, false) + parts(work.far_peers, true), 1,
                    std::max(1, communicator.p2p_channels));
}

SimTime Timer::State::exchange(Operation operation, Bytes size) {
  const Exchange work = busiest(communicator, operation, size);
  // All ranks of a node use its NICs at once, but for sends and receives along a line, and for what
  // one root does.
  const bool all_at_once = operation == Operation::AllToAll;
  SimTime way;
  SimTime blocks;
  SimTime ports;
  SimTime host;
  Protocol protocol = Protocol::LL;
  const auto add = [&](int peers, bool network) {
    if (peers == 0) {
      return;
    }
    const PointToPointPlan plan =
        plan_point_to_point(communicator, environment, work.bytes, network);
    protocol = std::max(protocol, plan.protocol);
    const int channels = std::max(1, std::min(communicator.p2p_channels, plan.parts * peers));
    // A block has up to eight pairs at once, each of which waits for itself.
    const int pairs = std::clamp(plan.parts * peers / channels, 1, 8);
    const Bytes of_block(work.bytes.count() * peers / channels);
    const bool simple = plan.protocol == Protocol::Simple;
    const Bandwidth rate = simple ? gpu.simple_rate : ll_rate(512);
    const SimTime cost = simple ? gpu.simple_cost : gpu.ll_cost;
    const Bytes chunk = simple ? plan.chunk : Bytes(4096);
    blocks += transfer_time(of_block, rate) + cost * (chunks_of(of_block, chunk) / pairs);
    // The last chunks of all pairs of a block are copied out when everything else is done.
    const Bytes last(std::min(chunk.count(), work.bytes.count() / plan.parts) * pairs);
    const SimTime drain = cost + transfer_time(last, rate);
    if (network) {
      const NodeNetwork node = node_network();
      const NetworkProfile& plugin = this->network(node.wire.sender.nic);
      const int sharing = all_at_once ? communicator.max_ranks_per_node() : 1;
      const Bandwidth own = (all_at_once ? node.rate : node.one_gpu).scaled(limits.share);
      ports = std::max(ports, transfer_time(work.bytes * peers * sharing, own));
      way = std::max(way, plugin.latency[plan.protocol] + node.wire.latency + drain);
      host += plugin.host_cost *
              (2 * peers * std::max<std::int64_t>(1, chunks_of(work.bytes, plan.chunk)));
    } else {
      const Bandwidth link =
          rate_to_peers(peers).scaled(gpu.point_to_point_link * (simple ? 1.0 : 0.5));
      ports = std::max(ports, transfer_time(work.bytes * peers, link));
      way = std::max(way, gpu.link_latency[plan.protocol] + drain);
    }
  };
  add(work.near_peers, false);
  add(work.far_peers, true);
  // No link of any rank or switch carries more than it can.
  if (const std::optional<Bandwidth> rate = rate_of_pairs(operation)) {
    const Bytes on_wire = protocol == Protocol::LL ? work.bytes * 2 : work.bytes;
    ports = std::max(ports, transfer_time(on_wire, rate->scaled(limits.share)));
  }
  return base_of(profile.ring_base)[protocol] +
         profile.per_channel * send_channels(operation, size) + way +
         std::max({blocks, ports, host});
}

// Every rank sends a part to each other one, and where it has been summed up there gets the sums
// of the other parts: two phases, in which all links of a mesh are in use both ways.
SimTime Timer::State::all_pairs(const CallPlan& plan) {
  if (plan.function != Function::AllReduce) {
    return exchange(Operation::AllToAll, plan.bytes * communicator.ranks);
  }
  CHECK(gpu.rccl.has_value() && communicator.nodes == 1, "RCCL alone has such schedules");
  const RcclProfile& rccl = *gpu.rccl;
  const double share = plan.protocol == Protocol::LL ? rccl.pairs_ll_link : rccl.pairs_link;
  const Bytes part((plan.bytes.count() + communicator.ranks - 1) / communicator.ranks);
  const SimTime phase =
      gpu.link_latency[plan.protocol] + transfer_time(part, scale_up_rate().scaled(share));
  return rccl.pairs_base[plan.protocol] + phase * 2;
}

}  // namespace trainyard::nccl
