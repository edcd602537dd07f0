// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_compute.h"

#include "parallelism/graph/work_progress.h"

namespace trainyard {
namespace {

SimTime scaled_time(SimTime time, std::int64_t ppm) {
  if (ppm == kPartsPerMillion) {
    return time;
  }
  const __int128 product = static_cast<__int128>(time.picoseconds()) * ppm;
  return SimTime(static_cast<std::int64_t>((product + kPartsPerMillion / 2) / kPartsPerMillion));
}

}  // namespace

StepParts compute_parts(const OperationGraph& graph, OperationId id,
                        const GraphRunOptions& options) {
  const GraphOperation& operation = graph.operation(id);
  StepParts parts;
  if (operation.mix) {
    parts = graph.mixes()[*operation.mix];
  } else {
    parts[operation.part] = operation.time;
  }
  for (SimTime& time : parts.times) {
    if (!options.compute_ppm.empty()) {
      time = scaled_time(time, options.compute_ppm[as_index(graph.rank_of(id))]);
    }
    if (!options.operation_ppm.empty()) {
      time = scaled_time(time, options.operation_ppm[id.value()]);
    }
  }
  return parts;
}

}  // namespace trainyard
