// SPDX-License-Identifier: Apache-2.0
// A recommendation model's step on a cluster: rank r is the GPU r.
#pragma once

#include "parallelism/model/table_sharding.h"
#include "parallelism/run/step_run.h"
#include "parallelism/workload/recommender_workload.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct RecommenderRun : LoweredRun {
  bool overlaps_input = false;
  bool overlaps_tables = false;
  bool overlaps_data = false;
  TableSharding sharding;
};

// `tables` as of StepMethod::Graph. Throws ConfigError, one line, for what does not fit and for
// what is not modelled.
[[nodiscard]] RecommenderRun run_recommender(const Cluster& cluster,
                                             const RecommenderWorkload& workload,
                                             const RecommenderSoftware& software,
                                             const StepTables& tables);

}  // namespace trainyard
