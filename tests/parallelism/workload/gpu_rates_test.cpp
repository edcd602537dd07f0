// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/workload/gpu_rates.h"

#include <cmath>
#include <string>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

void require_no_rates(const std::string& gpu, const std::string& software, Precision precision,
                      const std::string& message) {
  INFO(message);
  REQUIRE_THROWS_MATCHES(shipped_compute(gpu, software, precision), ConfigError,
                         Catch::Matchers::Message(message));
}

const GenerationRates& shipped_generation(const std::string& name) {
  static const GpuRates rates = GpuRates::load(kConfigsFolder / "hardware" / "gpu-rates.yaml");
  return rates.generations.at(name);
}

}  // namespace

TEST_CASE("rates are shares of the peaks of the catalogue", "[rates]") {
  const GenerationRates& ampere = shipped_generation("ampere");
  const GenerationRates& hopper = shipped_generation("hopper");
  const ComputeRates a100 = shipped_compute("A100-SXM-80GB", "megatron-unfused", Precision::Fp16);
  REQUIRE(a100.gemm_rate == Approx(ampere.gemm * 312e12));
  REQUIRE(a100.linear_rate == a100.gemm_rate);
  REQUIRE(a100.memory_rate == Approx(ampere.memory * 2039e9));
  REQUIRE_FALSE(a100.has_fused_attention);
  REQUIRE(a100.fp8_cast == 0.0);
  const ComputeRates h100 = shipped_compute("H100-SXM", "nemo", Precision::Fp8);
  REQUIRE(h100.gemm_rate == Approx(hopper.gemm * 989e12));
  REQUIRE(h100.linear_rate == Approx(hopper.gemm_fp8.value() * 1979e12));
  REQUIRE(h100.peak == Approx(1979e12));
  REQUIRE(h100.attention_backward == Approx(hopper.attention.at("cudnn").backward * 989e12));
  REQUIRE(h100.fp8_cast == hopper.fp8_cast.value());
}

TEST_CASE("a part with more power than its generation is faster at products alone", "[rates]") {
  const ComputeRates gb200 = shipped_compute("GB200", "nemo", Precision::Fp8);
  const ComputeRates gb300 = shipped_compute("GB300", "nemo", Precision::Fp8);
  const GpuRates rates = GpuRates::load(kConfigsFolder / "hardware" / "gpu-rates.yaml");
  const double ratio = rates.devices.at("GB300") / rates.devices.at("GB200");
  REQUIRE(ratio > 1.0);
  REQUIRE(gb300.linear_rate / gb200.linear_rate == Approx(ratio));
  REQUIRE(gb300.memory_rate == gb200.memory_rate);
}

TEST_CASE("a part may be faster at products of 16 bits than its generation, not at others",
          "[rates]") {
  GpuRates rates = shipped_rates();
  const GpuModel& gpu = shipped_catalogue().gpus().at("GB200");
  const auto of = [&](Precision precision) {
    return compute_rates(gpu, rates, shipped_software("nemo"), precision);
  };
  rates.devices_16_bit.erase("GB200");
  const double wide = of(Precision::Bf16).gemm_rate;
  const double narrow = of(Precision::Fp8).linear_rate;
  const double attention = of(Precision::Bf16).attention_forward;
  rates.devices_16_bit["GB200"] = 1.25;
  REQUIRE(of(Precision::Bf16).gemm_rate == Approx(1.25 * wide));
  REQUIRE(of(Precision::Bf16).linear_rate == Approx(1.25 * wide));
  REQUIRE(of(Precision::Fp8).gemm_rate == Approx(1.25 * wide));  // The head.
  REQUIRE(of(Precision::Fp8).linear_rate == narrow);
  REQUIRE(of(Precision::Bf16).attention_forward == attention);
  REQUIRE_FALSE(rates.without(gpu).devices_16_bit.contains("GB200"));
}

