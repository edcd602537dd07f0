// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "nccl/types/types.h"
#include "report/results/plan_info.h"

namespace trainyard {
namespace {

nccl::Communicator ring_of(int ranks) {
  nccl::Communicator made;
  made.ranks = ranks;
  nccl::RingChannel ring;
  ring.order.resize(static_cast<std::size_t>(ranks));
  std::iota(ring.order.begin(), ring.order.end(), 0);
  made.rings.assign(2, ring);
  return made;
}

}  // namespace

TEST_CASE("the line of a graph is that of NCCL", "[nccl]") {
  nccl::Graph graph;
  graph.channel_count = 12;
  graph.bw_intra = 30;
  graph.bw_inter = 30;
  graph.type_intra = nccl::PathType::Nvl;
  graph.type_inter = nccl::PathType::Pix;
  REQUIRE(graph_line(graph) ==
          "Pattern 4, crossNic 0, nChannels 12, bw 30.000000/30.000000, type NVL/PIX, "
          "sameChannels 1\n");
  graph.bw_inter = 45.1;
  REQUIRE(graph_line(graph).find("bw 30.000000/45.099998,") != std::string::npos);
}

TEST_CASE("rings are printed in equal widths and cut as NCCL cuts them", "[nccl]") {
  REQUIRE(ring_lines(ring_of(4)) == "Channel 00/02 : 0 1 2 3\nChannel 01/02 : 0 1 2 3\n");
  const std::string eleven = ring_lines(ring_of(11));
  REQUIRE(eleven.substr(0, 29) == "Channel 00/02 :  0  1  2  3  ");
  const std::string many = ring_lines(ring_of(1024));
  const std::string line = many.substr(0, many.find('\n'));
  REQUIRE(line.size() == 127);
  REQUIRE(line.substr(line.size() - 6) == "  2...");
}

TEST_CASE("a rank's places in the trees are on one line", "[nccl]") {
  nccl::Communicator made;
  made.ranks = 2;
  made.trees = {{.up = {-1, 0}, .down = {{1, -1, -1}, {-1, -1, -1}}},
                {.up = {1, -1}, .down = {{-1, -1, -1}, {0, -1, -1}}}};
  REQUIRE(tree_line(made, 0) == "Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n");
}

TEST_CASE("the table of the cost model has NCCL's cells, three algorithms side by side", "[nccl]") {
  nccl::TuningTable table;
  const auto all_reduce = static_cast<std::size_t>(nccl::Function::AllReduce);
  table.cells[all_reduce][0][0] = {.latency = 15.2, .bandwidth = 43.6};
  table.cells[all_reduce][1][2] = {.latency = 2484.25, .bandwidth = 205.7};
  table.max_threads[0][0] = 512;
  table.thread_thresholds[0] = {8, 8, 64};
  table.thread_thresholds[1] = {64, 8, 64};
  table.thread_thresholds[2] = {8, 8, 512};
  table.thread_thresholds[3] = {8, 8, 512};
  const std::string text = tuning_lines(table);
  const std::string first = text.substr(0, text.find('\n'));
  REQUIRE(first ==
          "  Algorithm   |                            Tree                  |"
          "                            Ring                  |"
          "                   CollNetDirect                  |");
  REQUIRE(text.find("\n  Protocol    |             LL |          LL128 |         Simple |") !=
          std::string::npos);
  REQUIRE(text.find("\n Max NThreads |            512 |              0 |") != std::string::npos);
  REQUIRE(text.find("\n    AllReduce |    15.2/  43.6 |     0.0/   0.0 |     0.0/   0.0 |"
                    "     0.0/   0.0 |     0.0/   0.0 |  2484.2/ 205.7 |") != std::string::npos);
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 3 * 8);
  REQUIRE(threshold_line(table) == "threadThresholds 8/8/64 | 64/8/64 | 512 | 512\n");
}

TEST_CASE("the counts of channels and a call are one line each", "[nccl]") {
  nccl::Communicator made;
  made.channels = 24;
  made.nvls_channels = 16;
  made.p2p_channels = 32;
  made.p2p_channels_per_peer = 8;
  REQUIRE(channels_line(made) ==
          "24 coll channels, 24 collnet channels, 16 nvls channels, 32 p2p channels, 8 p2p "
          "channels per peer\n");
  nccl::CallPlan plan;
  plan.protocol = nccl::Protocol::LL;
  plan.bytes = Bytes(1048576);
  plan.channels = 24;
  REQUIRE(call_line(plan) ==
          "AllReduce: 1048576 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..23}\n");
  plan.algorithm = nccl::Algorithm::NvlsTree;
  plan.protocol = nccl::Protocol::Simple;
  REQUIRE(call_line(plan) ==
          "AllReduce: 1048576 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..23}\n");
}

}  // namespace trainyard
