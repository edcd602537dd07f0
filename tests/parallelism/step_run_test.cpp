// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/step_run.h"

#include <optional>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

StepRun run_gpt(const std::string& cluster, std::optional<int> nodes,
                const std::vector<std::string>& settings) {
  const Workload workload = load_workload(kConfigsFolder / "workloads" / "gpt-3-175b.yaml",
                                          kConfigsFolder / "workloads" / "models", settings);
  return run_workload(shipped_cluster(cluster, {.nodes = nodes}), workload,
                      shipped_software(workload.software),
                      {.catalogue = shipped_catalogue(),
                       .rates = shipped_rates(),
                       .nccl = nullptr,
                       .fidelity = Fidelity::Flow});
}

}  // namespace

TEST_CASE("twice the data ranks do twice the work in about the same time", "[step-run]") {
  const StepRun few = run_gpt("dgx-a100", 32, {"batch.global=384"});
  const StepRun many = run_gpt("dgx-a100", 64, {"batch.global=768"});
  REQUIRE(few.plan.data == 2);
  REQUIRE(many.plan.data == 4);
  REQUIRE(many.step.time / few.step.time == Approx(1.0).epsilon(0.03));
  REQUIRE(few.simulated < few.calls);
  REQUIRE(few.peak == 312e12);
  REQUIRE(few.memory.device() < few.memory_size);
  REQUIRE(few.memory.device() > few.memory[MemoryClass::Weights]);
  REQUIRE_FALSE(few.memory_verdict.empty());
}

TEST_CASE("tensor ranks on two servers are slower than on one", "[step-run]") {
  const StepRun near = run_gpt("dgx-a100", 16, {"batch.global=192"});
  const StepRun far =
      run_gpt("dgx-a100", 16, {"batch.global=192", "plan.order=[data, pipeline, context, tensor]"});
  REQUIRE(far.step.parts[StepPart::Tensor] / near.step.parts[StepPart::Tensor] > 4.0);
  REQUIRE(far.step.parts[StepPart::Linear] == near.step.parts[StepPart::Linear]);
}

TEST_CASE("GPUs of several kinds are refused", "[step-run]") {
  REQUIRE_THROWS_MATCHES(
      run_gpt("mixed-a100", {}, {"plan={tensor: 4}", "batch.global=20"}), ConfigError,
      Catch::Matchers::Message(
          "step: expected GPUs of one kind, as passes of unequal ones are not modelled yet, found "
          "A100-SXM-80GB and A100-PCIe-80GB"));
}

}  // namespace trainyard
