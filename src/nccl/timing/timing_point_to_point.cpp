// SPDX-License-Identifier: Apache-2.0
// Operations made of sends and receives: what the critical rank's blocks, ports, NICs and host
// need, of which the longest counts, beside the way of the first message.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

// A part of what goes to one peer, in one block.
struct SendPart {
  Protocol protocol = Protocol::LL;
  int parts = 0;  // Parts of a send; 0 without such peers.
  Bytes bytes;
  Bytes chunk;
  std::int64_t chunks = 0;
  Bandwidth rate;     // Rate of a whole block.
  SimTime cost;       // Cost of a chunk.
  SimTime host = {};  // Time of a message in the proxy of either end.
  SimTime turn = {};  // Time that a chunk waits for that of each other connection.

  // Returns how long so many of them, side by side in a block, take for their first or last chunk.
  [[nodiscard]] SimTime one_chunk(std::int64_t pairs) const {
    return cost + transfer_time(Bytes(std::min(chunk.count(), bytes.count()) * pairs), rate);
  }
};

// Returns how long a block takes where all sends of a rank are spread evenly over its channels,
// with so many pairs side by side.
SimTime spread_evenly(const SendPart& send, int peers, int channels, int pairs) {
  const Bytes of_block(send.bytes.count() * send.parts * peers / channels);
  return transfer_time(of_block, send.rate) + send.cost * (chunks_of(of_block, send.chunk) / pairs);
}

// The rounds of the critical rank that it works in.
struct Rounds {
  std::vector<int> widths;   // Channels by round.
  std::vector<bool> is_far;  // Whether the peer is in another node, by round.
  int group_size = 1;
};

Rounds rounds_of(const Communicator& communicator, const Environment& environment,
                 Operation operation, const SendPart& near, const SendPart& far) {
  if (operation == Operation::SendReceive) {
    return {.widths = {std::max(near.parts, far.parts)}, .is_far = {far.parts > 0}};
  }
  // A rank of the smallest node has most peers in others.
  const std::vector<int>& first = communicator.first_rank;
  std::size_t node = 0;
  for (std::size_t other = 1; other + 1 < first.size(); ++other) {
    if (first[other + 1] - first[other] < first[node + 1] - first[node]) {
      node = other;
    }
  }
  const int rank = first[node];
  Rounds rounds{.widths = {}, .is_far = {}, .group_size = schedule_group_size(first, environment)};
  for (const PointToPointRound& round :
       point_to_point_schedule(rank, communicator.ranks, rounds.group_size)) {
    const bool is_far = round.send_to < rank || round.send_to >= first[node + 1];
    rounds.widths.push_back(round.send_to == rank ? 0 : is_far ? far.parts : near.parts);
    rounds.is_far.push_back(is_far);
  }
  return rounds;
}

// Blocks run their batches one after the other, of which the longest counts. The pairs of a batch
// share the rate of the block; each waits for itself, so that the waits of one of them count. A
// proxy serves the connections of a batch in turn (NVIDIA/nccl, src/transport/net.cc:
// sendProxyProgress, recvProxyProgress): each chunk of a pair waits at both ends until the others
// had their turn, while the other pairs of its block copy.
class Blocks {
 public:
  Blocks(const Communicator& communicator, const Environment& environment, const Rounds& rounds)
      : rounds_(rounds),
        batches_(point_to_point_batches(rounds.widths, std::max(1, communicator.p2p_channels),
                                        communicator.nodes, rounds.group_size, environment)) {
    for (const std::vector<PointToPointBatch>& of_channel : batches_) {
      connections_.resize(std::max(connections_.size(), of_channel.size()));
      for (std::size_t batch = 0; batch < of_channel.size(); ++batch) {
        connections_[batch] += count(of_channel[batch], true);
      }
    }
  }

  // Returns how many pairs, of those with peers of one kind, are side by side in a block at most.
  [[nodiscard]] std::int64_t pairs(bool far) const {
    std::int64_t most = 1;
    for (const std::vector<PointToPointBatch>& of_channel : batches_) {
      for (const PointToPointBatch& batch : of_channel) {
        most = std::max(most, count(batch, far));
      }
    }
    return most;
  }

  [[nodiscard]] SimTime time(const SendPart& near, const SendPart& far) const {
    SimTime longest;
    for (const std::vector<PointToPointBatch>& of_channel : batches_) {
      SimTime time;
      for (std::size_t batch = 0; batch < of_channel.size(); ++batch) {
        const SimTime turn = far.turn * std::max<std::int64_t>(0, connections_[batch] - 1);
        time += time_of(of_channel[batch], near, far, turn);
      }
      longest = std::max(longest, time);
    }
    return longest;
  }

 private:
  [[nodiscard]] std::int64_t count(const PointToPointBatch& batch, bool far) const {
    return std::ranges::count_if(batch,
                                 [&](int round) { return rounds_.is_far[as_index(round)] == far; });
  }

