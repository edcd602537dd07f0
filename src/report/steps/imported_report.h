// SPDX-License-Identifier: Apache-2.0
// The time of a workload of another tool, as a document. Such a file has no model, so there
// are no tokens, no MFU and no memory: no keys for them either.
#pragma once

#include <string>
#include <vector>

#include "parallelism/run/tier_volumes.h"
#include "parallelism/trace_import/imported_run.h"
#include "report/formats/document.h"
#include "report/steps/step_entries.h"

namespace trainyard {

struct ImportedReport {
  StepSetup setup;
  double compute_scale = 1.0;
  const ImportedWorkload* source = nullptr;  // Must outlive this, as must `run`.
  const GraphedRun* run = nullptr;
  std::vector<TierVolume> volumes = {};  // Bytes on links, by tier; empty: not counted.
  std::vector<std::string> notes = {};
  RunInputs inputs = {};
  std::vector<std::string> estimates = {};  // See Document::estimates.
};

// The parts are those of the rank that waits least, and add up to the time.
[[nodiscard]] Document document_of(const ImportedReport& report);

}  // namespace trainyard
