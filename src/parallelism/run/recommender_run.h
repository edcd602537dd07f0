// SPDX-License-Identifier: Apache-2.0
// A recommendation model's step on a cluster: rank r is the GPU r.
#pragma once

#include <optional>
#include <string>

#include "hw/parts/catalogue.h"
#include "parallelism/closed_forms/step_time.h"
#include "parallelism/graph/operation_graph.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/model/table_sharding.h"
#include "parallelism/run/step_run.h"
#include "parallelism/workload/recommender_workload.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct RecommenderRun : GraphedRun {
  StepTime step;  // The parts are those of the rank that waits least, StepTime::critical_rank.
  bool overlaps_input = false;
  bool overlaps_tables = false;
  bool overlaps_data = false;
  TableSharding sharding;
  MemoryUse memory;  // Memory of the rank that holds most.
  Bytes memory_size;
  std::string memory_verdict;
  double peak = 0.0;  // Dense, of one GPU in the precision of the workload; FLOP/s.
  OperationGraph graph = OperationGraph(0);
  std::optional<SimTime> usual_time;  // Without slow rank and jitter.

  [[nodiscard]] int gpus() const { return graph.ranks(); }
};

// `tables` as of StepMethod::Graph. Throws ConfigError, one line, for what does not fit and for
// what is not modelled.
[[nodiscard]] RecommenderRun run_recommender(const Cluster& cluster,
                                             const RecommenderWorkload& workload,
                                             const RecommenderSoftware& software,
                                             const StepTables& tables);

}  // namespace trainyard
