// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph_compute.h"

#include "parallelism/work_progress.h"

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
  const std::int64_t ppm = options.compute_ppm.empty()
                               ? kPartsPerMillion
                               : options.compute_ppm[static_cast<std::size_t>(graph.rank_of(id))];
  StepParts parts;
  if (!operation.mix) {
    parts[operation.part] = scaled_time(operation.time, ppm);
    return parts;
  }
  parts = graph.mixes()[*operation.mix];
  for (SimTime& time : parts.times) {
    time = scaled_time(time, ppm);
  }
  return parts;
}

}  // namespace trainyard
