// SPDX-License-Identifier: Apache-2.0
// The constants of the training step that are fitted, as numbers: which there are, what is assumed
// of each before any step time is looked at (configs/hardware/gpu-rates-priors.yaml), and the rates
// with other values of them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {

struct StepConstant {
  // "hopper.attention.cudnn.forward", "devices.GB300", "software.host_expert_sync": a key of
  // gpu-rates.yaml; times in seconds.
  std::string name;
  double in_file = 0.0;  // Value in gpu-rates.yaml; for software.*, `start`.
  double start = 0.0;    // Assumed value.
  double spread = 1.0;   // A factor above one: one standard deviation of ln(value).
};

// The values that a prediction is made with.
struct StepValues {
  GpuRates rates;
  // Replaces what each profile of software says that is not zero.
  std::optional<double> host_expert_sync = {};
  // No rates of the generation and the part that are predicted: as if none of their kernels had
  // been measured.
  bool leaves_out_own = false;

  // `software` with what is said above.
  [[nodiscard]] SoftwareProfile adjusted(SoftwareProfile software) const;
};

class StepPriors {
 public:
  // Throws ConfigError, also for a constant that the rates do not have.
  static StepPriors load(const std::filesystem::path& file, const GpuRates& rates);
  static StepPriors read(ConfigDocument& document, const GpuRates& rates);

  // Rows of such a file.
  void fields(Fields& fields);

  [[nodiscard]] const std::vector<StepConstant>& all() const { return constants_; }
  // The rates with these values of the constants by their numbers in all().
  [[nodiscard]] StepValues values(std::span<const std::size_t> which,
                                  std::span<const double> values) const;

 private:
  GpuRates rates_;
  std::vector<StepConstant> constants_;
};

}  // namespace trainyard
