// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/connect.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "collectives/algorithms/algorithms.h"
#include "nccl/tuning/rccl_tuning.h"
#include "nccl/types/gpu_generation.h"
#include "nccl/types/release.h"
#include "sim/check.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// --- Step 1 ------------------------------------------------------------------------------------

void align(Graph& all, const Graph& one) {
  if (!all.exists() || !one.exists()) {
    all = {};
    return;
  }
  all.channel_count = std::min(all.channel_count, one.channel_count);
  all.bw_intra = std::min(all.bw_intra, one.bw_intra);
  all.bw_inter = std::min(all.bw_inter, one.bw_inter);
  all.same_channels = all.same_channels && one.same_channels;
  all.latency_inter = std::max(all.latency_inter, one.latency_inter);
  all.type_intra = std::max(all.type_intra, one.type_intra);
  all.type_inter = std::max(all.type_inter, one.type_inter);
  all.cross_nic = std::max(all.cross_nic, one.cross_nic);
  all.pattern = std::max(all.pattern, one.pattern);
}

// --- Steps 2 and 3 -----------------------------------------------------------------------------

// The GPUs of a node's chain that talk to the parent's node and to those of the two children.
struct ChainEnds {
  int parent = kNoRank;
  std::array<int, 2> children = {kNoRank, kNoRank};
};

class Connector {
 public:
  explicit Connector(const Communicator& communicator)
      : communicator_(communicator), searched_(communicator.aligned.ring.channel_count) {}

  // One for each searched channel.
  [[nodiscard]] std::vector<RingChannel> rings() const {
    std::vector<RingChannel> rings(as_index(searched_));
    for (int channel = 0; channel < searched_; ++channel) {
      std::vector<int>& order = rings[as_index(channel)].order;
      order.reserve(as_index(communicator_.ranks));
      for (int node = 0; node < communicator_.nodes; ++node) {
        const int first = communicator_.first_rank[as_index(node)];
        const bool turned = is_turned(node);
        const int from = turned && !graphs_of(node).alternates ? channel ^ 1 : channel;
        std::vector<int> gpus = graphs_of(node).ring.channels[as_index(from)].gpus;
        if (turned && graphs_of(node).alternates) {
          std::reverse(gpus.begin(), gpus.end());
        }
        for (const int gpu : gpus) {
          order.push_back(first + gpu);
        }
      }
      CHECK(order.size() == as_index(communicator_.ranks), "a ring visits every rank once");
      // NCCL prints it from rank 0 on.
      std::rotate(order.begin(), std::find(order.begin(), order.end(), 0), order.end());
    }
    return rings;
  }

  // Returns for each searched channel the first tree, then for each the second one.
  [[nodiscard]] std::vector<TreeChannel> trees() const {
    TreeChannel none;
    none.up.assign(as_index(communicator_.ranks), kNoRank);
    none.down.assign(as_index(communicator_.ranks), {kNoRank, kNoRank, kNoRank});
    std::vector<TreeChannel> trees(2 * as_index(searched_), none);
    for (const std::uint32_t which : {0U, 1U}) {
      const std::vector<std::uint32_t> parents =
          double_tree_parents(static_cast<std::uint32_t>(communicator_.nodes), which);
      for (int channel = 0; channel < searched_; ++channel) {
        TreeChannel& tree = trees[as_index(channel) + which * as_index(searched_)];
        join_nodes(tree, parents, which, join_chains(tree, channel));
      }
    }
    return trees;
  }

  // Every second node swaps its rings in pairs (crossNic 2), or goes round them the other way
  // (RCCL).
  [[nodiscard]] bool is_turned(int node) const {
    const GraphSet& graphs = graphs_of(node);
    return node % 2 == 1 &&
           ((graphs.ring.cross_nic == 2 && searched_ % 2 == 0) || graphs.alternates);
  }

  // `bases` names the searched channel of each channel.
  [[nodiscard]] NodeNics nics(const GraphSet& graphs, const std::vector<int>& bases,
                              bool turned) const {
    NodeNics nics;
    for (int channel = 0; channel < static_cast<int>(bases.size()); ++channel) {
      const int base = bases[as_index(channel)] % searched_;
      const bool swaps = turned && !graphs.alternates;
      const GraphChannel& ring = graphs.ring.channels[as_index(swaps ? base ^ 1 : base)];
      const GraphChannel& tree = graphs.tree.channels[as_index(base)];
      nics.ring_in.push_back(nic_of(graphs.ring, channel, ring.gpus.front()));
      nics.ring_out.push_back(nic_of(graphs.ring, channel, ring.gpus.back()));
      if (turned && graphs.alternates) {
        std::swap(nics.ring_in.back(), nics.ring_out.back());
      }
      nics.tree.push_back(nic_of(graphs.tree, channel, tree.gpus.front()));
    }
    for (const GraphChannel& channel : graphs.nvls.channels) {
      CHECK(channel.net_in.has_value(), "a head between nodes has a NIC");
      nics.nvls.push_back(*channel.net_in);
    }
    return nics;
  }

