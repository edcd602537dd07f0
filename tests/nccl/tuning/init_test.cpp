// SPDX-License-Identifier: Apache-2.0
// From a topology file to a choice: the golden figures are what NCCL 2.30.7's own host code gives
// for these files (search, connection and tuning together).
#include "support/catch.h"

#include "nccl/tuning/init.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "nccl/tuning/choice.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

Communicator made(const PlainServer& server, int nodes, const InitOptions& options = {}) {
  return make_communicator(job_nodes(plain_server(server), {.nodes = nodes}), options).communicator;
}

InitOptions with_init(const std::vector<std::string>& variables) {
  return {.environment = Environment::parse(variables)};
}

struct Switch {
  std::int64_t bytes;  // Of all ranks together.
  Algorithm algorithm;
  Protocol protocol;
};

bool same_choice(const Switch& a, const Switch& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol;
}

// Choices at powers of two from 64 bytes to 4 GiB, each where it is new.
std::vector<Switch> switches(const Communicator& communicator, Function function) {
  std::vector<Switch> result;
  for (int power = 6; power <= 32; ++power) {
    const std::int64_t total = std::int64_t{1} << power;
    const bool split = function == Function::AllGather;
    const std::int64_t own = split ? total / communicator.ranks : total;
    if (own == 0) {
      continue;
    }
    const CallPlan plan = plan_call(communicator, {}, function, Bytes(own));
    const Switch next{total, plan.algorithm, plan.protocol};
    if (result.empty() || !same_choice(result.back(), next)) {
      result.push_back(next);
    }
  }
  return result;
}

// "Tree LL, 2^18 Tree LL128".
std::string text_of(const std::vector<Switch>& changes) {
  std::string text;
  for (std::size_t at = 0; at < changes.size(); ++at) {
    int power = 0;
    while ((std::int64_t{1} << power) < changes[at].bytes) {
      ++power;
    }
    text += at == 0 ? "" : fmt::format(", 2^{} ", power);
    text += fmt::format("{} {}", to_string(changes[at].algorithm), to_string(changes[at].protocol));
  }
  return text;
}

std::string all_reduce(const PlainServer& server, int nodes) {
  return text_of(switches(made(server, nodes), Function::AllReduce));
}

std::string all_gather(const PlainServer& server, int nodes) {
  return text_of(switches(made(server, nodes), Function::AllGather));
}

PlainServer single_gpu() {
  PlainServer server = h100_server();
  server.gpus = 1;
  server.nvlinks = 0;
  server.sockets = 1;
  return server;
}

}  // namespace

TEST_CASE("topology files lead to as many channels as in NCCL", "[nccl]") {
  REQUIRE(made(h100_server(), 1).channels == 24);
  REQUIRE(made(h100_server(), 2).channels == 16);
  REQUIRE(made(h100_server(), 4, with_init({"NCCL_CROSS_NIC=0"})).channels == 16);
  REQUIRE(made(a100_server(), 1).channels == 24);
  REQUIRE(made(a100_server(), 2).channels == 16);
  REQUIRE(made(b200_server(), 1).channels == 32);
  REQUIRE(made(b200_server(), 2).channels == 16);
  REQUIRE(made(pcie_server(), 1).channels == 2);
  REQUIRE(made(pcie_server(), 2).channels == 4);
  REQUIRE(made(single_gpu(), 2).channels == 4);
}

TEST_CASE("topology files lead to NCCL's choices for all_reduce", "[nccl]") {
  REQUIRE(all_reduce(h100_server(), 1) == "Ring LL, 2^21 NVLS Simple");
  REQUIRE(all_reduce(h100_server(), 2) == "Tree LL, 2^18 Tree LL128, 2^21 NVLSTree Simple");
  REQUIRE(all_reduce(h100_server(), 4) ==
          "Tree LL, 2^18 Tree LL128, 2^23 NVLSTree Simple, 2^30 Ring Simple");
  REQUIRE(all_reduce(h100_server(), 128) == "Tree LL, 2^18 Tree LL128, 2^25 NVLSTree Simple");
  REQUIRE(all_reduce(a100_server(), 1) == "Ring LL, 2^22 Ring LL128, 2^25 Ring Simple");
  REQUIRE(all_reduce(a100_server(), 2) == "Tree LL, 2^19 Tree Simple, 2^25 Ring Simple");
  REQUIRE(all_reduce(b200_server(), 1) == "Ring LL, 2^22 NVLS Simple");
  REQUIRE(all_reduce(b200_server(), 2) == "Tree LL, 2^18 Tree LL128, 2^21 NVLSTree Simple");
  REQUIRE(all_reduce(pcie_server(), 1) == "Ring LL, 2^19 Ring Simple");
  REQUIRE(all_reduce(single_gpu(), 2) == "Ring LL, 2^20 Ring LL128, 2^24 Ring Simple");
}

