// SPDX-License-Identifier: Apache-2.0
// Divides the time of a measured step, from a trace of its GPU: computation, traffic that shows,
// and nothing at all. Parts add up to the time exactly.
#pragma once

#include <string>
#include <vector>

#include "parallelism/trace_import/kineto_events.h"
#include "sim/units.h"

namespace trainyard {

struct TraceBreakdown {
  SimTime time;         // From the first start to the last end, of one step.
  SimTime computation;  // At least one kernel that is no collective runs.
  // Only collectives or messages run; of several at once it is the first by name.
  struct Traffic {
    std::string operation;
    SimTime time;
  };
  std::vector<Traffic> traffic;  // Traffic by name.
  SimTime idle;                  // No kernel runs.

  [[nodiscard]] SimTime shown_traffic() const;
};

// Returns the breakdown of a trace over `steps` equal steps, 1 or more: what their number does not
// divide is idle. Throws ConfigError where the trace has no operation of a GPU.
[[nodiscard]] TraceBreakdown breakdown_of(const KinetoTrace& trace, int steps = 1);

}  // namespace trainyard
