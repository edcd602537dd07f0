// SPDX-License-Identifier: Apache-2.0
#include "collectives/run/bounds.h"

#include <algorithm>
#include <map>

#include "collectives/placement/aggregation.h"
#include "topology/graph/path.h"
#include "topology/graph/relayed_latency.h"

namespace trainyard {

namespace {

Bytes part(Bytes size, int count, int ranks) {
  return Bytes(size.count() / ranks * count);  // Parts are alike; rounded down at most.
}

SimTime carried(Bytes bytes, Bandwidth rate) {
  return bytes > Bytes(0) && rate > Bandwidth() ? transfer_time(bytes, rate) : SimTime();
}

}  // namespace

CollectiveBounds::CollectiveBounds(const Cluster& cluster, Operation operation, RankId root,
                                   const TrafficMatrix* matrix)
    : operation_(operation),
      root_(static_cast<int>(root.value())),
      ranks_(static_cast<int>(cluster.gpus.size())),
      matrix_(matrix) {
  const Routing routing(cluster.topology, cluster.routing);
  for (const Algorithm algorithm : kAlgorithms) {
    std::string error;
    const auto plan = plan_switches(cluster, routing, algorithm, error);
    adds_in_network_ = adds_in_network_ || (plan && !plan->relays.empty());
  }
  add_groups(cluster);
  latency_ = farthest(cluster);
}

void CollectiveBounds::add_groups(const Cluster& cluster) {
  std::map<NodeId, std::size_t> rank_of;
  std::map<ServerId, std::size_t> server_of;
  int first = 0;
  for (const int count : cluster.server_gpus) {
    const NodeId gpu = cluster.gpus[static_cast<std::size_t>(first)];
    if (const auto server = cluster.topology.node(gpu).server) {
      server_of.emplace(*server, by_server_.size());
    }
    by_server_.push_back({.first = first, .count = count});
    for (int local = 0; local < count; ++local, ++first) {
      rank_of.emplace(cluster.gpus[static_cast<std::size_t>(first)], by_rank_.size());
      by_rank_.push_back({.first = first, .count = 1});
    }
  }
  const auto group_of = [](auto& groups, const auto& numbers, const auto& key) -> Group* {
    const auto found = numbers.find(key);
    return found == numbers.end() ? nullptr : &groups[found->second];
  };
  for (std::uint32_t index = 0; index < cluster.topology.link_count(); ++index) {
    const Link& link = cluster.topology.link(LinkId(index));
    const auto add = [&](Bandwidth& rate) {
      rate = Bandwidth(rate.bits_per_second() + link.spec.bandwidth.bits_per_second());
    };
    if (Group* const rank = group_of(by_rank_, rank_of, link.source)) {
      add(rank->out);
    }
    if (Group* const rank = group_of(by_rank_, rank_of, link.target)) {
      add(rank->in);
    }
    const auto source = cluster.topology.node(link.source).server;
    const auto target = cluster.topology.node(link.target).server;
    if (source == target) {
      continue;
    }
    if (Group* const server = source ? group_of(by_server_, server_of, *source) : nullptr) {
      add(server->out);
    }
    if (Group* const server = target ? group_of(by_server_, server_of, *target) : nullptr) {
      add(server->in);
    }
  }
}

SimTime CollectiveBounds::farthest(const Cluster& cluster) const {
  if (operation_ == Operation::AllToAllV || ranks_ == 1) {
    return {};
  }
  SimTime farthest;
  if (operation_ == Operation::SendReceive) {
    Routing routing(cluster.topology, cluster.routing);
    std::vector<LinkId> path;
    for (std::size_t rank = 0; rank < cluster.gpus.size(); ++rank) {
      const NodeId next = cluster.gpus[(rank + 1) % cluster.gpus.size()];
      if (routing.route(cluster.gpus[rank], next, 0, path)) {
        farthest = std::max(farthest, path_latency(cluster.topology, path));
      }
    }
    return farthest;
  }
  const bool inwards = operation_ == Operation::Reduce || operation_ == Operation::Gather;
  const std::vector<SimTime> latencies =
      relayed_latencies(cluster.topology, cluster.gpus[static_cast<std::size_t>(root_)],
                        inwards ? Heading::ToHub : Heading::FromHub);
  for (const NodeId gpu : cluster.gpus) {
    farthest = std::max(farthest, latencies[gpu.value()]);
  }
  return farthest;
}

CollectiveBounds::Demand CollectiveBounds::demand(const Group& group, Bytes size) const {
  const int others = ranks_ - group.count;
  const bool has_root = group.first <= root_ && root_ < group.first + group.count;
  const Bytes own = part(size, group.count, ranks_);
  const Bytes rest = part(size, others, ranks_);
  if (others == 0) {
    return {};
  }
  switch (operation_) {
    case Operation::AllReduce:
    case Operation::SendReceive:
      return {.out = size, .in = size};
    case Operation::AllGather:
      return {.out = own, .in = rest};
    case Operation::ReduceScatter:
      return {.out = rest, .in = own};
    case Operation::AllToAll:
      return {.out = rest * group.count, .in = rest * group.count};
    case Operation::AllToAllV: {
      Demand sum;
      for (int rank = group.first; matrix_ != nullptr && rank < group.first + group.count; ++rank) {
        sum.out += matrix_->sent(rank);
        sum.in += matrix_->received(rank);
        for (int near = group.first; near < group.first + group.count; ++near) {
          sum.out = sum.out - matrix_->at(rank, near);
          sum.in = sum.in - matrix_->at(near, rank);
        }
      }
      return sum;
    }
    case Operation::Broadcast:
      return has_root ? Demand{.out = size, .in = {}} : Demand{.out = {}, .in = size};
    case Operation::Reduce:
      return has_root ? Demand{.out = {}, .in = size} : Demand{.out = size, .in = {}};
    case Operation::Scatter:
      return has_root ? Demand{.out = rest, .in = {}} : Demand{.out = {}, .in = own};
    case Operation::Gather:
      return has_root ? Demand{.out = {}, .in = rest} : Demand{.out = own, .in = {}};
    case Operation::Barrier:
      return {};
  }
  CHECK(false, "unknown operation");
}

SimTime CollectiveBounds::time_of(const std::vector<Group>& groups, Bytes size) const {
  SimTime bound;
  std::int64_t all = 0;
  for (const Group& group : groups) {
    const Demand needed = demand(group, size);
    bound = std::max({bound, carried(needed.out, group.out), carried(needed.in, group.in)});
    all += group.out.bits_per_second();
  }
  if (operation_ == Operation::AllReduce && !adds_in_network_) {
    const auto others = static_cast<std::int64_t>(groups.size()) - 1;
    // Over the number of groups, lest the product overflow.
    const auto count = static_cast<std::int64_t>(groups.size());
    bound = std::max(bound, carried(Bytes(size.count() / count * others * 2),
                                    Bandwidth((all + count - 1) / count)));
  }
  return bound;
}

LowerBound CollectiveBounds::at(Bytes size) const {
  return {.latency = latency_,
          .bandwidth = std::max(time_of(by_rank_, size), time_of(by_server_, size))};
}

}  // namespace trainyard