TEST_CASE("choices that come and go with the size are NCCL's too", "[nccl]") {
  PlainServer four = h100_server();
  four.nic_every = 2;
  REQUIRE(all_reduce(four, 2) ==
          "Tree LL, 2^18 Tree LL128, 2^25 NVLSTree Simple, 2^27 Tree LL128, 2^29 Tree Simple");
  PlainServer fast = b200_server();
  fast.link_speed = "64.0 GT/s PCIe";
  fast.nic_speed = 800'000;
  REQUIRE(all_reduce(fast, 2) ==
          "Tree LL, 2^18 Tree LL128, 2^24 Ring LL128, 2^26 NVLSTree Simple, 2^29 Ring Simple, "
          "2^30 NVLSTree Simple");
  PlainServer sixteen = h100_server();
  sixteen.nics_per_gpu = 2;
  sixteen.nic_speed = 200'000;
  REQUIRE(all_reduce(sixteen, 2) == "Tree LL, 2^18 Tree LL128, 2^24 Ring LL128, 2^28 Ring Simple");
}

TEST_CASE("topology files lead to NCCL's choices for all_gather", "[nccl]") {
  REQUIRE(all_gather(h100_server(), 1) == "Ring LL, 2^23 Ring LL128, 2^25 Ring Simple");
  REQUIRE(all_gather(h100_server(), 2) == "Ring LL, 2^20 Ring LL128, 2^26 Ring Simple");
  REQUIRE(all_gather(a100_server(), 2) == "Ring LL, 2^21 Ring Simple");
  REQUIRE(all_gather(single_gpu(), 2) == "Ring LL, 2^20 PAT Simple, 2^21 Ring Simple");
}

TEST_CASE("variables limit the channels and the search", "[nccl]") {
  REQUIRE(made(h100_server(), 1, with_init({"NCCL_MAX_NCHANNELS=4"})).channels == 4);
  REQUIRE(made(h100_server(), 1, with_init({"NCCL_MIN_CTAS=30"})).channels == 30);
  REQUIRE_FALSE(made(h100_server(), 1, with_init({"NCCL_NVLS_ENABLE=0"})).aligned.nvls.exists());
  REQUIRE(made(h100_server(), 2, with_init({"NCCL_CROSS_NIC=0"})).aligned.ring.cross_nic == 0);
}

TEST_CASE("sends and receives get channels by what joins the peers", "[nccl]") {
  const Communicator one = made(h100_server(), 1);
  REQUIRE(one.p2p_channels == 32);
  REQUIRE(one.p2p_channels_per_peer == 32);
  const Communicator pcie = made(pcie_server(), 1);
  REQUIRE(pcie.p2p_channels == 2);
  REQUIRE(pcie.p2p_channels_per_peer == 2);
}

TEST_CASE("a graph file that was written takes the place of the search", "[nccl]") {
  const JobNodes nodes = job_nodes(plain_server(h100_server()), {.nodes = 4});
  const InitResult searched = make_communicator(nodes, {});
  GraphSet file = searched.communicator.graphs.front();
  InitOptions options;
  options.graph_name = "graph.xml";
  options.graph_text = write_graph_xml(file, searched.names);
  const Communicator same = make_communicator(nodes, options).communicator;
  REQUIRE(same.aligned.ring == searched.communicator.aligned.ring);
  REQUIRE(same.rings[3].order == searched.communicator.rings[3].order);
  REQUIRE(same.remarks == searched.communicator.remarks);

  file.ring.channel_count = 2;
  file.ring.channels.resize(2);
  file.ring.bw_inter = 12;
  options.graph_text = write_graph_xml({.ring = file.ring}, searched.names);
  const Communicator fewer = make_communicator(nodes, options).communicator;
  REQUIRE(fewer.aligned.ring.bw_inter == 12);
  REQUIRE(fewer.aligned.tree.channel_count == 2);
  REQUIRE(fewer.aligned.nvls.channel_count == 8);
}

TEST_CASE("what a graph file cannot do here is told", "[nccl]") {
  const JobNodes nodes = job_nodes(plain_server(h100_server()), {.nodes = 2});
  const InitResult searched = make_communicator(nodes, {});
  GraphSet file = searched.communicator.graphs.front();
  file.ring.cross_nic = 1;
  InitOptions options = with_init({"NCCL_CROSS_NIC=0", "NCCL_NVLS_ENABLE=0"});
  options.graph_name = "graph.xml";
  options.graph_text = write_graph_xml(file, searched.names);
  const Communicator other = make_communicator(nodes, options).communicator;
  REQUIRE(other.aligned.ring.bw_inter == 45);
  REQUIRE(other.remarks ==
          std::vector<std::string>{
              "the graph file's ring crosses NICs, which NCCL_CROSS_NIC=0 forbids: it was searched "
              "for",
              "the graph file's NVLS is of no use here: the nodes cannot do it"});
}

