// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/imported_report.h"

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "support/imported_workloads.h"

namespace trainyard {
namespace {

std::string rendered_report(Format format) {
  const ImportedWorkload workload = imported_workload(
      ImportedFormat::Goal,
      imported_files({"num_ranks 2\nrank 0 {\na: calc 1000\nb: send 2000b to 1 nic 1\n"
                      "b requires a\n}\nrank 1 {\nrecv 2000b from 0\n}\n"}),
      2);
  const GraphedRun run = run_round(workload);
  return render(document_of({.setup = {.cluster = "Two GPUs",
                                       .workload = "two.goal",
                                       .gpus = 2,
                                       .runtime = "plain",
                                       .fidelity = "flow",
                                       .shares_network = true},
                             .source = &workload,
                             .run = &run,
                             .notes = {"a note"}}),
                format);
}

}  // namespace

TEST_CASE("recorded calls stand beside what is predicted for them", "[imported_report]") {
  // A message takes 1 us and 1 ns for each byte: a sum of 2000 bytes over two ranks 4 us. Rank 1
  // comes 3 us after rank 0 to the first one, which it waited for when it was recorded.
  const auto profile = [](int rank, double wait, double second) {
    const auto sum = [](double start, double time) {
      return fmt::format(
          R"({{"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "ts": {}, "dur": {}, "args": )"
          R"({{"stream": 7, "Collective name": "allreduce", "In msg nelems": 500, )"
          R"("Out msg nelems": 500, "Group size": 2, "dtype": "Float", )"
          R"("Process Group Name": "0", "Process Group Ranks": "[0, 1]"}}}})",
          start, time);
    };
    return fmt::format(
        R"({{"distributedInfo": {{"rank": {}, "world_size": 2}}, "traceEvents": [{}, {}]}})", rank,
        sum(0.0, wait), sum(wait, second));
  };
  const ImportedWorkload workload = imported_workload(
      ImportedFormat::Kineto, imported_files({profile(0, 8, 6), profile(1, 5, 7)}), 2);
  const GraphedRun run = run_round(workload);
  const nlohmann::json json = nlohmann::json::parse(render(
      document_of({.setup = {}, .source = &workload, .run = &run, .notes = {}}), Format::Json));
  const nlohmann::json row = json["recorded_calls"].at(0);
  REQUIRE(json["recorded_calls"].size() == 1);
  REQUIRE(row["operation"] == "all_reduce");
  REQUIRE(row["bytes"] == 2000);
  REQUIRE(row["calls"] == 2);
  // 5 us and 6 us remain of both calls.
  REQUIRE(row["recorded_shortest_s"] == 5e-6);
  REQUIRE(row["recorded_median_s"] == 6e-6);
  REQUIRE(row["predicted_median_s"] == 4e-6);
}

TEST_CASE("the report of a imported workload has its parts and says what it has not",
          "[imported_report]") {
  REQUIRE(rendered_report(Format::Table) ==
          "# Simulated by Trainyard: cluster Two GPUs, 2 GPUs, runtime plain, fidelity flow, "
          "traffic shared\n"
          "# two.goal: goal, 2 ranks, 2 of them run: 1 computations, 0 calls, 1 messages\n"
          "#\n"
          "time                  4.000 us\n\n"
          "part                   time    share\n"
          "                       (us)      (%)\n"
          "compute               1.000    25.00\n"
          "message               3.000    75.00\n"
          "# Note: parts are those of rank 0, which waits least for others\n"
          "# Note: no tokens, MFU or memory, as the workload does not say what the model is\n"
          "# Note: left out: cpu or nic of 1 messages: the routing of the cluster chooses NICs\n"
          "# Note: a note\n");
  const nlohmann::json json = nlohmann::json::parse(rendered_report(Format::Json));
  REQUIRE(json["time_ps"] == 4'000'000);
  std::int64_t sum = 0;
  for (const auto& part : json["breakdown_ps"]) {
    sum += part.get<std::int64_t>();
  }
  REQUIRE(sum == 4'000'000);
  for (const char* absent : {"mfu", "tokens_per_s", "memory_peak_gib"}) {
    REQUIRE(!json.contains(absent));
  }
  REQUIRE(
      rendered_report(Format::Csv) ==
      "cluster,workload,gpus,format,ranks,ranks_run,computations,calls,messages,time_s,compute_s,"
      "message_s,wait_s,volumes_bytes\n"
      "Two GPUs,two.goal,2,goal,2,2,1,0,1,4e-06,1e-06,3e-06,0,\n");
}

}  // namespace trainyard
