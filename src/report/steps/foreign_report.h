// SPDX-License-Identifier: Apache-2.0
// The time of a workload of another tool, as a document. Such a file has no model, so there
// are no tokens, no MFU and no memory: no keys for them either.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallelism/graph/graph_jitter.h"
#include "parallelism/run/step_run.h"
#include "parallelism/trace_import/foreign_run.h"
#include "report/formats/document.h"

namespace trainyard {

struct ForeignReport {
  std::string cluster;
  std::string workload;
  std::string runtime;
  std::string fidelity;  // Empty: NCCL's event model alone.
  std::string traffic;   // "alone", "shared"
  double compute_scale = 1.0;
  int gpus = 0;
  const ForeignWorkload* source = nullptr;  // Must outlive this, as must `run`.
  const GraphedRun* run = nullptr;
  std::vector<std::string> notes;
  std::optional<SlowRank> slow_rank = {};
  ComputeJitter jitter = {};
  RunInputs inputs = {};
  std::vector<std::string> estimates = {};  // See Document::estimates.
};

// The parts are those of the rank that waits least, and add up to the time.
[[nodiscard]] Document document_of(const ForeignReport& report);

}  // namespace trainyard
