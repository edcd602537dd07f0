// SPDX-License-Identifier: Apache-2.0
// The parts that the reports of all runtimes have in common.
#pragma once

#include <string>
#include <vector>

#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_request.h"
#include "report/results/collective_report.h"

namespace trainyard {

// Without rows and notes, runtime and fidelity.
[[nodiscard]] CollectiveReport empty_report(const CollectiveRequest& request,
                                            const CollectiveInputs& inputs);

// Size, time, bandwidths and what was measured.
[[nodiscard]] CollectiveRow timed_row(Operation operation, Bytes size, SimTime time,
                                      const CollectiveInputs& inputs);

// Names the values of the cluster that nobody has measured or published, if there are any.
void add_estimate_note(const Cluster& cluster, std::vector<std::string>& notes);

}  // namespace trainyard