TEST_CASE("rings and trees of H100 nodes are those of public logs", "[nccl]") {
  // NVIDIA/nccl issue 1453: three nodes without crossing NICs, rings 5 and 7; the log cuts them.
  const Communicator three = made(h100_server(), 3, with_init({"NCCL_CROSS_NIC=0"}));
  const auto begins = [&](int channel, const std::vector<int>& ranks) {
    const std::vector<int>& order = three.rings[static_cast<std::size_t>(channel)].order;
    return std::equal(ranks.begin(), ranks.end(), order.begin());
  };
  REQUIRE(begins(5, {0, 7, 6, 13, 12, 11, 10, 9, 8, 15, 14, 21, 20, 19, 18, 17, 16, 23, 22, 5}));
  REQUIRE(begins(7, {0, 15, 14, 13, 12, 11, 10, 9, 8, 23, 22, 21, 20, 19, 18, 17, 16, 7, 6, 5}));
  REQUIRE(begins(8, {0, 7, 6, 5, 4, 3, 2, 1, 8, 15, 14, 13, 12, 11, 10, 9, 16, 23, 22, 21}));
  // Two nodes: "Trees [0] 1/8/-1->0->-1 [1] -1/-1/-1->0->7 [2] 1/-1/-1->0->7 ... [8] 1/-1/-1->0->8"
  // and of rank 6 "[6] 7/14/-1->6->-1 [7] -1/-1/-1->6->5 ... [14] 7/-1/-1->6->14".
  const Communicator two = made(h100_server(), 2);
  REQUIRE(two.trees[0].down[0] == std::array<int, 3>{1, 8, kNoRank});
  REQUIRE(two.trees[1].up[0] == 7);
  REQUIRE(two.trees[1].down[0] == std::array<int, 3>{kNoRank, kNoRank, kNoRank});
  REQUIRE(two.trees[8].up[0] == 8);
  REQUIRE(two.trees[6].down[6] == std::array<int, 3>{7, 14, kNoRank});
  REQUIRE(two.trees[14].up[6] == 14);
}

TEST_CASE("one rank is no communicator", "[nccl]") {
  REQUIRE_THROWS_WITH(
      made(single_gpu(), 1),
      Catch::Matchers::Equals("a communicator: expected at least two ranks, found 1"));
}

TEST_CASE("the machines that were searched are those of each kind of node", "[nccl]") {
  const InitResult result =
      make_communicator(job_nodes(plain_server(h100_server()), {.nodes = 3, .ranks = 20}), {});
  REQUIRE(result.machines.size() == 2);
  REQUIRE(result.machines[1].gpu_count() == 4);
  REQUIRE(result.communicator.node_kind.size() == 3);
}

TEST_CASE("a GPU takes as many of its NICs as the policy says", "[nccl]") {
  PlainServer server = h100_server();
  server.nics_per_gpu = 2;
  const auto nets = [&](const std::string& policy) {
    return make_communicator(job_nodes(plain_server(server), {.nodes = 2}),
                             with_init({"NCCL_NETDEVS_POLICY=" + policy}))
        .machines[0]
        .nets_per_gpu(0);
  };
  REQUIRE(nets("AUTO") == 2);
  REQUIRE(nets("ALL") == 2);
  REQUIRE(nets("MAX:1") == 1);
}

TEST_CASE("a thousand nodes are searched as one of their kind", "[nccl]") {
  const Communicator many = made(h100_server(), 2048);
  REQUIRE(many.ranks == 16'384);
  REQUIRE(many.channels == 16);
}

// Its two sockets reach each other faster over NICs than directly, if those are plugged in.
TEST_CASE("GPUs of a server do not use NICs that have no cable", "[nccl]") {
  const std::string server = "name: a\nsource: a\nnodes: 1\nserver: l40s-8\n";
  const JobNodes alone = job_nodes(cluster_of(server), Domains::Joined);
  REQUIRE(alone.unplugged);
  REQUIRE(make_communicator(alone, {}).communicator.nodes == 1);
  const JobNodes plugged = job_nodes(
      cluster_of(server +
                 "fabric: {template: single-switch, leaf: Spectrum4-SN5400, cable: 10 m}\n"),
      Domains::Joined);
  REQUIRE_FALSE(plugged.unplugged);
  REQUIRE(make_communicator(plugged, {}).communicator.nodes > 1);
}

}  // namespace trainyard::nccl
