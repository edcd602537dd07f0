// SPDX-License-Identifier: Apache-2.0
// Double trees, replayed.
//
// A block is divided: one group of warps reduces up the tree while another broadcasts down. Where
// there are too many ranks to replay all channels, a few stand for all, as many of the first tree
// as of the second, and get of each port the share of the connections on it that are theirs.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "nccl/timing/timing_state.h"
#include "nccl/types/release.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// Lanes that are replayed at most, but for two channels.
constexpr std::size_t kMaxLanes = 8'192;

// Returns how many of the threads of a block reduce; the others broadcast (NVIDIA/nccl,
// src/device/all_reduce.h: runTreeSplit, of 640).
int reducing_threads(Protocol protocol, int threads) {
  return protocol == Protocol::Simple ? threads * 3 / 5 : threads * 7 / 10;
}

void limit_by_fabric(std::vector<TreeWires>& trees, Wiring& wiring) {
  std::vector<Wire> between;
  std::vector<Wire*> wires;
  for (TreeWires& tree : trees) {
    for (auto* const direction : {&tree.up, &tree.down}) {
      for (Wire& wire : *direction) {
        if (wire.transport == Transport::Network) {
          between.push_back(wire);
          wires.push_back(&wire);
        }
      }
    }
  }
  const std::vector<Bandwidth> shares = wiring.fabric_shares(between);
  for (std::size_t i = 0; i < wires.size(); ++i) {
    wires[i]->cap = std::min(wires[i]->cap, shares[i]);
  }
}

// Returns how many connections of these channels cross each port.
std::vector<int> port_loads(const std::vector<TreeWires>& trees,
                            const std::vector<std::size_t>& channels, std::size_t ports) {
  std::vector<int> loads(ports, 0);
  for (const std::size_t c : channels) {
    for (const auto* const direction : {&trees[c].up, &trees[c].down}) {
      for (const Wire& wire : *direction) {
        for (const std::uint32_t port : wire.ports) {
          ++loads[port];
        }
      }
    }
  }
  return loads;
}

// Returns equally many of the channels in use of each tree: channel c and its copy c + half.
std::vector<std::size_t> replayed_channels(const std::vector<std::size_t>& in_use, std::size_t all,
                                           std::size_t ranks) {
  const std::size_t max = std::max<std::size_t>(2, kMaxLanes / (2 * ranks));
  if (in_use.size() <= max) {
    return in_use;
  }
  std::vector<std::size_t> chosen;
  const std::size_t half = all / 2;
  for (std::size_t c = 0; c < max / 2 && c < std::max<std::size_t>(1, half); ++c) {
    chosen.push_back(c);
    if (half > 0 && c + half < in_use.size()) {
      chosen.push_back(c + half);
    }
  }
  return chosen;
}

}  // namespace

void Timer::State::make_trees() {
  const std::vector<std::vector<NodeFlow>> flows = tree_flows();
  for (std::size_t c = 0; c < flows.size(); ++c) {
    TreeWires& made = trees.emplace_back();
    made.up.resize(as_index(communicator.ranks));
    made.down.resize(as_index(communicator.ranks));
    for (const NodeFlow& flow : flows[c]) {
      const bool is_up = communicator.trees[c].up[as_index(flow.from)] == flow.to;
      (is_up ? made.up[as_index(flow.from)] : made.down[as_index(flow.to)]) =
          complete.connect(flow);
    }
  }
  if (!engine) {
    limit_by_fabric(trees, complete);
  }
}

