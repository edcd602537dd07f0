// SPDX-License-Identifier: Apache-2.0
// The time of a workload of another tool, as text, CSV and JSON. Such a file has no model, so there
// are no tokens, no MFU and no memory: no keys for them either.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "parallelism/trace_import/foreign_run.h"
#include "report/formats/table.h"

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
  const ForeignRun* run = nullptr;
  std::vector<std::string> notes;
};

// Times in picoseconds are exact, and the parts add up to the time.
[[nodiscard]] std::string render(const ForeignReport& report, Format format);

}  // namespace trainyard
