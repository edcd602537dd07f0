// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/collective_rows.h"

namespace trainyard {
namespace {

CollectiveInputs inputs_of(const std::string& cluster, int nodes) {
  CollectiveRequest request;
  request.inputs.cluster = cluster;
  request.inputs.overrides.nodes = nodes;
  request.algorithms = {&kRing};
  spdlog::logger log("test");
  return load_collective_inputs(request, log);
}

}  // namespace

TEST_CASE("a row has nccl-tests' bandwidths of its time, and what was measured at its size") {
  CollectiveInputs inputs = inputs_of("dgx-h100", 1);
  MeasuredRow measured;
  measured.size = Bytes(4096);
  measured.time = SimTime(3'000'000);
  inputs.measured.emplace();
  inputs.measured->rows.push_back(measured);
  const SimTime time(2'000'000);
  const CollectiveRow row = timed_row(Operation::AllReduce, Bytes(4096), time, inputs);
  REQUIRE(row.algbw_gbps == Approx(2.048));
  REQUIRE(row.busbw_gbps == Approx(2.048 * 1.75));
  REQUIRE(row.measured.has_value());
  REQUIRE(row.measured->time == measured.time);
  const CollectiveRow other = timed_row(Operation::AllReduce, Bytes(8192), SimTime(), inputs);
  REQUIRE_FALSE(other.measured.has_value());
  REQUIRE(other.busbw_gbps == 0.0);
}

TEST_CASE("estimates are named without their sources, in one note") {
  Cluster cluster = inputs_of("dgx-h100", 1).cluster;
  std::vector<std::string> notes;
  cluster.estimates = {};
  add_estimate_note(cluster, notes);
  REQUIRE(notes.empty());
  cluster.estimates = {"A: x = 1: a guess", "B: y = 2: another: one"};
  add_estimate_note(cluster, notes);
  REQUIRE(notes == std::vector<std::string>{"estimates used (sources: trainyard topology --format "
                                            "json): A: x = 1; B: y = 2"});
}

TEST_CASE("a report begins with what was asked for and what it runs on") {
  CollectiveRequest request;
  request.operation = Operation::Broadcast;
  request.root = 3;
  const CollectiveReport report = empty_report(request, inputs_of("dgx-h100", 2));
  REQUIRE(report.operation == Operation::Broadcast);
  REQUIRE(report.root == 3);
  REQUIRE(report.ranks == 16);
  REQUIRE(report.node_gpus == std::vector<int>{8, 8});
  REQUIRE_FALSE(report.measured_name.has_value());
}

}  // namespace trainyard
