// SPDX-License-Identifier: Apache-2.0
#include "parallelism/search/plan_bound.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/time_arithmetic.h"
#include "parallelism/walk/unit_work.h"

namespace trainyard {
namespace {

// Least times of a part of the model for one micro-batch.
struct MinTimes {
  SimTime forward;
  SimTime backward;

  MinTimes& operator+=(const MinTimes& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

class PlanBound {
 public:
  PlanBound(const StepJob& job, GroupTimes& times)
      : job_(job),
        plan_(job.plan),
        operators_(job.rates),
        times_(times),
        memo_(job.model, job.loads) {
    if (plan_.tensor > 1) {
      tensor_ranks_ = widest_group(plan_, RankGroupKind::Tensor, job.server_of_rank);
    }
  }

  [[nodiscard]] SimTime run() {
    const std::vector<PipelineStage> stages = pipeline_stages(plan_, job_.model);
    stages_.resize(stages.size());
    add_kind(0, stages, *this);
    for (int kind = 1; kind < job_.kind_count(); ++kind) {
      const StepJob of_kind = on_kind(job_, kind);
      PlanBound bound(of_kind, times_);
      add_kind(kind, stages, bound);
    }
    const SimTime sum = pipeline() + job_.software.fixed;
    return sum + jitter_of(sum, job_.server_of_rank);
  }

 private:
  [[nodiscard]] SimTime tensor_time(const std::vector<GroupCall>& calls) {
    SimTime sum;
    for (const GroupCall& call : calls) {
      if (call.group == RankGroupKind::Tensor && !call.is_hidden) {
        const Bytes size = Bytes(call.elements) * call.element_bytes;
        const SimTime time = times_.collective(call.operation, tensor_ranks_, size) * call.times;
        sum += job_.overlap.tensor && !call.is_waited_for
                   ? scaled(time, job_.rates.overlapped_tensor)
                   : time;
      }
    }
    return sum;
  }

  // The host launches for so long; where it waits for the GPU, launches come on top.
  [[nodiscard]] MinTimes min_of(const ModelUnit& unit) {
    const UnitWork work = work_of(job_, operators_, unit);
    const PassTimes& compute = work.compute;
    const SimTime forward = compute.forward.total() + tensor_time(work.calls.forward);
    const SimTime backward = compute.input_gradient.total() + compute.weight_gradient.total() +
                             tensor_time(work.calls.backward) + work.again.total() +
                             tensor_time(work.calls.again);
    return {.forward = std::max(work.forward_host.all, forward + work.forward_host.shown),
            .backward = std::max(work.backward_host.all, backward + work.backward_host.shown)};
  }

  [[nodiscard]] MinTimes stage(const PipelineStage& stage) {
    MinTimes sum;
    for_each_unit(
        stage, [&](const ModelUnit& unit) { sum += memo_.of(unit, [&] { return min_of(unit); }); });
    return sum;
  }

  // Stages wait for the slowest GPU among their ranks.
  void add_kind(int kind, const std::vector<PipelineStage>& stages, PlanBound& bound) {
    const auto kinds = kinds_by_stage(plan_, job_.kind_of_rank);
    for (std::size_t index = 0; index < stages.size(); ++index) {
      if (std::ranges::binary_search(kinds[index], kind)) {
        const MinTimes times = bound.stage(stages[index]);
        stages_[index].forward = std::max(stages_[index].forward, times.forward);
        stages_[index].backward = std::max(stages_[index].backward, times.backward);
      }
    }
  }

  [[nodiscard]] SimTime pipeline() const {
    const PipelineShape shape = plan_.pipeline_shape();
    const int passes = shape.micro_batches / shape.directions();
    SimTime longest;
    SimTime around;  // The rank's first and last passes wait for the stages before.
    for (int rank = 0; rank < shape.ranks; ++rank) {
      SimTime own;
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        const MinTimes& times = stages_[static_cast<std::size_t>(shape.stage_of(rank, chunk))];
        own += times.forward + times.backward;
      }
      longest = std::max(longest, around + own * passes);
      if (shape.directions() == 1) {
        const MinTimes& first = stages_[static_cast<std::size_t>(rank)];
        around += shape.schedule->splits_backward ? first.forward : first.forward + first.backward;
      }
    }
    return longest;
  }

  const StepJob& job_;
  const ParallelPlan& plan_;
  OperatorTimes operators_;
  GroupTimes& times_;
  std::vector<int> tensor_ranks_;
  std::vector<MinTimes> stages_;  // Times by stage of the model.
  LayerMemo<MinTimes> memo_;
};

}  // namespace

SimTime plan_bound(const StepJob& job, GroupTimes& times) {
  check_modelled(job);
  return PlanBound(job, times).run();
}

}  // namespace trainyard
