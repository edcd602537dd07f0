// SPDX-License-Identifier: Apache-2.0
// What a step is run on can be replaced; the command line itself is tested in step_test.cpp.
#include "support/catch.h"

#include "cli/step/step_request.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "cli/common/log.h"
#include "cli/common/options.h"

namespace trainyard {

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
  const SimTime half =
      run_step_inputs(request, inputs.catalogue, inputs.workload, better).step.time;
  REQUIRE(half / time == Approx(0.5).margin(1e-3));
}

}  // namespace trainyard
