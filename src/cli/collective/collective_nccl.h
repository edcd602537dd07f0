// SPDX-License-Identifier: Apache-2.0
// The runtime nccl of `trainyard collective`: NCCL's choices, timed by its event model.
#pragma once

#include <spdlog/logger.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_request.h"
#include "parallelism/traffic/link_bytes.h"
#include "report/results/collective_report.h"
#include "sim/trace.h"
#include "sim/units.h"

namespace trainyard {

// One run in detail, for a page and a trace.
struct ShownRun {
  std::string what;  // "ring of 64M".
  SimTime time;
  std::vector<LinkTraffic> traffic = {};
  std::string note = {};                      // About the timeline; may be empty.
  std::optional<std::string> complaint = {};  // Why it never was complete.
};

struct CollectiveOutcome {
  CollectiveReport report;  // Without the runs that never were complete.
  bool complete = true;     // There are none of these.
  // Runs the first way at the largest size again and records it. What the outcome was made from
  // must outlive it.
  std::function<ShownRun(TraceRecorder&)> show = {};
};

// Notes on the release, the profile and the launch, and on what the engine is for, if there is one.
void add_runtime_notes(const CollectiveRequest& request, std::vector<std::string>& notes);
void add_engine_notes(const CollectiveRequest& request, const Cluster& cluster, bool several_nodes,
                      std::vector<std::string>& notes);

// `request` must have `nccl`; takes the notes of `inputs`. Throws ConfigError for clusters that
// NCCL or the model cannot take, and for what is forced where NCCL does not have it. Writes the
// files of packets that the request names; runs that never were complete are logged.
[[nodiscard]] CollectiveOutcome run_nccl(const CollectiveRequest& request, CollectiveInputs& inputs,
                                         spdlog::logger& log);

}  // namespace trainyard
