// SPDX-License-Identifier: Apache-2.0
// The units of a step (pass_units.h) as the lowering to an operation graph asks for them: what they
// do, and in which order a rank runs them.
#pragma once

#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/lowering/lowered_rank.h"
#include "parallelism/model/pipeline_schedule.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/rank_parameters.h"

namespace trainyard {

// One unit of one pass of a rank.
struct UnitOfPass {
  ModelUnit unit = {};
  PassKind kind = PassKind::Forward;
  int chunk = 0;
  int micro_batch = 0;
  bool is_first_forward = false;  // Whether it is the first forward of the chunk.
  bool is_last_gradient = false;  // Whether it is the last gradient of the weights of the chunk.
  bool ends_pass = false;         // The last unit of its pass.
};

// "forward", "input gradient", ...
[[nodiscard]] std::string_view pass_name(PassKind kind);
[[nodiscard]] bool makes_weight_gradients(PassKind kind);

class StepUnits {
 public:
  // The arguments must outlive this; mixes are added to the graph.
  StepUnits(const StepJob& job, OperationGraph& graph)
      : job_(job),
        plan_(job.plan),
        shape_(plan_.pipeline_shape()),
        operators_(job.rates),
        stages_(pipeline_stages(plan_, job.model)),
        places_(expert_places(job)),
        graph_(graph) {}

  // Returns the units in the order of a forward pass.
  [[nodiscard]] static std::vector<ModelUnit> units_of(const PipelineStage& stage);
  [[nodiscard]] const NamedUnit& unit(const ModelUnit& unit, PassKind kind);
  [[nodiscard]] const OperatorTimes& operators() const { return operators_; }
  [[nodiscard]] const PipelineStage& stage_of(int place, int chunk) const {
    return stages_[static_cast<std::size_t>(shape_.stage_of(place, chunk))];
  }
  // Returns what the stage has of the unit.
  [[nodiscard]] RankParameters gradients_of(const PipelineStage& stage,
                                            const ModelUnit& unit) const {
    return held_parameters(job_.model, plan_, stage, unit);
  }
  [[nodiscard]] RankParameters parameters_of_rank(int place) const {
    return place_parameters(job_.model, stages_, plan_, place);
  }
  [[nodiscard]] std::vector<UnitOfPass> units_of_rank(const std::vector<Pass>& passes,
                                                      int place) const;

 private:
  const StepJob& job_;
  const ParallelPlan& plan_;
  PipelineShape shape_;
  OperatorTimes operators_;
  std::vector<PipelineStage> stages_;
  ExpertDomains places_;
  OperationGraph& graph_;
  std::map<std::pair<ModelUnit, PassKind>, NamedUnit> cache_;
};

}  // namespace trainyard
