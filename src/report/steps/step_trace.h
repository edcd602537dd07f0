// SPDX-License-Identifier: Apache-2.0
// The time line of a training step for a viewer (trace.h): a group for each rank in the graph, in
// it a track for the passes and one for each stream, and arrows from sends to receives and along
// the members of a collective.
#pragma once

#include "parallelism/lowering/step_graph.h"
#include "parallelism/memory/step_memory.h"
#include "sim/trace.h"

namespace trainyard {

// The same without passes. Where operations of a stream run at once, it has a track for each.
void record_graph(const OperationGraph& graph, const GraphResult& result, TraceRecorder& recorder);

// With `memory`, also what each rank holds at most in each of its passes, from their starts on.
void record_step(const StepGraphRun& step, TraceRecorder& recorder,
                 const StepMemory* memory = nullptr);

}  // namespace trainyard