 private:
  [[nodiscard]] const GraphSet& graphs_of(int node) const {
    return communicator_.graphs[as_index(communicator_.node_kind[as_index(node)])];
  }

  [[nodiscard]] std::vector<ChainEnds> join_chains(TreeChannel& tree, int channel) const {
    std::vector<ChainEnds> ends(as_index(communicator_.nodes));
    for (int node = 0; node < communicator_.nodes; ++node) {
      const int first = communicator_.first_rank[as_index(node)];
      const Graph& graph = graphs_of(node).tree;
      const std::vector<int>& gpus = graph.channels[as_index(channel)].gpus;
      for (std::size_t at = 0; at + 1 < gpus.size(); ++at) {
        tree.down[as_index(first + gpus[at])][0] = first + gpus[at + 1];
        tree.up[as_index(first + gpus[at + 1])] = first + gpus[at];
      }
      const int head = first + gpus[0];
      const int second = gpus.size() > 1 ? first + gpus[1] : head;
      ends[as_index(node)] = {
          .parent = head,
          .children = {graph.pattern == GraphPattern::Tree ? head : second,
                       graph.pattern == GraphPattern::SplitTree ? second : head}};
    }
    return ends;
  }

  // Each node has a first and a second child, whose ranks come in this order below its own
  // (NVIDIA/nccl, src/graph/trees.cc: ncclGetDtree). The first is below it in the first tree, which
  // the second one mirrors, or of an odd number of nodes shifts by one.
  static void join_nodes(TreeChannel& tree, const std::vector<std::uint32_t>& parents,
                         std::uint32_t which, const std::vector<ChainEnds>& ends) {
    const std::size_t nodes = parents.size();
    const auto image = [&](std::size_t node) {
      return which == 0 ? node : nodes % 2 == 0 ? nodes - 1 - node : (node + nodes - 1) % nodes;
    };
    for (const std::size_t child_index : {0U, 1U}) {
      for (std::size_t node = 0; node < nodes; ++node) {
        const std::uint32_t parent = parents[node];
        if (parent == kNoParent || (image(node) < image(parent)) != (child_index == 0)) {
          continue;
        }
        const int above = ends[parent].children[child_index];
        tree.up[as_index(ends[node].parent)] = above;
        auto& down = tree.down[as_index(above)];
        auto* const free = std::find(down.begin(), down.end(), kNoRank);
        CHECK(free != down.end(), "a rank has at most three below it");
        *free = ends[node].parent;
      }
    }
  }

  // Returns the NIC of a rank in a graph as NCCL finds it (src/graph/search.cc: ncclTopoGetNetDev):
  // the first one of the channel for the GPU at its front, the second one for any other.
  [[nodiscard]] int nic_of(const Graph& graph, int channel, int gpu) const {
    const GraphChannel& searched = graph.channels[as_index(channel % searched_)];
    const std::optional<int>& nic =
        searched.gpus.front() == gpu ? searched.net_in : searched.net_out;
    CHECK(nic.has_value(), "a channel between nodes has a NIC at each end");
    return *nic;
  }

  const Communicator& communicator_;
  int searched_;
};

// --- Steps 4 to 6 ------------------------------------------------------------------------------

// Adds copies of channels, from the first one on, until there are `count`.
void copy_up_to(std::vector<int>& bases, int count, int max) {
  const std::size_t own = bases.size();
  for (std::size_t channel = own; channel < as_index(std::min(count, max)); ++channel) {
    bases.push_back(bases[channel - own]);
  }
}

// Returns whether `count` channels are doubled to reach the peak with few GPUs in a node
// (src/graph/connect.cc: ncclTopoPostset).
bool doubles_fast_rings(const Communicator& communicator, int count) {
  constexpr double kFastRing = 45.0;
  constexpr int kEnoughChannels = 16;
  if (!gpu_generation(communicator.min_compute_capability).doubles_fast_rings ||
      communicator.nodes == 1 || communicator.aligned.ring.bw_intra <= kFastRing) {
    return false;
  }
  constexpr int kHopper = 90;
  const Release& rules = release(communicator.version);
  const bool hopper = communicator.min_compute_capability == kHopper;
  switch (rules.fast_rings) {
    case FastRings::Alike:
      return false;
    case FastRings::UpToMax:
      return hopper && 2 * count <= rules.max_channels;
    case FastRings::Hopper:
      return hopper && count < kEnoughChannels;
    case FastRings::FromHopper:
      break;
  }
  return count < kEnoughChannels;
}