TEST_CASE("FP4 layers count from the FP4 peak, or four times that of 16 bits", "[rates]") {
  const double share = shipped_generation("blackwell").gemm_nvfp4.value();
  const ComputeRates gb300 = shipped_compute("GB300", "nemo", Precision::Nvfp4);
  REQUIRE(gb300.linear_rate == Approx(share * 15000e12 * shipped_rates().devices.at("GB300")));
  REQUIRE(gb300.peak == Approx(15000e12));
  // Sources do not agree on the FP4 peak of B300, so that the catalogue has none.
  const ComputeRates b300 = shipped_compute("B300", "nemo", Precision::Nvfp4);
  REQUIRE(b300.peak == Approx(9000e12));
  const ComputeRates b200 = shipped_compute("B200", "nemo", Precision::Nvfp4);
  REQUIRE(b200.linear_rate == Approx(shipped_generation("blackwell").gemm_nvfp4.value() * 9000e12));
  REQUIRE(b200.peak == Approx(9000e12));
  REQUIRE(b200.fp8_cast == 0.0);
  REQUIRE(b200.gemm_rate == shipped_compute("B200", "nemo").gemm_rate);
}

TEST_CASE("what has no rates is refused in one line", "[rates]") {
  require_no_rates("A100-SXM-80GB", "megatron-unfused", Precision::Fp8,
                   "precision fp8: expected GPUs that have it, found " +
                       shipped_catalogue().gpus().at("A100-SXM-80GB").title);
  require_no_rates("H100-SXM", "nemo", Precision::Nvfp4,
                   "precision nvfp4: expected GPUs that have it, found " +
                       shipped_catalogue().gpus().at("H100-SXM").title);
  require_no_rates("A100-SXM-80GB", "nemo", Precision::Bf16,
                   "software nemo: expected an attention kernel with rates on ampere (unfused, "
                   "flash-2, flash-triton), found cudnn");
  require_no_rates("B200", "pytorch-native", Precision::Bf16,
                   "software pytorch-native: expected a fusion with rates on blackwell (fused), "
                   "found eager");
}

TEST_CASE("a generation without rates gets the mean of those that have them", "[rates]") {
  const GpuRates rates = GpuRates::load(kConfigsFolder / "hardware" / "gpu-rates.yaml");
  const GpuModel& mi300x = shipped_catalogue().gpus().at("MI300X");
  REQUIRE_FALSE(rates.are_measured(mi300x));
  const double gemm =
      std::cbrt(rates.generations.at("ampere").gemm * rates.generations.at("hopper").gemm *
                rates.generations.at("blackwell").gemm);
  const ComputeRates compute = shipped_compute("MI300X", "nemo");
  REQUIRE(compute.gemm_rate == Approx(gemm * mi300x.peak.at("bf16").value.flops_per_second()));
  REQUIRE(compute.memory_rate == Approx(0.85 * 5300e9));
  // Ampere has no rates of cuDNN's attention.
  REQUIRE(rates.mean().attention.at("cudnn").forward ==
          Approx(std::sqrt(rates.generations.at("hopper").attention.at("cudnn").forward *
                           rates.generations.at("blackwell").attention.at("cudnn").forward)));
}

TEST_CASE("without its own rates a measured generation gets the mean of the others", "[rates]") {
  const GpuRates rates = GpuRates::load(kConfigsFolder / "hardware" / "gpu-rates.yaml");
  const GpuModel& gb300 = shipped_catalogue().gpus().at("GB300");
  const GpuRates others = rates.without(gb300);
  REQUIRE_FALSE(others.are_measured(gb300));
  REQUIRE_FALSE(others.devices.contains("GB300"));
  REQUIRE(others.mean().gemm == Approx(std::sqrt(rates.generations.at("ampere").gemm *
                                                 rates.generations.at("hopper").gemm)));
  REQUIRE_FALSE(others.mean().gemm_nvfp4.has_value());
}

TEST_CASE("32 bits count from their own peak, and need attention that works in them", "[rates]") {
  const ComputeRates half = shipped_compute("A100-SXM-80GB", "megatron-unfused");
  const ComputeRates tf32 = shipped_compute("A100-SXM-80GB", "megatron-unfused", Precision::Tf32);
  const ComputeRates fp32 = shipped_compute("A100-SXM-80GB", "megatron-unfused", Precision::Fp32);
  REQUIRE(tf32.peak == 156e12);
  REQUIRE(fp32.peak == 19.5e12);
  REQUIRE(tf32.linear_rate == Approx(half.linear_rate / 2.0));
  REQUIRE(tf32.gemm_rate == tf32.linear_rate);
  REQUIRE(half.element_bytes == 2);
  REQUIRE(fp32.element_bytes == 4);
  require_no_rates(
      "H100-SXM", "nemo", Precision::Tf32,
      "precision tf32: expected software with unfused attention, as fused kernels work "
      "in 16 bits, found nemo (cudnn)");
}

}  // namespace trainyard
