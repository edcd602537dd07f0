// SPDX-License-Identifier: Apache-2.0
// What a step is run on can be replaced; the command line itself is tested in step_test.cpp.
#include "support/catch.h"

#include "cli/step/step_request.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

struct NoiseRequest {
  std::optional<SlowRank> slow;
  ComputeJitter jitter;
};

NoiseRequest read(const std::vector<std::string>& arguments) {
  const Command command{.name = "step", .options = noise_options()};
  const OptionReader reader = parse_options(command, arguments);
  return {.slow = read_slow_rank(reader), .jitter = read_jitter(reader)};
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    read(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a step's inputs give the same step again, and another with another machine",
          "[step-request]") {
  const std::vector<std::string> arguments{
      "--cluster",    "dgx-h100", "--nodes",       "8",     "--workload",
      "mixtral-8x7b", "--set",    "batch.micro=1", "--set", "fabric.cable=20 m"};
  const OptionReader reader = parse_options(step_command(), arguments);
  const StepRequest request = read_step_request(reader);
  REQUIRE(request.inputs.workload_settings == std::vector<std::string>{"batch.micro=1"});
  REQUIRE(request.inputs.overrides.settings == std::vector<std::string>{"fabric.cable=20 m"});
  spdlog::logger log = make_logger(reader);
  const Inputs inputs = load_inputs(request.inputs, log);
  const SimTime time = run_step_inputs(request, inputs).step.time;
  REQUIRE(run_step_inputs(request, inputs).step.time == time);
  const MachineModel better = scaled(inputs.machine, all_resources(), 2.0);
  const SimTime half = run_step_inputs(request, inputs.workload, better).step.time;
  REQUIRE(half / time == Approx(0.5).margin(1e-3));
}

TEST_CASE("noise is what options say, and none without them", "[cli][step_noise]") {
  const NoiseRequest none = read({});
  REQUIRE_FALSE(none.slow);
  REQUIRE_FALSE(none.jitter.has_any());
  REQUIRE_FALSE(describe_noise(none.slow, none.jitter));
  const NoiseRequest all = read({"--slow-rank", "5=1.2", "--jitter", "ranks=0.05", "--jitter",
                                 "operations=0.001", "--seed", "9"});
  REQUIRE(all.slow->rank == 5);
  REQUIRE(all.slow->ppm == 1'200'000);
  REQUIRE(all.jitter.rank_ppm == 50'000);
  REQUIRE(all.jitter.operation_ppm == 1000);
  REQUIRE(all.jitter.seed == 9);
  REQUIRE(describe_noise(all.slow, all.jitter) ==
          "rank 5 computes 1.2 times as long as the others; ranks are slower by 5 % on average; "
          "operations are longer by 0.1 % on average (seed 9)");
}

TEST_CASE("noise that makes no sense is refused in one line", "[cli][step_noise]") {
  for (const char* text : {"5", "=2", "5=", "x=2", "5=2x", "5=0", "5=1e9"}) {
    REQUIRE(refusal({"--slow-rank", text}) ==
            "--slow-rank: expected RANK=FACTOR, a factor from 0.001 to 1000, found \"" +
                std::string(text) + "\"");
  }
  for (const char* text : {"ranks", "ranks=", "rank=0.1", "ranks=-1", "operations=11", "ranks=1x",
                           "ranks=nan", "operations=-inf"}) {
    REQUIRE(
        refusal({"--jitter", text}) ==
        "--jitter: expected ranks=SHARE or operations=SHARE, a share from 0.000001 to 10, found "
        "\"" +
            std::string(text) + "\"");
  }
  REQUIRE(refusal({"--jitter", "ranks=0.1", "--jitter", "ranks=0.2"}) ==
          "--jitter: expected ranks once, found it twice");
  REQUIRE(refusal({"--seed", "3"}) == "--seed: expected --jitter KIND=SHARE beside it, found none");
}

}  // namespace trainyard
