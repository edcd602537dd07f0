// SPDX-License-Identifier: Apache-2.0
// Files in the shape that nccl-tests writes with -J (its src/util.cu), by hand.
#include "support/catch.h"

#include "calibration/measured/nccl_json.h"

#include <string>

#include "sim/config_error.h"

namespace trainyard {
namespace {

const std::string kJsonRun =
    R"({"version":3,"start_time":"2026-01-02 03:04:05","args":[".\/all_reduce_perf","-g","4"],)"
    R"("env":["HOME=\/root"],"nccl_version":22809,"config":{"nthreads":1,"ngpus":4,)"
    R"("minimum_bytes":0,"maximum_bytes":2097152,"step_factor":2,"warmup_iters":1,"iterations":20,)"
    R"("aggregated_iterations":1,"validation":1,"graph":0,"blocking_collectives":"false",)"
    R"("parallel_init":"false","devices":[{"rank":0,"group":0,"pid":7,"hostname":"one","device":0,)"
    R"("device_hex":"0000:0f:00","device_info":"NVIDIA H100 80GB HBM3"},{"rank":4,"group":0,)"
    R"("pid":8,"hostname":"two","device":0,"device_hex":"0000:0f:00",)"
    R"("device_info":"NVIDIA H100 80GB HBM3"}]},"results":[)"
    R"({"size":0,"count":0,"type":"float","redop":"sum","root":"    -1","out_of_place":)"
    R"({"time":5.5,"alg_bw":0.0,"bus_bw":0.0,"nwrong":0.0},"in_place":{"time":5.4,"alg_bw":0.0,)"
    R"("bus_bw":0.0,"nwrong":0.0},"actual_iterations":20,"experiment_name":""},)"
    R"({"size":1048576,"count":262144,"type":"float","redop":"sum","root":"    -1","out_of_place":)"
    R"({"time":100.0,"alg_bw":10.485760,"bus_bw":18.350080,"nwrong":0.0},"in_place":)"
    R"({"time":90.0,"alg_bw":11.650844,"bus_bw":20.388978,"nwrong":2.0},"actual_iterations":20,)"
    R"("experiment_name":""},{"size":2097152,"count":524288,"type":"float","redop":"sum",)"
    R"("root":"    -1","out_of_place":null,"in_place":{"time":200.0,"alg_bw":10.485760,)"
    R"("bus_bw":18.350080,"nwrong":null},"actual_iterations":20,"experiment_name":""}],)"
    R"("out_of_bounds":{"count":1,"okay":"false"},"average_bus_bandwidth":{"bandwidth":19.0,)"
    R"("okay":"unchecked"},"errors":[],"end_time":"2026-01-02 03:05:05"})";

std::string json_refusal(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  try {
    (void)parse_nccl_json(text, "run.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the JSON of nccl-tests is a table as its text is") {
  REQUIRE(is_nccl_json(kJsonRun));
  REQUIRE_FALSE(is_nccl_json("{\"results\": []}"));
  const MeasuredTable table = parse_measurement(kJsonRun, "run.json");
  REQUIRE(table.name == "run");
  REQUIRE(table.operation == Operation::AllReduce);
  // Each of two processes lists one of its four GPUs.
  REQUIRE(table.ranks == 8);
  REQUIRE(table.nodes == 2);
  REQUIRE(table.gpus_per_node == 4);
  REQUIRE(table.gpus_per_process == 4);
  REQUIRE(table.system == "NVIDIA H100 80GB HBM3");
  REQUIRE(table.rows.size() == 2);
  REQUIRE(table.rows[0].time == microseconds(100));
  REQUIRE(table.rows[0].in_place->time == microseconds(90));
  REQUIRE(table.rows[1].time == microseconds(200));
  REQUIRE(table.bus_ratio.has_value());
  REQUIRE(std::abs(table.bus_ratio->min - 1.75) < 1e-6);
  REQUIRE(table.remarks.front() == "1 rows of 0 bytes left out");
  REQUIRE(table.wrong_results.size() == 1);
  REQUIRE(table.wrong_results[0].what == "results[1]: nwrong is 2 at 1048576 B");
}

TEST_CASE("what is wrong with such JSON is one line with its place") {
  REQUIRE(json_refusal(kJsonRun, "\"time\":100.0", "\"time\":\"soon\"") ==
          "run.json: results[1].out_of_place.time: expected a number of 0 or more, found "
          "\"\"soon\"\"");
  REQUIRE(json_refusal(kJsonRun, "\"time\":100.0", "\"time\":0.0") ==
          "run.json: results[1]: expected a time, found neither a positive time nor a bandwidth to "
          "compute it from");
  REQUIRE(json_refusal(kJsonRun, "\"size\":1048576", "\"size\":-8").find("results[1].size") !=
          std::string::npos);
  REQUIRE(json_refusal(kJsonRun, "\"ngpus\":4,", "") ==
          "run.json: config: expected the key \"ngpus\", found none");
  REQUIRE(json_refusal(kJsonRun, ",\"end_time\"", "").find("expected whole JSON") !=
          std::string::npos);
}

TEST_CASE("a file of JSON that is cut anywhere is refused in one line") {
  for (std::size_t length = 1; length < kJsonRun.size(); length += 7) {
    try {
      (void)parse_nccl_json(kJsonRun.substr(0, length), "run.json");
      FAIL("read");
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
}

}  // namespace trainyard
