// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <nlohmann/json.hpp>
#include <string>

#include "nccl/tuning/connect.h"
#include "report/results/plan_report.h"

namespace trainyard {
namespace {

// Two nodes of two GPUs, one channel of each tree.
PlanReport report() {
  nccl::GraphSet set;
  set.ring.channel_count = 1;
  set.ring.bw_intra = 20;
  set.ring.bw_inter = 12;
  set.ring.type_intra = nccl::PathType::Nvl;
  set.ring.type_inter = nccl::PathType::Pxn;
  set.ring.channels = {{.net_in = 0, .net_out = 1, .gpus = {0, 1}}};
  set.tree = set.ring;
  set.tree.pattern = nccl::GraphPattern::Tree;
  PlanReport made;
  made.source = "small";
  nccl::Communicator& communicator = made.communicator;
  communicator.ranks = 4;
  communicator.nodes = 2;
  communicator.first_rank = {0, 2, 4};
  communicator.node_kind = {0, 0};
  communicator.graphs = {set};
  communicator.min_compute_capability = 80;
  nccl::connect(communicator, {});
  communicator.tuning.cells[4][1][0] = {.latency = 6.6, .bandwidth = 5.25};
  nccl::CallPlan plan;
  plan.protocol = nccl::Protocol::LL;
  plan.bytes = Bytes(1024);
  plan.channels = 1;
  plan.threads = 96;
  plan.parts = {{.channels = 1, .bytes = Bytes(1024), .chunk = Bytes(512)}};
  plan.costs = {{.algorithm = nccl::Algorithm::Tree, .protocol = nccl::Protocol::LL},
                {.algorithm = nccl::Algorithm::Ring, .protocol = nccl::Protocol::LL, .time_us = 7}};
  plan.reason = "the only way";
  made.calls = {{.operation = Operation::AllReduce, .size = Bytes(1024), .plan = plan}};
  made.notes = {"a remark"};
  return made;
}

}  // namespace

TEST_CASE("a plan is printed from the search to the choice", "[nccl]") {
  REQUIRE(render(report(), Format::Table) ==
          R"(# Planned by Trainyard as NCCL 2.30.7 does: small, 4 ranks on 2 nodes

# Search: channels of one node, bandwidth of each
graph  nodes  pattern   channels   intra   inter  paths    crossNic  same
                                  (GB/s)  (GB/s)
ring   all    4 (ring)         1      20      12  NVL/PXN         0  yes
tree   all    3 (tree)         1      20      12  NVL/PXN         0  yes

# Channels: 2 of collectives, 0 of NVLS, 0 of sends and receives (0 for each peer)
channels  ring from rank 0  NIC in/out  tree in node 0  NIC  root ranks
0 1       0 1 2 3           0/1         0 1             0    0 2

# NCCL's cost model: latency in us / bandwidth in GB/s; for choosing, not a prediction
function   algorithm       LL  LL128  Simple
AllReduce  Ring       6.6/5.2      -       -

# all_reduce: choice by size, then NCCL's estimate of every way in us
size  algorithm  protocol  channels  threads  chunk  Ring  reason
                                                       LL
1KiB  Ring       LL               1       96   512B  *7.0  the only way
# Note: a remark
)");
}

TEST_CASE("the log of a plan has NCCL's lines in NCCL's order", "[nccl]") {
  const std::string text = render_plan_info(report());
  std::size_t at = 0;
  for (const char* const start :
       {"Pattern 4,", "\nPattern 3,", "\nChannel 00/02 : 0 1 2 3", "\nTrees [0] ",
        "\n  Algorithm   |", "\nthreadThresholds ", "\n2 coll channels,",
        "\nAllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n# a remark\n"}) {
    INFO(start);
    at = text.find(start, at);
    REQUIRE(at != std::string::npos);
  }
}

TEST_CASE("nodes that differ are listed one kind after the other", "[nccl]") {
  PlanReport made = report();
  nccl::GraphSet other = made.communicator.graphs[0];
  other.ring.bw_intra = 40;
  made.communicator.graphs.push_back(other);
  made.communicator.nics.push_back(made.communicator.nics[0]);
  made.communicator.node_kind = {0, 1};
  const std::string text = render(made, Format::Table);
  REQUIRE(text.find("\nring   1, as 0") != std::string::npos);
  REQUIRE(text.find("\nring   1, as 1") != std::string::npos);
}

TEST_CASE("a plan in JSON has every decision under its key", "[nccl]") {
  PlanReport planned;
  planned.source = "small";
  planned.notes = {"a remark"};
  nccl::Communicator& made = planned.communicator;
  made.min_compute_capability = 90;
  made.ranks = 2;
  made.nodes = 1;
  made.first_rank = {0, 2};
  made.node_kind = {0};
  made.graphs.resize(1);
  made.graphs[0].ring.channel_count = 1;
  made.graphs[0].ring.channels = {{.gpus = {0, 1}}};
  made.graphs[0].nvls = made.graphs[0].ring;
  made.nics.resize(1);
  made.rings = {{.order = {0, 1}}};
  made.trees = {{.up = {-1, 0}, .down = {{1, -1, -1}, {-1, -1, -1}}}};
  made.tuning.cells[4][1][2] = {.latency = 8.5, .bandwidth = 100.0};
  nccl::CallPlan plan;
  plan.bytes = Bytes(64);
  plan.parts = {{.channels = 1, .bytes = Bytes(64), .chunk = Bytes(32)}};
  plan.costs = {{.time_us = 8.5}, {.algorithm = nccl::Algorithm::Pat}};
  planned.calls = {{.operation = Operation::AllReduce, .size = Bytes(64), .plan = plan}};

  const nlohmann::json json = nlohmann::json::parse(render(planned, Format::Json));
  REQUIRE(json["nccl_version"] == "2.30.7");
  REQUIRE(json["kinds"][0]["graphs"]["ring"]["channels"][0]["gpus"][1] == 1);
  REQUIRE(json["kinds"][0]["graphs"]["ring"]["channels"][0]["net_in"].is_null());
  REQUIRE(json["kinds"][0]["graphs"].contains("nvls"));
  REQUIRE(json["rings"][0][1] == 1);
  REQUIRE(json["trees"][0]["down"][0][0] == 1);
  REQUIRE(json["tuning"].size() == 5 * 7 * 3);
  REQUIRE(json["tuning"][4 * 21 + 5]["latency_us"] == 8.5);
  REQUIRE(json["tuning"][4 * 21 + 5]["available"] == true);
  REQUIRE(json["calls"][0]["operation"] == "all_reduce");
  REQUIRE(json["calls"][0]["parts"][0]["chunk_bytes"] == 32);
  REQUIRE(json["calls"][0]["costs"][1]["time_us"].is_null());
  REQUIRE(json["notes"][0] == "a remark");
}

}  // namespace trainyard
