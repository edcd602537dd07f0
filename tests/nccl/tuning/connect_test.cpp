// SPDX-License-Identifier: Apache-2.0
// Graphs are written down as NCCL's search finds them (host code of NCCL 2.30.7 on synthetic
// topology files), so that this test does not depend on our search.
#include "support/catch.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include "nccl/tuning/connect.h"

namespace trainyard::nccl {
namespace {

std::size_t index(int number) {
  return static_cast<std::size_t>(number);
}

// `step` 1 ascending or -1 descending.
std::vector<int> cyclic(int gpus, int first, int step) {
  std::vector<int> order;
  for (int at = 0; at < gpus; ++at) {
    order.push_back((first + step * at + gpus) % gpus);
  }
  return order;
}

Graph make_graph(GraphPattern pattern, int channels, double bandwidth) {
  Graph graph;
  graph.pattern = pattern;
  graph.channel_count = channels;
  graph.bw_intra = bandwidth;
  graph.bw_inter = bandwidth;
  graph.type_intra = PathType::Nvl;
  graph.type_inter = PathType::Pix;
  return graph;
}

// A node with a NIC for each GPU and as many channels: rings that cross NICs in pairs, as 8 H100
// with 8 NICs have them between nodes, or not.
GraphSet rails(int gpus, int cross_nic, GraphPattern tree_pattern = GraphPattern::Tree) {
  GraphSet set;
  set.ring = make_graph(GraphPattern::Ring, gpus, 48);
  set.ring.cross_nic = cross_nic;
  set.tree = make_graph(tree_pattern, gpus, 48);
  for (int channel = 0; channel < gpus; ++channel) {
    const int step = cross_nic == 2 && channel % 2 == 1 ? 1 : -1;
    const std::vector<int> ring = cyclic(gpus, channel, step);
    set.ring.channels.push_back(
        {.net_in = channel, .net_out = cross_nic == 2 ? ring.back() : channel, .gpus = ring});
    set.tree.channels.push_back(
        {.net_in = channel, .net_out = channel, .gpus = cyclic(gpus, channel, 1)});
  }
  return set;
}

Communicator communicator_of(int nodes, int gpus, const GraphSet& graphs,
                             int compute_capability = 90) {
  Communicator made;
  made.ranks = nodes * gpus;
  made.nodes = nodes;
  for (int node = 0; node <= nodes; ++node) {
    made.first_rank.push_back(node * gpus);
  }
  made.node_kind.assign(index(nodes), 0);
  made.graphs = {graphs};
  made.min_compute_capability = compute_capability;
  return made;
}

int connected_channels(int nodes, int gpus, int searched, double bandwidth, int sm = 90) {
  GraphSet set;
  set.ring = make_graph(GraphPattern::Ring, searched, bandwidth);
  set.tree = make_graph(GraphPattern::Tree, searched, bandwidth);
  for (int channel = 0; channel < searched; ++channel) {
    set.ring.channels.push_back({.net_in = 0, .net_out = 0, .gpus = cyclic(gpus, 0, 1)});
  }
  set.tree.channels = set.ring.channels;
  Communicator made = communicator_of(nodes, gpus, set, sm);
  connect(made, {});
  REQUIRE(made.rings.size() == index(made.channels));
  REQUIRE(made.trees.size() == index(made.channels));
  return made.channels;
}

bool is_ring(const RingChannel& ring, int ranks) {
  std::vector<int> sorted = ring.order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int> all(index(ranks));
  std::iota(all.begin(), all.end(), 0);
  return sorted == all && ring.order.front() == 0;
}

// Every rank hangs on one root, and those above and below name each other.
bool is_tree(const TreeChannel& tree, int ranks) {
  int edges = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    for (const int below : tree.down[index(rank)]) {
      if (below != kNoRank && tree.up[index(below)] != rank) {
        return false;
      }
      edges += below != kNoRank ? 1 : 0;
    }
    int above = rank;
    for (int hops = 0; tree.up[index(above)] != kNoRank; ++hops) {
      if (hops == ranks) {
        return false;
      }
      above = tree.up[index(above)];
    }
  }
  return edges == ranks - 1 && std::count(tree.up.begin(), tree.up.end(), kNoRank) == 1;
}

int node_of(const Communicator& made, int rank) {
  return static_cast<int>(std::upper_bound(made.first_rank.begin(), made.first_rank.end(), rank) -
                          made.first_rank.begin()) -
         1;
}

const NodeNics& nics_of(const Communicator& made, int node) {
  return made.nics[index(made.node_kind[index(node)])];
}

}  // namespace

