// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/execution_trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
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
      ["0", "default_pg"], 1, "allreduce", [], [], 0, 1, 2], "types": []},
      "outputs": {"values": [[[434, 435, 0, 128, 4, "cuda:0"]]]}},
      {"id": 438, "name": "record_param_comms", "inputs":
      {"values": [[[434, 435, 0, 100, 4, "cuda:0"]], 47,
      ["1", "uneven"], 0, "broadcast", [], [], 3, -1, 2], "types": []},
      "outputs": {"values": [[[434, 435, 0, 100, 4, "cuda:0"]]]}}]})");
  REQUIRE(newer.rank == 1);  // The broadcast has its root there.
  REQUIRE(newer.calls.at(0).ranks == std::vector<int>{0, 1});
  REQUIRE(!newer.calls.at(1).ranks);
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

TEST_CASE("an execution trace alone runs its calls one after the other", "[execution-trace]") {
  const auto call = [](const std::string& name, int rank, int group, const std::string& ranks) {
    return fmt::format(
        R"({{"name": "record_param_comms", "id": 5, "inputs": {{"values": [[[1, 2, 0, 500, 4, )"
        R"("cuda:0"]], 1, ["{}", "pg"], {}, "{}", [], [], {}]}}, "outputs": {{"values": [[[1, 2, )"
        R"(0, 500, 4, "cuda:0"]]]}}}})",
        group, rank, name, ranks);
  };
  const auto trace = [](const std::vector<std::string>& nodes) {
    return fmt::format(R"({{ "schema": "1.1.0", "nodes": [{}]}})", fmt::join(nodes, ", "));
  };
  const auto imported = [](const std::vector<std::string>& texts) {
    return imported_workload(ImportedFormat::Kineto, imported_files(texts), 4);
  };
  // A sum of 2000 bytes over two ranks takes 4 us, 1 us and 1 ns for each byte twice over a half.
  const std::string first =
      trace({call("allreduce", 0, 0, "0, 1, 4"), call("allreduce", 0, 1, "0, 2, 2"), kWait,
             call("allreduce", 0, 1, "0, 2, 2")});
  const ImportedWorkload alone = imported({first});
  REQUIRE(alone.graph.ranks() == 4);
  REQUIRE(alone.graph.operations().size() == 3);
  REQUIRE(alone.graph.communicators()[1].ranks == std::vector<int>{0, 2});
  REQUIRE(alone.recorded_calls.empty());
  const SimTime all =
      run_round(imported({trace({call("allreduce", 0, 0, "0, 1, 4")})}), {}, false).result.finish;
  REQUIRE(run_round(alone, {}, false).result.finish == all + 8_us);
  REQUIRE(alone.notes.back() ==
          "an execution trace alone has no times: its calls run one after the other, without "
          "computation");
  // Traces of several ranks; the rank that comes late to the first call holds the others up.
  const ImportedWorkload both =
      imported({trace({call("allreduce", 0, 0, "0, 1, 2"), call("broadcast", 1, 0, "0, 1, 2")}),
                trace({call("allreduce", 1, 0, "0, 1, 2"), call("broadcast", 1, 0, "0, 1, 2")})});
  REQUIRE(both.graph.present().size() == 2);
  REQUIRE(both.graph.operations().size() == 4);
  // The group is not known where its ranks are not evenly apart.
  const ImportedWorkload uneven =
      imported({trace({call("allreduce", 0, 0, "0, 1, 4"), call("allreduce", 0, 1, "0, -1, 2"),
                       call("gather", 0, 0, "0, 1, 4")})});
  REQUIRE(run_round(uneven, {}, false).result.finish == all);
  REQUIRE(std::ranges::count(uneven.notes,
                             "1 calls of collectives of groups whose ranks are nowhere in the file "
                             "take no time") == 1);
  // Before the sizes of groups were noted down, a group alone is that of all ranks.
  const ImportedWorkload old = imported({execution({old_call("allreduce", 500, 500)})});
  REQUIRE(run_round(old, {}, false).result.finish == 4_us);
}

TEST_CASE("an execution trace alone without calls of several ranks is refused",
          "[execution-trace]") {
  const auto error = [](const std::vector<std::string>& texts) {
    return imported_error(ImportedFormat::Kineto, imported_files(texts));
  };
  const std::string expected =
      "0.file: nodes: expected calls of several ranks, as an execution trace alone has no times of "
      "computation (beside its profile it is --execution-traces), found ";
  REQUIRE(error({execution({kWait})}) == expected + "no calls");
  REQUIRE(error({R"({"schema": "1.1.1", "nodes": [{"id": 4, "name": "record_param_comms",
      "inputs": {"values": [[[4, 5, 0, 9, 4, "cuda:0"]], 1, ["0", ""], 0, "allreduce", [], [], 0,
      1, 1]}, "outputs": {"values": []}}]})"}) == expected + "calls of one rank alone");
  REQUIRE(error({execution({old_call("allreduce", 500, 500)}),
                 profile_of(0, {unnamed("AllReduce", 0)})}) ==
          "1.file: expected profiles or execution traces alone (beside profiles they are "
          "--execution-traces), found both");
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
