// SPDX-License-Identifier: Apache-2.0
// The prediction of a recommendation model's step, as text, CSV and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallelism/run/recommender_run.h"
#include "report/formats/run_inputs.h"
#include "report/formats/table.h"

namespace trainyard {

struct RecommenderReport {
  std::string cluster;
  std::string software;
  std::string runtime;
  std::string fidelity;  // Empty: NCCL's event model alone.
  bool shares_network = false;
  std::optional<SlowRank> slow_rank = {};
  ComputeJitter jitter = {};
  const RecommenderWorkload* workload = nullptr;  // Must outlive this, as must `run`.
  const RecommenderRun* run = nullptr;
  std::vector<std::string> notes;
  RunInputs inputs = {};  // In JSON.

  [[nodiscard]] bool fits() const { return run->memory.device() <= run->memory_size; }
  [[nodiscard]] double samples_per_second() const;
  [[nodiscard]] double flops_per_gpu() const;  // FLOP/s.
  [[nodiscard]] double mfu() const { return flops_per_gpu() / run->peak; }
};

// The text form has the parts that are not zero, CSV one line, JSON everything. Keys carry units;
// times in picoseconds are exact, and the parts add up to the step.
[[nodiscard]] std::string render(const RecommenderReport& report, Format format);

}  // namespace trainyard
