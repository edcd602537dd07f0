// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/communicator.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "nccl/types/release.h"

namespace trainyard::nccl {
namespace {

// NICs by when they first come.
std::vector<int> renumbered(const NodeNics& nics) {
  std::vector<int> all;
  std::map<int, int> numbers;
  for (const std::vector<int>* const list :
       {&nics.ring_in, &nics.ring_out, &nics.tree, &nics.nvls}) {
    all.push_back(static_cast<int>(list->size()));
    for (const int nic : *list) {
      all.push_back(numbers.try_emplace(nic, static_cast<int>(numbers.size())).first->second);
    }
  }
  return all;
}

bool are_alike(Graph a, Graph b) {
  for (Graph* const graph : {&a, &b}) {
    for (GraphChannel& channel : graph->channels) {
      channel.net_in.reset();
      channel.net_out.reset();
    }
  }
  return a == b;
}

bool are_alike(const GraphSet& a, const GraphSet& b) {
  return std::all_of(kGraphs.begin(), kGraphs.end(),
                     [&](Graph GraphSet::*const graph) { return are_alike(a.*graph, b.*graph); });
}

// Returns all fields but graphs and NICs.
auto fields_of(const Communicator& of) {
  return std::tie(of.version, of.ranks, of.nodes, of.first_rank, of.node_kind,
                  of.min_compute_capability, of.max_compute_capability, of.has_nvswitch, of.cpu,
                  of.channels, of.simple_buffer, of.rings, of.trees, of.nvls_channels,
                  of.nvls_heads, of.nvls_chunk, of.nvls_tree_chunk, of.p2p_channels,
                  of.p2p_channels_per_peer, of.p2p_chunk, of.tuning);
}

}  // namespace

std::string release_of(const Communicator& communicator) {
  const Release& rules = release(communicator.version, communicator.min_compute_capability);
  return rules.runtime.empty() ? "NCCL " + std::string(to_string(communicator.version))
                               : std::string(rules.runtime);
}

bool differ_in_nics_alone(const Communicator& a, const Communicator& b) {
  return fields_of(a) == fields_of(b) && are_alike(a.aligned, b.aligned) &&
         std::equal(a.graphs.begin(), a.graphs.end(), b.graphs.begin(), b.graphs.end(),
                    [](const GraphSet& x, const GraphSet& y) { return are_alike(x, y); }) &&
         std::equal(
             a.nics.begin(), a.nics.end(), b.nics.begin(), b.nics.end(),
             [](const NodeNics& x, const NodeNics& y) { return renumbered(x) == renumbered(y); });
}

}  // namespace trainyard::nccl