TEST_CASE("a communicator has as many channels as NCCL gives it", "[nccl]") {
  REQUIRE(connected_channels(1, 8, 12, 30) == 24);      // 8 H100.
  REQUIRE(connected_channels(4, 8, 8, 48) == 16);       // The same with 8 x 400G.
  REQUIRE(connected_channels(1, 8, 12, 20, 80) == 24);  // 8 A100.
  REQUIRE(connected_channels(16, 8, 8, 24, 80) == 16);
  REQUIRE(connected_channels(1, 8, 16, 45, 100) == 32);  // 8 B200.
  REQUIRE(connected_channels(2, 8, 16, 48, 100) == 32);
  REQUIRE(connected_channels(1, 4, 1, 20, 89) == 2);  // Four PCIe GPUs.
  REQUIRE(connected_channels(2, 4, 2, 10, 89) == 4);
  REQUIRE(connected_channels(2, 1, 2, 24) == 4);    // One H100 with 400G.
  REQUIRE(connected_channels(8, 1, 1, 1.2) == 2);   // One GPU with a socket of 10 Gb/s.
  REQUIRE(connected_channels(1, 2, 32, 60) == 64);  // Two ranks of one GPU.
}

TEST_CASE("few fast rings between nodes get four channels each", "[nccl]") {
  REQUIRE(connected_channels(2, 4, 4, 48) == 16);
  REQUIRE(connected_channels(2, 4, 4, 45) == 8);
  REQUIRE(connected_channels(1, 4, 4, 60) == 8);
  REQUIRE(connected_channels(2, 4, 4, 48, 80) == 8);
}

TEST_CASE("limits cut channels, then copy those that are left", "[nccl]") {
  Communicator made = communicator_of(2, 4, rails(4, 0), 80);
  connect(made, {.min = 5, .max = 3});
  REQUIRE(made.channels == 5);
  REQUIRE(made.rings[0].order != made.rings[1].order);
  REQUIRE(made.rings[3].order == made.rings[0].order);
  REQUIRE(made.rings[4].order == made.rings[1].order);
  REQUIRE(made.trees[4].up == made.trees[1].up);
  connect(made, {.min = 100});
  REQUIRE(made.channels == kMaxChannels);
}

TEST_CASE("rings visit every rank once and trees reach them all", "[nccl]") {
  for (const GraphPattern pattern :
       {GraphPattern::Tree, GraphPattern::BalancedTree, GraphPattern::SplitTree}) {
    for (int nodes = 1; nodes <= 33; ++nodes) {
      for (int gpus = 1; gpus <= 8; ++gpus) {
        INFO(nodes << " nodes of " << gpus);
        const int cross_nic = gpus % 2 == 0 ? 2 : 0;
        Communicator made = communicator_of(nodes, gpus, rails(gpus, cross_nic, pattern));
        connect(made, {});
        for (const RingChannel& ring : made.rings) {
          REQUIRE(is_ring(ring, made.ranks));
        }
        for (const TreeChannel& tree : made.trees) {
          REQUIRE(is_tree(tree, made.ranks));
        }
      }
    }
  }
}

TEST_CASE("rings that cross NICs stay on their rail between nodes", "[nccl]") {
  for (const int nodes : {2, 4, 8}) {
    Communicator made = communicator_of(nodes, 8, rails(8, 2));
    connect(made, {});
    REQUIRE(made.graphs.size() == 2);
    for (int channel = 0; channel < made.channels; ++channel) {
      const std::vector<int>& order = made.rings[index(channel)].order;
      int crossings = 0;
      for (std::size_t at = 0; at < order.size(); ++at) {
        const int next = order[(at + 1) % order.size()];
        if (node_of(made, order[at]) != node_of(made, next)) {
          ++crossings;
          REQUIRE(order[at] % 8 == next % 8);
          REQUIRE(nics_of(made, node_of(made, order[at])).ring_out[index(channel)] == next % 8);
          REQUIRE(nics_of(made, node_of(made, next)).ring_in[index(channel)] == next % 8);
        }
      }
      REQUIRE(crossings == nodes);
      REQUIRE(nics_of(made, 0).tree[index(channel)] == channel % 8);
    }
  }
}

