// SPDX-License-Identifier: Apache-2.0
// Times what a rank computes in a step of a recommendation model, and counts what it sends:
// operators from the shapes of the model and what the rank holds of the tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hw/parts/catalogue.h"
#include "parallelism/model/table_sharding.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/recommender_workload.h"
#include "sim/units.h"

namespace trainyard {

// The inputs that a step is lowered from; what it refers to must outlive it.
struct RecommenderJob {
  const RecommenderWorkload& workload;
  const RecommenderSoftware& software;
  ComputeRates rates;  // recommender_rates()
  const TableSharding& sharding;
  std::span<const int> server_of_rank;

  [[nodiscard]] int ranks() const { return static_cast<int>(server_of_rank.size()); }
  // Samples of a rank, for which it runs the MLPs.
  [[nodiscard]] std::int64_t samples() const { return workload.batch / ranks(); }
  [[nodiscard]] bool overlaps_input() const {
    return workload.overlap_input.value_or(software.overlap_input);
  }
  [[nodiscard]] bool overlaps_tables() const {
    return workload.overlap_tables.value_or(software.overlap_tables);
  }
  [[nodiscard]] bool overlaps_data() const {
    return workload.overlap_data.value_or(software.overlap_data);
  }
};

// Throws ConfigError with one line where the GPU or the precision have no rates.
[[nodiscard]] ComputeRates recommender_rates(const GpuModel& gpu, const GpuRates& rates,
                                             const RecommenderSoftware& software,
                                             Precision precision);

// The parts of one rank, in the order in which they run. In StepParts look-ups are Attention,
// updates of tables Casts and the interaction Head: recommender_part_name().
struct RecommenderTimes {
  StepParts lookups;
  StepParts bottom_forward;
  StepParts interaction_forward;
  StepParts top_forward;
  StepParts top_backward;
  StepParts interaction_backward;
  StepParts bottom_backward;
  StepParts updates;    // Gradients are summed up by row and applied.
  StepParts optimizer;  // Time of the MLPs and of replicated tables.
};

[[nodiscard]] RecommenderTimes recommender_times(const RecommenderJob& job, std::size_t rank);

// Sizes of calls of all ranks, as nccl-tests count them; zero: there is no such call.
struct RecommenderTraffic {
  Bytes indices;           // AllToAll: to the tables.
  Bytes vectors;           // AllToAll: sums of dealt tables there, their gradients back.
  Bytes split_vectors;     // ReduceScatter of sums of split tables, AllGather of their gradients.
  Bytes top_gradients;     // AllReduce: of the top MLP and cross layers,
  Bytes bottom_gradients;  // of the bottom MLP and of replicated tables.
};

// An uneven AllToAll takes as long as one in which every rank sends what the busiest one does: its
// way out of the GPU is the narrowest, as every rank receives equally much.
[[nodiscard]] RecommenderTraffic recommender_traffic(const RecommenderJob& job);

// Rows of a table that `lookups` even draws name: rows (1 - (1 - 1 / rows)^lookups). Real indices
// repeat more often.
[[nodiscard]] double distinct_rows(std::int64_t rows, double lookups);

// Bytes that an optimizer holds for each parameter, and for each row.
[[nodiscard]] int state_bytes(RecommenderOptimizer optimizer);
[[nodiscard]] int row_state_bytes(RecommenderOptimizer optimizer);

}  // namespace trainyard
