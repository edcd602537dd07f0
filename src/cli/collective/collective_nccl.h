// SPDX-License-Identifier: Apache-2.0
// The runtime nccl of `trainyard collective`: NCCL's choices, timed by its event model.
#pragma once

#include <spdlog/logger.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_request.h"
#include "report/results/collective_report.h"

namespace trainyard {

struct CollectiveOutcome {
  CollectiveReport report;                  // Without the runs that never were complete.
  bool complete = true;                     // There are none of these.
  std::optional<CollectiveJob> shown = {};  // The plain run that a page shows in detail.
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
