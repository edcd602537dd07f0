// SPDX-License-Identifier: Apache-2.0
// Lists what a rank does of one layer, or of one end of the model, in one pass: phases one after
// the other, each of computation and of calls beside it. The same operators and calls that
// step_time.h adds up.
//
// A layer is two blocks, attention and feed-forward; of what it computes the core of attention, and
// what of it is computed again, is in the first, the rest half in each, as operators are timed for
// the layer as a whole. Tensor and expert calls are before and after their block, or beside it
// where they are overlapped; tokens that go to each NVLink domain once do so on rails and inside
// the domains at once. Rings of context ranks run beside the core of attention. Calls that never
// show (GroupCall::is_hidden) are left out.
#pragma once

#include <cstdint>
#include <vector>

#include "parallelism/model/expert_routing.h"
#include "parallelism/model/pipeline_schedule.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/walk/unit_work.h"

namespace trainyard {

struct UnitPhase {
  StepParts compute;            // Nothing: none.
  std::vector<UnitCall> calls;  // Calls of one group, one after the other.
};

struct PassUnit {
  // Time before anything runs: the host waits for counts of tokens.
  SimTime sync;
  std::vector<UnitPhase> phases;
  // Calls beside all of them: tokens of another micro-batch.
  std::vector<UnitCall> beside;
  // It is not over before the host, which begins behind `sync`, has launched it.
  SimTime host;
};

// `places` as expert_places() has them.
[[nodiscard]] PassUnit pass_unit(const StepJob& job, const OperatorTimes& operators,
                                 const ExpertDomains& places, const ModelUnit& unit, PassKind kind);

// Returns a share of time as GraphCall::slowdown_ppm has it.
[[nodiscard]] std::int32_t slowdown_of(double share);

}  // namespace trainyard
