// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/search/search_request.h"
#include "parallelism/model/pipeline_schedule.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

SearchRequest search_request(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", "dgx-h100", "--workload", "llama-3-8b"});
  return read_search_request(parse_options(search_command(), arguments));
}

void require_refused(const std::vector<std::string>& arguments, const std::string& message) {
  REQUIRE_THROWS_MATCHES(search_request(arguments), ConfigError, Catch::Matchers::Message(message));
}

}  // namespace

TEST_CASE("axes are lists of numbers and ranges", "[cli][search]") {
  REQUIRE(parse_numbers("tp", "1,2,4", 1, 8) == std::vector<int>{1, 2, 4});
  REQUIRE(parse_numbers("tp", "1..4,8,2", 1, 8) == std::vector<int>{1, 2, 3, 4, 8});
  for (const char* text : {"", "0", "9", "1..", "..2", "4..1", "1,,2", "a", "1.5"}) {
    INFO(text);
    REQUIRE_THROWS_AS(parse_numbers("tp", text, 1, 8), ConfigError);
  }
}

TEST_CASE("what the command line says of axes goes before what it keeps", "[cli][search]") {
  const SearchRequest request =
      search_request({"--tp", "1..4", "--sp", "on", "--recompute", "full,none", "--order", "tcpd",
                      "--schedule", "zb-v,1f1b", "--keep", "pp,zero"});
  const Workload workload = load_workload(kConfigsFolder / "workloads" / "llama-3-8b.yaml",
                                          kConfigsFolder / "workloads" / "models");
  const PlanAxes axes = chosen_axes(request.axes, workload, 16, 8);
  REQUIRE(axes.tensor == std::vector<int>{1, 2, 3, 4});
  REQUIRE(axes.sequence_parallel == std::vector<bool>{true});
  REQUIRE(axes.recompute == std::vector<Recompute>{Recompute::Full, Recompute::None});
  REQUIRE(axes.schedules.size() == 2);
  REQUIRE(axes.schedules[0] == &kZeroBubbleV);
  REQUIRE(axes.orders.size() == 1);
  REQUIRE(axes.pipeline == std::vector<int>{1});
  REQUIRE(axes.zero_stage == std::vector<int>{1});
  REQUIRE(axes.micro_batch == std::vector<std::int64_t>{1, 2, 4, 8});
  REQUIRE(axes.context == std::vector<int>{1, 2});
}

TEST_CASE("a second look is what is not the first", "[cli][search]") {
  REQUIRE_FALSE(search_request({}).refines);
  REQUIRE(search_request({"--method", "graph"}).refines);
  REQUIRE(search_request({"--fidelity", "flow"}).refines);
  REQUIRE_FALSE(search_request({"--fidelity", "ports"}).refines);
  REQUIRE_FALSE(search_request({"--runtime", "plain", "--fidelity", "analytical"}).refines);
  REQUIRE(search_request({"--runtime", "plain"}).refines);
}

TEST_CASE("settings of the workload are parted from those of the cluster", "[cli][search]") {
  const SearchRequest request = search_request({"--set", "batch.global=32", "--set", "fabric.x=1"});
  REQUIRE(request.inputs.workload_settings == std::vector<std::string>{"batch.global=32"});
  REQUIRE(request.inputs.overrides.settings == std::vector<std::string>{"fabric.x=1"});
}

TEST_CASE("what a search cannot do is refused", "[cli][search]") {
  require_refused({"--tp", "8..4"},
                  "--tp: expected numbers from 1 to 50000, such as 1,2,4 or 1..8, found \"8..4\"");
  require_refused({"--order", "tcp"},
                  "--order: expected a list of t, c, d and p in some order, such as tcdp, found "
                  "\"tcp\"");
  require_refused({"--recompute", "selectiv"},
                  "--recompute: expected a list of none, selective or full, found \"selectiv\"; "
                  "did you mean \"selective\"?");
  require_refused({"--tp", "8", "--keep", "tp"},
                  "--keep: expected axes without values of their own, found tp");
  require_refused({"--gpus", "8", "--nodes", "1"}, "--gpus: expected without --nodes, found both");
  require_refused({"--traffic", "shared"},
                  "--traffic: expected --method graph beside it, found closed-forms");
  require_refused({"--runtime", "plain", "--profile", "x"},
                  "--profile: expected --runtime nccl or rccl beside it, found plain");
}

}  // namespace trainyard
