// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/timing_traffic.h"

#include <cstddef>
#include <span>
#include <vector>

#include "nccl/timing/timing_state.h"
#include "nccl/tuning/point_to_point.h"
#include "network/sharing/load_sharing.h"
#include "sim/check.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

double on_wire(Protocol protocol) {
  const auto [wire, data] = wire_ratio(protocol);
  return static_cast<double>(wire) / data;
}

class TrafficSum {
 public:
  explicit TrafficSum(Timer::State& state)
      : state_(state), sum_(state.cluster.topology), connections_(state.own_connections()) {}

  void add(const NodeFlow& flow, double bytes) {
    Wiring& wiring = state_.complete;
    if (wiring.node_of(flow.from) != wiring.node_of(flow.to)) {
      add(wiring.ends(flow.from, flow.to, flow.channel, flow.nic_out, flow.nic_in), flow.channel,
          bytes);
      return;
    }
    const std::vector<NodeId>& gpus = state_.cluster.gpus;
    CHECK(wiring.routing().route(gpus[as_index(flow.from)], gpus[as_index(flow.to)],
                                 static_cast<std::uint32_t>(flow.channel), path_),
          "ranks of a node reach each other");
    add(path_, bytes);
  }
  void add(const NetworkEnds& ends, int channel, double bytes) {
    add(ends.outward, bytes);
    add(ends.inward, bytes);
    const std::vector<ConnectionSpec> pairs =
        state_.complete.queue_pairs(ends.out, ends.in, static_cast<std::uint32_t>(channel));
    Load load;
    for (const ConnectionSpec& pair : pairs) {
      CHECK(connections_.add(pair, bytes / static_cast<double>(pairs.size()), load),
            "a wire that was connected has a way");
    }
    sum_.add(load);
  }
  [[nodiscard]] Load total() const { return sum_.total(); }

 private:
  void add(std::span<const LinkId> path, double bytes) {
    Load load;
    for (const LinkId link : path) {
      load.push_back({.link = link, .weight = bytes});
    }
    sum_.add(load);
  }

  Timer::State& state_;
  LoadSum sum_;
  ConnectionLoads& connections_;
  std::vector<LinkId> path_;
};

// Returns what each connection of the ring of a channel of `share` bytes carries.
double ring_bytes(Function function, double share, int ranks) {
  switch (function) {
    case Function::AllReduce:
      return 2.0 * share * (ranks - 1) / ranks;
    case Function::AllGather:
    case Function::ReduceScatter:
      return share * (ranks - 1);
    case Function::Broadcast:
    case Function::Reduce:
      break;
  }
  return share;
}

// In a chain nothing goes into the root of a broadcast, and nothing out of that of a reduction.
bool is_used(const CallPlan& plan, const NodeFlow& flow, int root) {
  const bool begins = plan.function == Function::Broadcast && flow.to == root;
  const bool ends = plan.function == Function::Reduce && flow.from == root;
  return !begins && !ends;
}

void add_channels(const CallPlan& plan, const std::vector<std::vector<NodeFlow>>& flows, int ranks,
                  int root, TrafficSum& sum) {
  const std::vector<ChannelShare> shares = channel_shares(plan);
  for (std::size_t channel = 0; channel < shares.size(); ++channel) {
    const auto share = static_cast<double>(shares[channel].bytes.count());
    const double bytes =
        plan.algorithm == Algorithm::Tree ? share : ring_bytes(plan.function, share, ranks);
    for (const NodeFlow& flow : flows[channel % flows.size()]) {
      if (is_used(plan, flow, root) && bytes > 0.0) {
        sum.add(flow, bytes * on_wire(plan.protocol));
      }
    }
  }
}

}  // namespace

CallTraffic::CallTraffic(const Cluster& cluster, const Communicator& communicator,
                         const Profile& profile, const Environment& environment)
    : state_(std::make_unique<Timer::State>(cluster, communicator, profile, environment,
                                            LaunchMode())) {}

CallTraffic::~CallTraffic() = default;

Load CallTraffic::of(const CallPlan& plan, int root) {
  Timer::State& state = *state_;
  TrafficSum sum(state);
  const int ranks = state.communicator.ranks;
  const auto add_all = [&](const std::vector<NodeFlow>& flows) {
    for (const NodeFlow& flow : flows) {
      sum.add(flow, static_cast<double>(flow.bytes.count()) * on_wire(plan.protocol));
    }
  };
  if (ranks == 1) {
    return {};
  }
  switch (plan.algorithm) {
    case Algorithm::Ring:
      add_channels(plan, state.ring_flows(), ranks, root, sum);
      break;
    case Algorithm::Tree:
      add_channels(plan, state.tree_flows(), ranks, root, sum);
      break;
    case Algorithm::NvlsTree:
      add_all(state.nvls_tree_flows(plan));
      break;
    case Algorithm::Pat:
      add_all(state.pat_flows(plan));
      break;
    case Algorithm::Nvls:
    case Algorithm::CollNetDirect:
    case Algorithm::CollNetChain:
      break;
  }
  return sum.total();
}

Load CallTraffic::of(Operation operation, Bytes size) {
  constexpr int kMostPeersCounted = 64;
  Timer::State& state = *state_;
  const int ranks = state.communicator.ranks;
  if (ranks == 1) {
    return {};
  }
  const Bytes of_pair(operation == Operation::SendReceive ? size.count() : size.count() / ranks);
  const auto protocol = [&](bool network) {
    return plan_point_to_point(state.communicator, state.environment, of_pair, network).protocol;
  };
  const double near = on_wire(protocol(false));
  const double far = on_wire(protocol(true));
  const auto bytes = static_cast<double>(of_pair.count());
  TrafficSum sum(state);
  state.visit_exchange(operation, kMostPeersCounted, [&](const NodeFlow& part, double stands_for) {
    if (state.complete.node_of(part.from) == state.complete.node_of(part.to)) {
      sum.add(part, bytes * stands_for * near);
    } else {
      sum.add(state.complete.pair_ends(part.from, part.to, part.channel), part.channel,
              bytes * stands_for * far);
    }
  });
  return sum.total();
}

}  // namespace trainyard::nccl
