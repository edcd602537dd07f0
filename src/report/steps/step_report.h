// SPDX-License-Identifier: Apache-2.0
// The prediction of a training step as a document.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallelism/closed_forms/step_time.h"
#include "parallelism/memory/host_memory.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/operators/model_flops.h"
#include "parallelism/run/step_run.h"
#include "report/formats/document.h"
#include "report/steps/cost_report.h"

namespace trainyard {

struct StepReport {
  std::string cluster;
  std::string workload;
  std::string model;
  std::string software;
  std::string precision;
  std::string runtime;
  std::string fidelity;
  ParallelPlan plan;
  StepTime step;
  // The FLOPs that the model needs for one token, by the convention that MFU is printed with.
  double flops_of_token = 0.0;
  FlopsConvention convention = FlopsConvention::Model;
  double recomputed_of_token = 0.0;               // The part of flops_of_token that is done again.
  double peak = 0.0;                              // Dense, of one GPU at that precision; FLOP/s.
  MemoryUse memory;                               // At its peak, on the rank that holds most.
  Bytes memory_size;                              // The memory of a GPU.
  std::optional<HostMemoryUse> host_memory = {};  // Only of a plan with offload.
  std::vector<std::string> notes;
  RunInputs inputs = {};
  std::vector<std::string> estimates = {};  // See Document::estimates.
  std::optional<PricedStep> priced = {};
  // How it was predicted, beside `plan`; in JSON.
  StepMethod method = StepMethod::ClosedForms;
  bool shares_network = false;
  std::optional<SlowRank> slow_rank = {};
  ComputeJitter jitter = {};
  Overlap overlap = {};
  std::optional<ExpertLoads> routing = {};  // Only for a model with experts.
  bool has_images = false;                  // The model's samples are images.

  [[nodiscard]] bool fits() const;  // On GPUs and hosts.
  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double samples_per_second() const;
  [[nodiscard]] double flops_per_gpu() const;  // FLOP/s.
  [[nodiscard]] double mfu() const { return flops_per_gpu() / peak; }
  // With what is computed again.
  [[nodiscard]] double hfu() const { return mfu() * (1.0 + recomputed_of_token / flops_of_token); }
};

// The parts add up to the step. MFU is shown by its convention; the page has figures of its own
// shape, short enough for cards.
[[nodiscard]] Document document_of(const StepReport& report);

}  // namespace trainyard
