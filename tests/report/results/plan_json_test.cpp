// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <nlohmann/json.hpp>
#include <string>

#include "report/results/plan_json.h"

namespace trainyard {

TEST_CASE("a plan in JSON has every decision under its key", "[nccl]") {
  PlanReport report;
  report.source = "small";
  report.notes = {"a remark"};
  nccl::Communicator& made = report.communicator;
  made.ranks = 2;
  made.nodes = 1;
  made.first_rank = {0, 2};
  made.node_kind = {0};
  made.graphs.resize(1);
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
  report.calls = {{.operation = Operation::AllReduce, .size = Bytes(64), .plan = plan}};

  const nlohmann::json json = nlohmann::json::parse(render_plan_json(report));
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
