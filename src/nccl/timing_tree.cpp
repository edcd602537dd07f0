// SPDX-License-Identifier: Apache-2.0
// Double trees, replayed.
//
// A block is divided: one group of warps reduces up the tree while another broadcasts down. All
// connections of a tree carry the same bytes, so over long times the links are shared evenly: each
// connection gets the least of rate over connections on its way, for good. Two channels are
// replayed, one of each tree; the others have the same trees on other NICs.
#include <algorithm>
#include <cstddef>

#include "nccl/timing_state.h"

namespace trainyard::nccl {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// Of 640 threads, those that reduce; the others broadcast (NVIDIA/nccl, src/device/all_reduce.h:
// runTreeSplit).
int reducing_threads(Protocol protocol, int threads) {
  return protocol == Protocol::Simple ? threads * 3 / 5 : threads * 7 / 10;
}

void limit_by_fabric(std::vector<TreeWires>& trees, Wiring& wiring) {
  std::vector<Wire> between;
  std::vector<Wire*> wires;
  for (TreeWires& tree : trees) {
    for (auto* const direction : {&tree.up, &tree.down}) {
      for (std::optional<Wire>& wire : *direction) {
        if (wire && wire->transport == Transport::Network) {
          between.push_back(*wire);
          wires.push_back(&*wire);
        }
      }
    }
  }
  const std::vector<Bandwidth> shares = wiring.fabric_shares(between);
  for (std::size_t i = 0; i < wires.size(); ++i) {
    wires[i]->cap = std::min(wires[i]->cap, shares[i]);
  }
}

}  // namespace

void Timer::State::make_trees() {
  for (std::size_t c = 0; c < communicator.trees.size(); ++c) {
    const TreeChannel& tree = communicator.trees[c];
    TreeWires made;
    made.up.resize(at(communicator.ranks));
    made.down.resize(at(communicator.ranks));
    for (int rank = 0; rank < communicator.ranks; ++rank) {
      const int parent = tree.up[at(rank)];
      if (parent == kNoRank) {
        continue;
      }
      const auto nic = [&](int end, int other) -> std::optional<int> {
        if (complete.node_of(end) == complete.node_of(other) || communicator.nics.empty()) {
          return std::nullopt;
        }
        const NodeNics& nics =
            communicator.nics[at(communicator.node_kind[at(complete.node_of(end))])];
        return c < nics.tree.size() ? std::optional(nics.tree[c]) : std::nullopt;
      };
      const int channel = static_cast<int>(c);
      made.up[at(rank)] =
          complete.connect(rank, parent, channel, nic(rank, parent), nic(parent, rank));
      made.down[at(rank)] =
          complete.connect(parent, rank, channel, nic(parent, rank), nic(rank, parent));
    }
    trees.push_back(std::move(made));
  }
  limit_by_fabric(trees, complete);
}

SimTime Timer::State::tree(const CallPlan& plan) {
  if (communicator.ranks == 1) {
    return {};
  }
  if (trees.empty()) {
    make_trees();
  }
  const std::vector<ChannelShare> shares = channel_shares(plan);
  std::vector<int> loads(complete.ports().size(), 0);
  for (std::size_t c = 0; c < shares.size(); ++c) {
    const TreeWires& wires = trees[c % trees.size()];
    for (const auto* const direction : {&wires.up, &wires.down}) {
      for (const std::optional<Wire>& wire : *direction) {
        if (wire) {
          for (const std::uint32_t port : wire->ports) {
            ++loads[port];
          }
        }
      }
    }
  }
  const std::vector<Bandwidth> rates = port_rates(complete, plan.protocol);
  ReplayNetwork network_model;
  network_model.hosts = static_cast<std::uint32_t>(communicator.ranks);
  std::vector<ReplayLane> lanes;
  // One channel of each tree: the first, and the copy that has the second tree.
  std::vector<std::size_t> replayed = {0};
  if (const std::size_t second = trees.size() / 2; second > 0 && second < shares.size()) {
    replayed.push_back(second);
  }
  const int reducing = reducing_threads(plan.protocol, plan.threads);
  for (const std::size_t c : replayed) {
    const TreeChannel& tree = communicator.trees[c];
    const ChunkLoops loops = pipeline_loops(shares[c].bytes, shares[c].chunk);
    // By rank: the connection up to its parent, and the one down from it.
    std::vector<std::uint32_t> up(at(communicator.ranks), kNone);
    std::vector<std::uint32_t> down(at(communicator.ranks), kNone);
    std::vector<const Wire*> pointers;
    for (const std::optional<Wire>& wire : trees[c].up) {
      if (wire) {
        pointers.push_back(&*wire);
      }
    }
    UnitRule rule = unit_rule(plan, reducing, pointers);
    rule.slices = 1;
    const auto connect = [&](const Wire& wire, int from, int to) {
      Bandwidth share = wire.cap;
      for (const std::uint32_t port : wire.ports) {
        share =
            std::min(share, Bandwidth(rates[port].bits_per_second() / std::max(1, loads[port])));
      }
      return add_connection(network_model, wire,
                            {.protocol = plan.protocol,
                             .slots = slots(plan, rule, shares[c].chunk),
                             .sender = from,
                             .receiver = to,
                             .own_port = share,
                             .extra_latency = profile.tree_network_extra[plan.protocol]});
    };
    for (int rank = 0; rank < communicator.ranks; ++rank) {
      const int parent = tree.up[at(rank)];
      if (parent != kNoRank) {
        up[at(rank)] = connect(*trees[c].up[at(rank)], rank, parent);
        down[at(rank)] = connect(*trees[c].down[at(rank)], parent, rank);
      }
    }
    for (int rank = 0; rank < communicator.ranks; ++rank) {
      std::array<std::uint32_t, 3> from_children = {kNone, kNone, kNone};
      std::array<std::uint32_t, 3> to_children = {kNone, kNone, kNone};
      for (std::size_t i = 0; i < 3; ++i) {
        const int child = tree.down[at(rank)][i];
        if (child != kNoRank) {
          from_children[i] = up[at(child)];
          to_children[i] = down[at(child)];
        }
      }
      const auto add = [&](int threads, const std::array<std::uint32_t, 3>& receives,
                           const std::array<std::uint32_t, 3>& sends) {
        lanes.push_back({.rate = block_rate(plan, threads),
                         .program = pipeline_program(loops, rule, receives, sends)});
      };
      if (tree.up[at(rank)] == kNoRank) {
        add(plan.threads, from_children, to_children);
      } else {
        add(reducing, from_children, {up[at(rank)], kNone, kNone});
        add(plan.threads - reducing, {down[at(rank)], kNone, kNone}, to_children);
      }
    }
  }
  return replay_long(network_model, lanes, exact_units(lanes.size()));
}

}  // namespace trainyard::nccl