// The lanes of one channel: for each rank but the root a group that reduces and one that
// broadcasts, for the root the whole block. Of one way alone the whole block of every rank.
void Timer::State::add_tree_channel(const CallPlan& plan, const ChannelPart& share,
                                    std::size_t channel, TreeWay way, ReplayedCall& call) const {
  const TreeChannel& tree = communicator.trees[channel];
  const TreeWires& wires = trees[channel];
  const bool both = way == TreeWay::Both;
  const int reducing = both ? reducing_threads(plan.protocol, plan.threads) : plan.threads;
  UnitRule rule = unit_rule(plan, reducing, wires.up);
  rule.slices = 1;
  const ChunkLoops loops = pipeline_loops(share.bytes, share.chunk);
  const auto connect = [&](const Wire& wire, int from, int to) {
    return add_connection(call.network, limited(wire, channel),
                          {.protocol = plan.protocol,
                           .slots = slots(plan, rule, share.chunk),
                           .sender = from,
                           .receiver = to,
                           .extra_latency = profile.tree_network_extra[plan.protocol]});
  };
  std::vector<std::uint32_t> up(as_index(communicator.ranks), kNone);    // To the parent.
  std::vector<std::uint32_t> down(as_index(communicator.ranks), kNone);  // From it.
  for (int rank = 0; rank < communicator.ranks; ++rank) {
    if (const int parent = tree.up[as_index(rank)]; parent != kNoRank) {
      up[as_index(rank)] = connect(wires.up[as_index(rank)], rank, parent);
      down[as_index(rank)] = connect(wires.down[as_index(rank)], parent, rank);
    }
  }
  int rank = 0;
  const auto add = [&](int threads, const Ends& receives, const Ends& sends, const char* work) {
    call.lanes.push_back({.rate = block_rate(plan, threads),
                          .program = loop_program(1, loops, rule, receives, sends),
                          .rank = rank,
                          .channel = static_cast<int>(channel),
                          .work = work});
  };
  for (; rank < communicator.ranks; ++rank) {
    Ends from_children = kNoEnds;
    Ends to_children = kNoEnds;
    for (std::size_t i = 0; i < from_children.size(); ++i) {
      if (const int child = tree.down[as_index(rank)][i]; child != kNoRank) {
        from_children[i] = up[as_index(child)];
        to_children[i] = down[as_index(child)];
      }
    }
    const Ends to_parent{up[as_index(rank)], kNone, kNone};
    const Ends from_parent{down[as_index(rank)], kNone, kNone};
    if (way == TreeWay::Up) {
      add(plan.threads, from_children, to_parent, "reduces");
    } else if (way == TreeWay::Down) {
      add(plan.threads, from_parent, to_children, "broadcasts");
    } else if (tree.up[as_index(rank)] == kNoRank) {
      add(plan.threads, from_children, to_children, "reduces and broadcasts");
    } else {
      add(reducing, from_children, to_parent, "reduces");
      add(plan.threads - reducing, from_parent, to_children, "broadcasts");
    }
  }
}

SimTime Timer::State::tree(const CallPlan& plan) {
  if (communicator.ranks == 1) {
    return {};
  }
  if (trees.empty()) {
    make_trees();
  }
  return release(communicator.version).reduces_before_broadcast && plan.protocol != Protocol::LL128
             ? tree(plan, TreeWay::Up) + tree(plan, TreeWay::Down)
             : tree(plan, TreeWay::Both);
}

SimTime Timer::State::tree(const CallPlan& plan, TreeWay way) {
  const std::vector<ChannelPart> shares = channel_shares(plan);
  std::vector<std::size_t> in_use(std::min(shares.size(), trees.size()));
  std::iota(in_use.begin(), in_use.end(), std::size_t{0});
  // Over an engine, connections of channels that are left out would be missed in the fabric.
  const std::vector<std::size_t> replayed =
      engine ? in_use : replayed_channels(in_use, trees.size(), as_index(communicator.ranks));
  const std::size_t ports = complete.ports().size();
  const std::vector<int> all = port_loads(trees, in_use, ports);
  const std::vector<int> own = port_loads(trees, replayed, ports);
  ReplayedCall call;
  call.network.hosts = static_cast<std::uint32_t>(communicator.ranks);
  call.network.ports = port_rates(complete, plan.protocol);
  for (std::size_t port = 0; port < ports; ++port) {
    if (own[port] > 0) {
      call.network.ports[port] = call.network.ports[port].scaled(static_cast<double>(own[port]) /
                                                                 static_cast<double>(all[port]));
    }
  }
  for (const std::size_t c : replayed) {
    add_tree_channel(plan, shares[c], c, way, call);
  }
  return run(call.network, call.lanes);
}

}  // namespace trainyard::nccl
