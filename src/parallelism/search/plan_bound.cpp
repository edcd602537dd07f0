// SPDX-License-Identifier: Apache-2.0
#include "parallelism/search/plan_bound.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/layer_time.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/time_arithmetic.h"
#include "parallelism/walk/host_launches.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {
namespace {

// Least times of a part of the model for one micro-batch.
struct LeastTimes {
  SimTime forward;
  SimTime backward;

  LeastTimes& operator+=(const LeastTimes& other) {
    forward += other.forward;
    backward += other.backward;
    return *this;
  }
};

class PlanBound {
 public:
  PlanBound(const StepJob& job, GroupTimes& times)
      : job_(job), plan_(job.plan), operators_(job.rates), times_(times) {
    if (plan_.tensor > 1) {
      tensor_ranks_ = widest_group(plan_, RankGroupKind::Tensor, job.server_of_rank);
    }
  }

  [[nodiscard]] SimTime run() {
    for (const PipelineStage& one : pipeline_stages(plan_, job_.model)) {
      stages_.push_back(stage(one));
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
        sum += job_.overlap.tensor ? scaled(time, job_.rates.overlapped_tensor) : time;
      }
    }
    return sum;
  }

  [[nodiscard]] LeastTimes part(const PassTimes& compute, const PassCalls& calls) {
    return {.forward = compute.forward.total() + tensor_time(calls.forward),
            .backward = compute.input_gradient.total() + compute.weight_gradient.total() +
                        tensor_time(calls.backward)};
  }

  [[nodiscard]] LeastTimes layer(int of_model) {
    const Model& model = job_.model;
    const ModelLayer& layer = model.layers[static_cast<std::size_t>(of_model)];
    const SoftwareProfile& software = job_.software;
    const bool has_experts = layer.experts.has_value();
    const double load =
        has_experts ? fullest_rank(job_.loads, of_model, *layer.experts, plan_.expert) : 1.0;
    const PassTimes compute = layer_times(model, layer, plan_, operators_, load);
    const PassCalls calls = layer_calls(model, layer, plan_, software);
    LeastTimes least = part(compute, calls);
    if (plan_.recompute == Recompute::Full) {
      least.backward += recomputed_fully(compute, software.full_recompute).total() +
                        tensor_time(recomputed_calls(calls, layer, software.full_recompute));
    } else if (plan_.recompute == Recompute::Selective) {
      least.backward += recomputed_selectively(compute, software.recomputes_products);
    }
    // The host launches for so long; where it waits for the GPU, launches come on top.
    const HostLaunches forward = forward_launches(job_.rates, software, layer, calls);
    const HostLaunches backward =
        backward_launches(job_.rates, software, layer, calls, plan_.recompute);
    least.forward = std::max(forward.all, least.forward + forward.shown);
    least.backward = std::max(backward.all, least.backward + backward.shown);
    return least;
  }

  // Worked out once for layers that follow one another and are alike.
  [[nodiscard]] const LeastTimes& same_layer(int of_model) {
    const auto at = [&](int place) -> const ModelLayer& {
      return job_.model.layers[static_cast<std::size_t>(place)];
    };
    const bool is_same =
        last_layer_ && job_.loads.layers.empty() && at(of_model) == at(*last_layer_);
    if (!is_same) {
      last_times_ = layer(of_model);
      last_layer_ = of_model;
    }
    return last_times_;
  }

  [[nodiscard]] LeastTimes stage(const PipelineStage& stage) {
    const Model& model = job_.model;
    LeastTimes sum;
    if (stage.has_embedding) {
      sum += part(embedding_times(model, plan_, operators_), embedding_calls(model, plan_));
    }
    for (int index = 0; index < stage.layers; ++index) {
      sum += same_layer(stage.first_layer + index);
    }
    if (stage.has_head) {
      sum += part(head_times(model, plan_, operators_), head_calls(model, plan_));
    }
    return sum;
  }

  [[nodiscard]] SimTime pipeline() const {
    const PipelineShape shape = plan_.pipeline_shape();
    const int passes = shape.micro_batches / shape.directions();
    SimTime longest;
    SimTime around;  // The rank's first and last passes wait for the stages before.
    for (int rank = 0; rank < shape.ranks; ++rank) {
      SimTime own;
      for (int chunk = 0; chunk < shape.chunks; ++chunk) {
        const LeastTimes& times = stages_[static_cast<std::size_t>(shape.stage_of(rank, chunk))];
        own += times.forward + times.backward;
      }
      longest = std::max(longest, around + own * passes);
      if (shape.directions() == 1) {
        const LeastTimes& first = stages_[static_cast<std::size_t>(rank)];
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
  std::vector<LeastTimes> stages_;  // Times by stage of the model.
  std::optional<int> last_layer_;
  LeastTimes last_times_;
};

}  // namespace

SimTime plan_bound(const StepJob& job, GroupTimes& times) {
  check_modelled(job);
  return PlanBound(job, times).run();
}

}  // namespace trainyard
