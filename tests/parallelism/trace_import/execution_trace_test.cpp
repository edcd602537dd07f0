// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/execution_trace.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

#include "support/imported_workloads.h"

namespace trainyard {
namespace {

using namespace literals;

// A call of rank 1: elements of four bytes that go in and come out.
std::string old_call(const std::string& name, int in, int out, const std::string& splits = "[]",
                     int group = 77) {
  return fmt::format(
      R"({{"name": "record_param_comms", "id": 5, "inputs": [[1, 2, 0, {}, 4, "cuda:0"], 147, )"
      R"({}, 1, "{}", {}, []], "outputs": [[3, 4, 0, {}, 4, "cuda:0"]]}})",
      in, group, name, splits, out);
}

const std::string kWait =
    R"({"name": "record_param_comms", "id": 6, "inputs": [147, 0, 0, "wait", [], []], )"
    R"("outputs": []})";

std::string execution(const std::vector<std::string>& nodes) {
  return fmt::format(R"({{"schema": "1.0.1", "nodes": [{{"name": "aten::mm", "id": 1}}, {}]}})",
                     fmt::join(nodes, ", "));
}

ExecutionTrace read(const std::string& text) {
  return read_execution_trace({.name = "e.json", .rank = {}, .text = text});
}

std::string unnamed(const std::string& name, double start) {
  return fmt::format(
      R"({{"ph": "X", "cat": "kernel", "name": "ncclKernel_{}", "ts": {}, "dur": 5, )"
      R"("args": {{"stream": 20}}}})",
      name, start);
}

std::string profile_of(int rank, const std::vector<std::string>& events) {
  return fmt::format(
      R"({{"distributedInfo": {{"rank": {}, "world_size": 2}}, "traceEvents": [{}]}})", rank,
      fmt::join(events, ", "));
}

ImportedWorkload joined_workload(const std::string& profile, const std::string& trace) {
  const std::vector<int> servers(2, 0);
  ImportedTarget target{.server_of_gpu = servers};
  target.execution_traces.push_back({.name = "e.json", .rank = {}, .text = trace});
  return read_imported(imported_files({profile}), ImportedFormat::Kineto, target);
}

std::string join_error(const std::string& profile, const std::string& trace) {
  try {
    (void)joined_workload(profile, trace);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an execution trace says what a rank called", "[execution-trace]") {
  const ExecutionTrace trace =
      read(execution({old_call("allreduce", 500, 500), kWait, old_call("all_gather", 10, 20),
                      old_call("all_to_allv", 8, 8, "[3, 5]")}));
  REQUIRE(trace.rank == 1);
  REQUIRE(trace.calls.size() == 3);
  REQUIRE(trace.calls[0].name == "allreduce");
  REQUIRE(trace.calls[0].in == Bytes(2000));
  REQUIRE(trace.calls[0].group == "77");
  REQUIRE(trace.calls[0].group_size == 0);
  REQUIRE(trace.calls[1].out == Bytes(80));
  REQUIRE(!trace.calls[2].has_equal_splits);
  // Since schema 1.0.3 with names of groups, their sizes, and lists of tensors.
  const ExecutionTrace newer = read(
      R"({"schema": "1.1.1", "nodes": [{"id": 437, "name": "record_param_comms", "inputs":
      {"values": [[[434, 435, 0, 100, 4, "cuda:0"], [436, 435, 0, 28, 4, "cuda:0"]], 47,
      ["0", "default_pg"], 1, "broadcast", [], [], 0, 1, 2], "types": []},
      "outputs": {"values": [[[434, 435, 0, 128, 4, "cuda:0"]]]}}]})");
  REQUIRE(newer.rank == 1);
  REQUIRE(newer.calls.at(0).in == Bytes(512));
  REQUIRE(newer.calls[0].out == Bytes(512));
  REQUIRE(newer.calls[0].group_size == 2);
}

TEST_CASE("kernels without a name do what the execution trace says", "[execution-trace]") {
  // A message takes 1 us and 1 ns for each byte: a sum of 2000 bytes over two ranks 4 us, a gather
  // of 4000 bytes 3 us. The third call keeps its 5 us.
  const std::string profile =
      profile_of(1, {unnamed("AllReduce_RING_LL_Sum_float", 0), unnamed("AllGather_RING", 5),
                     unnamed("SendRecv_RING", 10)});
  const ImportedWorkload workload = joined_workload(
      profile, execution({old_call("allreduce", 500, 500), kWait, old_call("all_gather", 500, 1000),
                          old_call("all_to_allv", 8, 8, "[3, 5]")}));
  REQUIRE(run_round(workload, {}, false).result.finish == 12_us);
  REQUIRE(workload.recorded_calls.size() == 2);
  REQUIRE(workload.notes.front().find("1 kernels of collectives with unequal splits") == 0);
}

TEST_CASE("execution traces that do not belong to a profile are refused", "[execution-trace]") {
  const std::string profile = profile_of(1, {unnamed("AllReduce_RING_LL_Sum_float", 0)});
  REQUIRE(join_error(profile, execution({old_call("all_to_all", 5, 5)})) ==
          "e.json: node 5: inputs: expected what ncclKernel_AllReduce_RING_LL_Sum_float does, as "
          "calls and kernels have the same order, found \"all_to_all\"");
  REQUIRE(join_error(profile, execution({kWait})).find("e.json: expected a rank that has a") == 0);
  REQUIRE(
      join_error(profile_of(0, {unnamed("AllReduce_RING", 0)}), execution({kWait})) ==
      "e.json: expected 1 calls of collectives, as 0.file has kernels without a name for theirs, "
      "found 0");
  REQUIRE(join_error(profile, "{}") ==
          "e.json: nodes: expected a list of nodes in JSON, found none");
  REQUIRE(join_error(profile, "{") ==
          "e.json: nodes: expected a list of nodes in JSON, found none");
  REQUIRE(join_error(profile, R"({"nodes": [{"name": "record_param_comms", "inputs": ["a"]}]})") ==
          "e.json: node without id: inputs: expected a group, a rank and the name of an operation, "
          "found none");
  // Calls of two groups whose sizes are not known keep their time.
  const ImportedWorkload two = joined_workload(
      profile_of(1, {unnamed("AllReduce", 0), unnamed("AllReduce", 5)}),
      execution({old_call("allreduce", 500, 500), old_call("allreduce", 500, 500, "[]", 78)}));
  REQUIRE(run_round(two, {}, false).result.finish == 10_us);
}

}  // namespace trainyard
