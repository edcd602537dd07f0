// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/imported_report.h"

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
      "message_s,wait_s\n"
      "Two GPUs,two.goal,2,goal,2,2,1,0,1,4e-06,1e-06,3e-06,0\n");
}

}  // namespace trainyard
