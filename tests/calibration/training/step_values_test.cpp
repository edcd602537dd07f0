// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/training/step_values.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

GpuRates shipped_gpu_rates() {
  return GpuRates::load(kConfigsFolder / "hardware" / "gpu-rates.yaml");
}

StepPriors read_priors(const std::string& constants) {
  ConfigDocument document =
      ConfigDocument::parse("sources: {a: A}\nconstants:\n" + constants, "p.yaml");
  return StepPriors::read(document, shipped_gpu_rates());
}

}  // namespace

TEST_CASE("every shipped prior is of a constant of the rates, which stays where it is put",
          "[step-fit]") {
  const GpuRates rates = shipped_gpu_rates();
  const StepPriors priors =
      StepPriors::load(kConfigsFolder / "hardware" / "gpu-rates-priors.yaml", rates);
  REQUIRE(priors.all().size() > 30);
  for (std::size_t k = 0; k < priors.all().size(); ++k) {
    const StepConstant& constant = priors.all()[k];
    INFO(constant.name);
    REQUIRE(constant.spread > 1.0);
    // What was measured is within reach of what was assumed.
    REQUIRE(constant.in_file < constant.start * 2.0);
    REQUIRE(constant.in_file > constant.start / 2.0);
    const std::vector<std::size_t> which{k};
    const std::vector<double> value{constant.in_file};
    REQUIRE_NOTHROW(priors.values(which, value));
  }
}

TEST_CASE("values take the place of those of the file, and nothing else changes", "[step-fit]") {
  const StepPriors priors = read_priors(
      "  ampere.gemm: {start: 0.7, spread: 1.1, source: a}\n"
      "  ampere.host_layer: {start: 0.0008, spread: 1.1, source: a}\n"
      "  hopper.attention.cudnn.backward: {start: 0.5, spread: 1.1, source: a}\n"
      "  blackwell.memory_bound.fused: {start: 1, spread: 1.1, source: a}\n"
      "  devices.GB300: {start: 1, spread: 1.1, source: a}\n"
      "  software.host_expert_sync: {start: 2, spread: 1.1, source: a}\n");
  const std::vector<std::size_t> which{0, 1, 2, 3, 4, 5};
  const std::vector<double> values{0.6, 0.001, 0.4, 1.5, 1.25, 3.0};
  const StepValues found = priors.values(which, values);
  REQUIRE(found.rates.generations.at("ampere").gemm == 0.6);
  REQUIRE(found.rates.generations.at("ampere").host_layer == milliseconds(1));
  REQUIRE(found.rates.generations.at("hopper").attention.at("cudnn").backward == 0.4);
  REQUIRE(found.rates.generations.at("blackwell").memory_bound.at("fused") == 1.5);
  REQUIRE(found.rates.devices.at("GB300") == 1.25);
  REQUIRE(found.rates.generations.at("hopper").gemm ==
          shipped_gpu_rates().generations.at("hopper").gemm);
  SoftwareProfile software;
  software.host_expert_sync = 2.0;
  REQUIRE(found.adjusted(software).host_expert_sync == 3.0);
  software.host_expert_sync = 0.0;
  REQUIRE(found.adjusted(software).host_expert_sync == 0.0);
}

TEST_CASE("a prior of something else is refused", "[step-fit]") {
  for (const char* const name : {"ampere", "ampere.gemm_fp8", "ampere.gemm.more", "volta.gemm",
                                 "devices.none", "ampere.attention.cudnn.forward"}) {
    INFO(name);
    REQUIRE_THROWS_AS(
        read_priors(std::string("  ") + name + ": {start: 1, spread: 1.1, source: a}\n"),
        ConfigError);
  }
  REQUIRE_THROWS_AS(read_priors("  ampere.gemm: {start: 1, spread: 1, source: a}\n"), ConfigError);
}

}  // namespace trainyard
