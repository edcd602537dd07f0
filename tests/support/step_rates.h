// SPDX-License-Identifier: Apache-2.0
// Rates and software for tests of the training step.
#pragma once

#include <string>

#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "support/built_clusters.h"

namespace trainyard {

inline const GpuRates& shipped_rates() {
  static const GpuRates instance = GpuRates::load(kConfigsFolder / "hardware/gpu-rates.yaml");
  return instance;
}

inline SoftwareProfile shipped_software(const std::string& name) {
  return SoftwareProfile::load(kConfigsFolder / "software" / (name + ".yaml"),
                               kConfigsFolder / "software");
}

inline ComputeRates shipped_compute(const std::string& gpu, const std::string& software,
                                    Precision precision = Precision::Bf16) {
  return compute_rates(shipped_catalogue().gpus().at(gpu), shipped_rates(),
                       shipped_software(software), precision);
}

// A million operations a second for each of four multiprocessors, 1 GFLOP/s for attention, 1 GB/s,
// and no other cost: times are what the formulas count.
inline ComputeRates unit_rates() {
  ComputeRates rates;
  rates.gemm_rate = 4e6;
  rates.linear_rate = 4e6;
  rates.peak = 4e6;
  rates.multiprocessors = 4;
  rates.attention_forward = 1e9;
  rates.attention_backward = 1e9;
  rates.memory_rate = 1e9;
  return rates;
}

}  // namespace trainyard