  [[nodiscard]] SimTime time_of(const PointToPointBatch& batch, const SendPart& near,
                                const SendPart& far, SimTime turn) const {
    SimTime copies;
    SimTime waits;
    SimTime alone;
    for (const int round : batch) {
      const bool is_far = rounds_.is_far[as_index(round)];
      const SendPart& send = is_far ? far : near;
      const SimTime copy = transfer_time(send.bytes, send.rate);
      copies += copy;
      waits = std::max(waits, send.cost * send.chunks);
      const SimTime turns = is_far ? turn * (send.chunks - 1) : SimTime(0);
      alone = std::max(alone, copy + send.cost * send.chunks + turns);
    }
    return std::max(copies + waits, alone);
  }

  const Rounds& rounds_;
  std::vector<std::vector<PointToPointBatch>> batches_;
  std::vector<std::int64_t> connections_;  // Connections over the network by number of batch.
};

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

// An exchange with one rank a node also represents what the kernels of DeepEP and HybridEP send
// between nodes (parallelism/walk), which have neither batches nor proxies.
bool Timer::State::is_rail(Operation operation) const {
  return operation == Operation::AllToAll && communicator.ranks == communicator.nodes;
}

SimTime Timer::State::turn_of_connection(Operation operation) {
  if (communicator.nodes == 1 || is_rail(operation)) {
    return SimTime();
  }
  return network(node_network().wire.sender.nic).host_cost * 2;
}

SimTime Timer::State::exchange(Operation operation, Bytes size) {
  const Exchange work = busiest(communicator, operation, size);
  const auto part_to = [&](int peers, bool network) {
    if (peers == 0) {
      return SendPart{};
    }
    const PointToPointPlan plan =
        plan_point_to_point(communicator, environment, work.bytes, network);
    const bool simple = plan.protocol == Protocol::Simple;
    SendPart part{.protocol = plan.protocol,
                  .parts = plan.parts,
                  .bytes = Bytes(work.bytes.count() / plan.parts),
                  .chunk = simple ? plan.chunk : Bytes(4096),
                  .rate = simple ? gpu.simple_rate : ll_rate(512),
                  .cost = simple ? gpu.simple_cost : gpu.ll_cost};
    part.chunks = chunks_of(part.bytes, part.chunk);
    return part;
  };
  const SendPart near = part_to(work.near_peers, false);
  SendPart far = part_to(work.far_peers, true);
  SimTime way;
  SimTime ports;
  SimTime hosts;
  std::optional<NodeNetwork> node;
  if (far.parts > 0) {
    node = node_network();
    far.host = network(node->wire.sender.nic).host_cost;
    far.turn = turn_of_connection(operation);
  }
  const Rounds rounds = rounds_of(communicator, environment, operation, near, far);
  const Blocks blocks(communicator, environment, rounds);
  const bool rail = is_rail(operation);
  const int channels =
      std::clamp(far.parts * work.far_peers, 1, std::max(1, communicator.p2p_channels));
  const int pairs = rail ? std::clamp(far.parts * work.far_peers / channels, 1, 8)
                         : static_cast<int>(blocks.pairs(true));
  if (near.parts > 0) {
    const SimTime chunk = near.one_chunk(blocks.pairs(false));
    const bool simple = near.protocol == Protocol::Simple;
    const Bandwidth link =
        rate_to_peers(work.near_peers).scaled(gpu.point_to_point_link * (simple ? 1.0 : 0.5));
    ports = transfer_time(work.bytes * work.near_peers, link);
    way = gpu.link_latency[near.protocol] + chunk;
  }
  if (far.parts > 0) {
    // All ranks of a node use its NICs at once, but for sends and receives along a line.
    const bool all_at_once = operation == Operation::AllToAll;
    const int sharing = all_at_once ? communicator.max_ranks_per_node() : 1;
    const Bandwidth own = (all_at_once ? node->rate : node->one_gpu).scaled(limits.share);
    const SimTime chunk = far.one_chunk(pairs);
    ports = std::max(ports, transfer_time(work.bytes * work.far_peers * sharing, own));
    hosts = far.host * (2 * work.far_peers * far.parts * far.chunks);
    way = std::max(
        way, network(node->wire.sender.nic).latency[far.protocol] + node->wire.latency + chunk);
  }
  // No link of any rank or switch carries more than it can.
  if (const std::optional<Bandwidth> rate = rate_of_pairs(operation)) {
    const bool simple = std::max(near.protocol, far.protocol) == Protocol::Simple;
    const Bytes on_wire = simple ? work.bytes : work.bytes * 2;
    ports = std::max(ports, transfer_time(on_wire, rate->scaled(limits.share)));
  }
  return base_of(profile.ring_base)[std::max(near.protocol, far.protocol)] +
         profile.per_channel * send_channels(operation, size) + way +
         std::max(
             {rail ? spread_evenly(far, work.far_peers, channels, pairs) : blocks.time(near, far),
              ports, hosts});
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