// Maps each channel of the communicator to one of the searched channels, counted on by the copies
// that carry the second tree.
std::vector<int> multiplied(const Communicator& communicator, const ChannelLimits& limits) {
  const Release& rules = release(communicator.version, communicator.min_compute_capability);
  const int max = rules.max_channels;
  const Graph& ring = communicator.aligned.ring;
  const int searched = ring.channel_count;
  const bool copied = rules.copies_pcie_rings || ring.type_intra == PathType::Nvl ||
                      ring.type_intra == PathType::Nvb;
  const int wanted = copied ? 2 * searched : searched;
  std::vector<int> bases(as_index(std::max(searched, std::min(max, wanted))));
  std::iota(bases.begin(), bases.end(), 0);
  const auto count = [&bases] { return static_cast<int>(bases.size()); };
  if (rules.copies_by_gpu) {
    // NCCL's most is no limit of the user's.
    const int most = limits.max < kMaxChannels
                         ? std::min(limits.max, rccl_max_channels(communicator))
                         : rccl_max_channels(communicator);
    bases.resize(std::min(bases.size(), as_index(most)));
    const int copies = std::min(most / searched, rccl_copies(communicator));
    copy_up_to(bases, std::max(limits.min, copies * searched), most);
    return bases;
  }
  const Graph& chain = communicator.aligned.collnet_chain;
  if (chain.bw_intra > chain.bw_inter && communicator.ranks > communicator.nodes) {
    copy_up_to(bases, count() + count() / 2, max);
  }
  if (doubles_fast_rings(communicator, count())) {
    copy_up_to(bases, 2 * count(), max);
  }
  bases.resize(std::min(bases.size(), as_index(limits.max)));
  copy_up_to(bases, limits.min, max);
  return bases;
}

// --- NVLS --------------------------------------------------------------------------------------

int nvls_heads(const std::vector<GraphSet>& graphs) {
  std::size_t min = std::numeric_limits<std::size_t>::max();
  for (const GraphSet& set : graphs) {
    std::vector<int> heads;
    for (const GraphChannel& channel : set.nvls.channels) {
      heads.push_back(channel.gpus.front());
    }
    std::sort(heads.begin(), heads.end());
    heads.erase(std::unique(heads.begin(), heads.end()), heads.end());
    min = std::min(min, heads.size());
  }
  return static_cast<int>(min);
}

// Nodes that turn their rings become kinds of their own, so that a kind tells the NICs.
void name_nics(Communicator& communicator, const std::vector<int>& bases) {
  communicator.nics.clear();
  if (communicator.nodes == 1) {
    communicator.nics.resize(communicator.graphs.size());
    return;
  }
  const Connector connector(communicator);
  for (const GraphSet& graphs : communicator.graphs) {
    communicator.nics.push_back(connector.nics(graphs, bases, false));
  }
  std::vector<int> kinds = communicator.node_kind;
  std::vector<std::optional<int>> swapped(communicator.graphs.size());
  for (int node = 1; node < communicator.nodes; node += 2) {
    int& kind = kinds[as_index(node)];
    if (!connector.is_turned(node)) {
      continue;
    }
    std::optional<int>& other = swapped[as_index(kind)];
    if (!other) {
      other = static_cast<int>(communicator.graphs.size());
      GraphSet same = communicator.graphs[as_index(kind)];
      communicator.nics.push_back(connector.nics(same, bases, true));
      communicator.graphs.push_back(std::move(same));
    }
    kind = *other;
  }
  communicator.node_kind = std::move(kinds);
}

}  // namespace

GraphSet aligned_graphs(const std::vector<GraphSet>& graphs) {
  CHECK(!graphs.empty(), "there is a node");
  GraphSet all = graphs.front();
  for (const GraphSet& one : graphs) {
    for (Graph GraphSet::*const graph : kGraphs) {
      align(all.*graph, one.*graph);
      (all.*graph).channels.clear();
    }
  }
  all.ring.channel_count = std::min(all.ring.channel_count, all.tree.channel_count);
  all.tree.channel_count = all.ring.channel_count;
  return all;
}

void connect(Communicator& communicator, const ChannelLimits& limits) {
  CHECK(communicator.nodes >= 1, "a communicator has a node");
  CHECK(limits.max >= 1, "a communicator has a channel");
  communicator.aligned = aligned_graphs(communicator.graphs);
  const int searched = communicator.aligned.ring.channel_count;
  CHECK(searched >= 1, "the search found a channel");
  const std::vector<int> bases = multiplied(communicator, limits);
  const Connector connector(communicator);
  const std::vector<RingChannel> rings = connector.rings();
  const std::vector<TreeChannel> trees = connector.trees();
  communicator.channels = static_cast<int>(bases.size());
  communicator.rings.clear();
  communicator.trees.clear();
  for (const int base : bases) {
    communicator.rings.push_back(rings[as_index(base % searched)]);
    communicator.trees.push_back(trees[as_index(base)]);
  }
  if (communicator.aligned.nvls.exists()) {
    communicator.nvls_heads = nvls_heads(communicator.graphs);
  }
  name_nics(communicator, bases);
}

}  // namespace trainyard::nccl
