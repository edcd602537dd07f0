// SPDX-License-Identifier: Apache-2.0
// The rings that RCCL has ready are held to what they are for: each visits every GPU once along
// xGMI links, and all together use every link equally.
#include "nccl/search/rccl_topologies.h"

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nccl/search/search.h"
#include "support/catch.h"
#include "support/nccl_servers.h"
#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

GraphSet graphs_of_amd(int nodes, const ClusterOverrides& more = {}) {
  ClusterOverrides overrides = more;
  overrides.nodes = nodes;
  const JobNodes made = job_nodes(shipped_cluster("mi300x", overrides), Domains::Joined);
  return search_graphs(made.kinds.at(0), {.multi_node = nodes > 1});
}

// How often each link from GPU to GPU is used, and from the last GPU back to the first if
// `is_closed`.
std::map<std::pair<int, int>, int> uses_of(const Graph& graph, bool is_closed) {
  std::map<std::pair<int, int>, int> uses;
  for (const GraphChannel& channel : graph.channels) {
    REQUIRE(std::set<int>(channel.gpus.begin(), channel.gpus.end()).size() == 8);
    for (std::size_t i = 0; i + (is_closed ? 0 : 1) < channel.gpus.size(); ++i) {
      ++uses[{channel.gpus[i], channel.gpus[(i + 1) % channel.gpus.size()]}];
    }
  }
  return uses;
}

}  // namespace

TEST_CASE("rings of eight MI300X use every xGMI link equally", "[nccl]") {
  const GraphSet graphs = graphs_of_amd(1);
  REQUIRE(graphs.ring.channel_count == 28);
  // 28 rings over seven links of 48 GB/s.
  REQUIRE(graphs.ring.bw_intra == 12.0);
  REQUIRE(graphs.rccl_model == 5);
  REQUIRE(graphs.has_msccl);
  const auto uses = uses_of(graphs.ring, true);
  REQUIRE(uses.size() == 56);
  for (const auto& [link, times] : uses) {
    REQUIRE(times == 4);
  }
  REQUIRE(graphs.tree.pattern == GraphPattern::BalancedTree);
}

TEST_CASE("between nodes each ring leaves by another GPU's NIC", "[nccl]") {
  const GraphSet graphs = graphs_of_amd(2);
  REQUIRE(graphs.ring.channel_count == 64);
  REQUIRE(graphs.alternates);
  REQUIRE_FALSE(graphs.has_msccl);
  const auto uses = uses_of(graphs.ring, false);
  REQUIRE(uses.size() == 56);
  std::map<int, int> in;
  std::map<int, int> out;
  for (const GraphChannel& channel : graphs.ring.channels) {
    ++in[*channel.net_in];
    ++out[*channel.net_out];
    // On the rail of the GPU.
    REQUIRE(channel.net_in == channel.gpus.front());
    REQUIRE(channel.net_out == channel.gpus.back());
  }
  for (const auto& [link, times] : uses) {
    REQUIRE(times == 8);
  }
  for (int nic = 0; nic < 8; ++nic) {
    REQUIRE(in[nic] == 8);
    REQUIRE(out[nic] == 8);
  }
}

TEST_CASE("MI355X has the tuning model of its own, and other numbers of GPUs are searched",
          "[nccl]") {
  ClusterOverrides mi355x;
  mi355x.settings = {"server.gpu=MI355X"};
  REQUIRE(graphs_of_amd(1, mi355x).rccl_model == 6);
  // RCCL knows no ring of five of them, and looks for two at most.
  const GraphSet graphs = graphs_of_amd(1, {.gpus_per_node = 5});
  REQUIRE(graphs.rccl_model == 0);
  REQUIRE(graphs.ring.channel_count <= 2);
}

TEST_CASE("NVIDIA's machines are none of those", "[nccl]") {
  const JobNodes nodes = job_nodes(shipped_cluster("dgx-1", {.nodes = 1}), Domains::Joined);
  REQUIRE_FALSE(search_graphs(nodes.kinds.at(0), {}).alternates);
}

}  // namespace trainyard::nccl