TEST_CASE("a tree of two nodes is a chain in each and one edge between them", "[nccl]") {
  Communicator made = communicator_of(2, 4, rails(4, 0));
  connect(made, {});
  // First tree of two nodes: node 0 is the root; second one: node 1.
  REQUIRE(made.trees[1].up == std::vector<int>{3, kNoRank, 1, 2, 7, 1, 5, 6});
  REQUIRE(made.trees[1].down[1] == std::array<int, 3>{2, 5, kNoRank});
  REQUIRE(made.trees[5].up == std::vector<int>{3, 5, 1, 2, 7, kNoRank, 5, 6});
}

TEST_CASE("the second GPU of a balanced tree talks to the children's nodes", "[nccl]") {
  Communicator made = communicator_of(4, 4, rails(4, 0, GraphPattern::BalancedTree));
  connect(made, {});
  // Parents of the nodes in the first tree: none, 2, 0, 2. Node 0 has node 2 as its second child.
  REQUIRE(made.trees[0].up[8] == 0);
  REQUIRE(made.trees[0].down[0] == std::array<int, 3>{1, 8, kNoRank});
  // Node 2 has node 1 as its first child, node 3 as its second one.
  REQUIRE(made.trees[0].up[4] == 9);
  REQUIRE(made.trees[0].up[12] == 8);
  Communicator split = communicator_of(4, 4, rails(4, 0, GraphPattern::SplitTree));
  connect(split, {});
  REQUIRE(split.trees[0].up[12] == 9);
}

TEST_CASE("unequal nodes agree on the least", "[nccl]") {
  GraphSet one = rails(4, 0);
  GraphSet other = rails(2, 2, GraphPattern::BalancedTree);
  one.nvls = make_graph(GraphPattern::Nvls, 4, 40);
  other.ring.bw_inter = 12;
  other.ring.type_intra = PathType::Sys;
  const GraphSet all = aligned_graphs({one, other});
  REQUIRE(all.ring.channel_count == 2);
  REQUIRE(all.tree.channel_count == 2);
  REQUIRE(all.ring.bw_inter == 12);
  REQUIRE(all.ring.type_intra == PathType::Sys);
  REQUIRE(all.ring.cross_nic == 2);
  REQUIRE(all.tree.pattern == GraphPattern::Tree);
  REQUIRE_FALSE(all.nvls.exists());

  Communicator made;
  made.ranks = 6;
  made.nodes = 2;
  made.first_rank = {0, 4, 6};
  made.node_kind = {0, 1};
  made.graphs = {one, other};
  made.min_compute_capability = 80;
  connect(made, {});
  REQUIRE(made.channels == 4);
  for (const RingChannel& ring : made.rings) {
    REQUIRE(is_ring(ring, made.ranks));
  }
}

TEST_CASE("a head of NVLS is a GPU, even with two NICs", "[nccl]") {
  GraphSet set = rails(4, 0);
  set.nvls = make_graph(GraphPattern::Nvls, 4, 40);
  for (const int head : {0, 2, 0, 2}) {
    set.nvls.channels.push_back({.net_in = head, .net_out = head, .gpus = {head}});
  }
  Communicator made = communicator_of(2, 4, set);
  connect(made, {});
  REQUIRE(made.nvls_heads == 2);
  REQUIRE(made.nics[0].nvls == std::vector<int>{0, 2, 0, 2});
}

TEST_CASE("a communicator of 16,384 ranks is joined as one of 16", "[nccl]") {
  Communicator made = communicator_of(2048, 8, rails(8, 2));
  connect(made, {});
  REQUIRE(is_ring(made.rings[7], made.ranks));
  REQUIRE(made.trees.size() == 16);
  REQUIRE(std::count(made.trees[9].up.begin(), made.trees[9].up.end(), kNoRank) == 1);
}

}  // namespace trainyard::nccl
