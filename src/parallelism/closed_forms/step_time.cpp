// SPDX-License-Identifier: Apache-2.0
#include "parallelism/closed_forms/step_time.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "parallelism/closed_forms/pipeline_timeline.h"
#include "parallelism/memory/offload.h"
#include "parallelism/memory/scheduled_shape.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/time_arithmetic.h"
#include "parallelism/walk/gradient_compression.h"
#include "parallelism/walk/step_traffic.h"
#include "parallelism/walk/unit_work.h"
#include "sim/check.h"
#include "sim/ids.h"

namespace trainyard {
namespace {

// Passes of a part of the model, with their traffic.
struct StepPasses {
  StepParts forward;
  StepParts input_gradient;
  StepParts weight_gradient;

  StepPasses& operator+=(const StepPasses& other) {
    forward += other.forward;
    input_gradient += other.input_gradient;
    weight_gradient += other.weight_gradient;
    return *this;
  }
  [[nodiscard]] SimTime backward() const {
    return input_gradient.total() + weight_gradient.total();
  }
};

class StepModel {
 public:
  StepModel(const StepJob& job, GroupTimes& times)
      : job_(job),
        plan_(job.plan),
        operators_(job.rates),
        times_(times),
        memo_(job.model, job.loads),
        places_(expert_places(job)) {}

  StepTime run();

 private:
  [[nodiscard]] const std::vector<int>& group(RankGroupKind kind);
  [[nodiscard]] SimTime time_of(const GroupCall& call);
  [[nodiscard]] SimTime time_of(const std::vector<GroupCall>& calls);
  void add_traffic(const std::vector<GroupCall>& calls, SimTime attention, StepParts& parts);
  [[nodiscard]] SimTime exchange(const std::vector<UnitCall>& calls);
  void add_exchanges(const ModelUnit& unit, StepPasses& passes);
  // Returns what shows of traffic beside so much computation.
  [[nodiscard]] SimTime exposed(SimTime traffic, SimTime window, bool overlaps) const;
  [[nodiscard]] SimTime exposed(SimTime traffic, SimTime window) const {
    return exposed(traffic, window, job_.overlap.data);
  }
  void add_sharded(const ModelUnit& unit, StepPasses& passes);
  void add_activation_copies(const ModelUnit& unit, StepPasses& passes) const;
  // Returns the time of what is computed again; `forward` is that of the forward pass.
  [[nodiscard]] SimTime run_again(const UnitWork& work, SimTime forward);
  [[nodiscard]] StepPasses passes_of(const ModelUnit& unit);
  [[nodiscard]] StepPasses stage(const PipelineStage& stage);
  [[nodiscard]] std::vector<StepPasses> passes_by_stage();
  [[nodiscard]] PipelineTimeline run_stages(std::vector<SimTime> transfers) const;
  [[nodiscard]] StepParts parts_of(const std::vector<TimedPass>& passes, int rank) const;
  // All stages of the model that a rank of the pipeline has.
  [[nodiscard]] StepPasses of_rank(int rank) const;
  // Micro-batches whose passes hide the traffic of gradients and weights.
  [[nodiscard]] double window() const;
  void add_data(StepParts& parts);
  // Kernels of gradient compression, on the slowest GPU of a rank of the pipeline.
  [[nodiscard]] CompressionTimes compression(std::size_t rank) const;
  // Gradients on their way to the host that show.
  [[nodiscard]] SimTime exposed_gradients(int rank);
  void add_optimizer(StepParts& parts);

  const StepJob& job_;
  const ParallelPlan& plan_;
  OperatorTimes operators_;
  GroupTimes& times_;
  std::vector<PipelineStage> stages_;
  std::vector<StepPasses> passes_;          // Passes by stage.
  std::vector<RankParameters> parameters_;  // Parameters by rank of the pipeline.
  LayerMemo<StepPasses> memo_;
  ExpertDomains places_;
  std::map<RankGroupKind, std::vector<int>> groups_;
};

const std::vector<int>& StepModel::group(RankGroupKind kind) {
  auto found = groups_.find(kind);
  if (found == groups_.end()) {
    found = groups_.emplace(kind, widest_group(plan_, kind, job_.server_of_rank)).first;
  }
  return found->second;
}

SimTime StepModel::time_of(const GroupCall& call) {
  const Bytes size = Bytes(call.elements) * call.element_bytes;
  return times_.collective(call.operation, group(call.group), size) * call.times;
}

SimTime StepModel::time_of(const std::vector<GroupCall>& calls) {
  SimTime sum;
  for (const GroupCall& call : calls) {
    sum += call.is_hidden ? SimTime() : time_of(call);
  }
  return sum;
}

void StepModel::add_traffic(const std::vector<GroupCall>& calls, SimTime attention,
                            StepParts& parts) {
  SimTime ring;
  for (const GroupCall& call : calls) {
    if (call.is_hidden || call.group == RankGroupKind::Expert) {
      continue;  // Experts: add_exchanges().
    }
    const SimTime time = time_of(call);
    if (call.group == RankGroupKind::Tensor) {
      parts[StepPart::Tensor] += job_.overlap.tensor && !call.is_waited_for
                                     ? scaled(time, job_.rates.overlapped_tensor)
                                     : time;
    } else if (call.group != RankGroupKind::Context) {
      parts[StepPart::Expert] += time;
    } else if (call.is_beside_attention) {
      ring += time;
    } else {
      parts[StepPart::Context] += time;
    }
  }
  // Keys and values of the next ranks travel while attention to those at hand runs.
  parts[StepPart::Context] += difference_or_zero(ring, attention);
}

// With one copy for each domain, the hops between domains, one NIC to its like, and those within
// the domain run at once, as the copies follow one another: the longer one counts.
SimTime StepModel::exchange(const std::vector<UnitCall>& calls) {
  SimTime longest;
  for (const auto& [call, path, part, slowdown] : calls) {
    const std::vector<int>& ranks = path == ExpertPath::Group    ? group(RankGroupKind::Expert)
                                    : path == ExpertPath::Domain ? places_.domain
                                                                 : places_.rail;
    longest = std::max(longest, times_.collective(call.operation, ranks,
                                                  Bytes(call.elements) * call.element_bytes));
  }
  return longest;
}

// Overlapped, both ways are beside the work of another micro-batch.
void StepModel::add_exchanges(const ModelUnit& unit, StepPasses& passes) {
  const Exchanges exchanges = exchanges_of(job_, unit, places_);
  if (exchanges.back.empty()) {
    return;
  }
  const SimTime back = exchange(exchanges.back);
  const SimTime there = exchanges.there == exchanges.back ? back : exchange(exchanges.there);
  const bool overlaps = job_.overlap.expert;
  passes.forward[StepPart::Expert] += exposed(there + back, passes.forward.total(), overlaps);
  passes.input_gradient[StepPart::Expert] += exposed(there + back, passes.backward(), overlaps);
}

SimTime StepModel::exposed(SimTime traffic, SimTime window, bool overlaps) const {
  if (!overlaps) {
    return traffic;
  }
  return difference_or_zero(traffic, window) +
         scaled(std::min(traffic, window), job_.rates.overlapped_data);
}

void StepModel::add_sharded(const ModelUnit& unit, StepPasses& passes) {
  if (plan_.zero_stage < 3) {
    return;
  }
  const PassCalls calls =
      sharded_calls(gathered_parameters(job_.model, plan_, unit), plan_, job_.software);
  const SimTime gather = time_of(calls.forward);
  const SimTime all = time_of(calls.backward);
  passes.forward[StepPart::Data] += exposed(gather, passes.forward.total());
  if (!plan_.schedule->splits_backward) {
    passes.input_gradient[StepPart::Data] += exposed(all, passes.backward());
    return;
  }
  // Schedules that split a backward: weights for its first half, gradients of its second one.
  passes.input_gradient[StepPart::Data] += exposed(gather, passes.input_gradient.total());
  passes.weight_gradient[StepPart::Data] += exposed(all - gather, passes.weight_gradient.total());
}

void StepModel::add_activation_copies(const ModelUnit& unit, StepPasses& passes) const {
  if (!plan_.offload.activations || unit.place != StepPlace::Layer) {
    return;
  }
  const Bytes size = layer_activations(job_.model, unit.layer, plan_, job_.software, job_.loads);
  passes.forward[StepPart::Offload] +=
      difference_or_zero(job_.host->copy_to_host(size), passes.forward.total());
  passes.input_gradient[StepPart::Offload] +=
      difference_or_zero(job_.host->copy_to_gpu(size), passes.backward());
}

// The exchanges of tokens are in a forward pass that is run again as a whole.
SimTime StepModel::run_again(const UnitWork& work, SimTime forward) {
  if (work.again.total() == work.compute.forward.total()) {
    return forward;
  }
  StepParts parts = work.again;
  add_traffic(work.calls.again, work.compute.forward[StepPart::Attention], parts);
  return parts.total();
}

StepPasses StepModel::passes_of(const ModelUnit& unit) {
  const UnitWork work = work_of(job_, operators_, unit);
  const PassTimes& compute = work.compute;
  StepPasses passes{.forward = compute.forward,
                    .input_gradient = compute.input_gradient,
                    .weight_gradient = compute.weight_gradient};
  add_traffic(work.calls.forward, compute.forward[StepPart::Attention], passes.forward);
  add_traffic(work.calls.backward, compute.input_gradient[StepPart::Attention],
              passes.input_gradient);
  add_exchanges(unit, passes);
  passes.input_gradient[StepPart::Recompute] = run_again(work, passes.forward.total());
  passes.forward[StepPart::Host] = std::max(
      work.forward_host.shown, difference_or_zero(work.forward_host.all, passes.forward.total()));
  passes.input_gradient[StepPart::Host] = std::max(
      work.backward_host.shown, difference_or_zero(work.backward_host.all, passes.backward()));
  add_sharded(unit, passes);
  add_activation_copies(unit, passes);
  return passes;
}

StepPasses StepModel::stage(const PipelineStage& stage) {
  StepPasses sum;
  for_each_unit(stage, [&](const ModelUnit& unit) {
    sum += memo_.of(unit, [&] { return passes_of(unit); });
  });
  return sum;
}

// In each pass the ranks of a stage wait for the slowest GPU among them.
std::vector<StepPasses> StepModel::passes_by_stage() {
  const auto kinds = kinds_by_stage(plan_, job_.kind_of_rank);
  std::vector<StepPasses> slowest(stages_.size());
  const auto take_longer = [](StepParts& longest, const StepParts& parts) {
    longest = parts.total() > longest.total() ? parts : longest;
  };
  const auto add_kind = [&](int kind, StepModel& model) {
    for (std::size_t index = 0; index < stages_.size(); ++index) {
      if (std::ranges::binary_search(kinds[index], kind)) {
        const StepPasses passes = model.stage(stages_[index]);
        take_longer(slowest[index].forward, passes.forward);
        take_longer(slowest[index].input_gradient, passes.input_gradient);
        take_longer(slowest[index].weight_gradient, passes.weight_gradient);
      }
    }
  };
  add_kind(0, *this);
  for (int kind = 1; kind < job_.kind_count(); ++kind) {
    const StepJob of_kind = on_kind(job_, kind);
    StepModel model(of_kind, times_);
    add_kind(kind, model);
  }
  return slowest;
}

PipelineTimeline StepModel::run_stages(std::vector<SimTime> transfers) const {
  PipelineTimes times{.stages = {},
                      .transfer_to_neighbour = std::move(transfers),
                      .transfers = job_.overlap.pipeline ? PipelineTransfers::Asynchronous
                                                         : PipelineTransfers::Synchronous};
  for (const StepPasses& passes : passes_) {
    times.stages.push_back({.forward = passes.forward.total(),
                            .input_gradient = passes.input_gradient.total(),
                            .weight_gradient = passes.weight_gradient.total()});
  }
  return run_pipeline(
      scheduled_shape(job_.model, plan_, memory_settings(job_.software), job_.loads), times);
}

StepParts StepModel::parts_of(const std::vector<TimedPass>& passes, int rank) const {
  const PipelineShape shape = plan_.pipeline_shape();
  StepParts parts;
  for (const TimedPass& timed : passes) {
    const StepPasses& of_stage =
        passes_[static_cast<std::size_t>(shape.stage_of(rank, timed.pass.chunk))];
    const PassKind kind = timed.pass.kind;
    if (kind == PassKind::Forward) {
      parts += of_stage.forward;
    }
    if (kind == PassKind::Backward || kind == PassKind::InputGradient) {
      parts += of_stage.input_gradient;
    }
    if (kind == PassKind::Backward || kind == PassKind::WeightGradient) {
      parts += of_stage.weight_gradient;
    }
  }
  return parts;
}

// A micro-batch goes through all chunks of a rank, or through that of its direction.
StepPasses StepModel::of_rank(int rank) const {
  const PipelineShape shape = plan_.pipeline_shape();
  const int chunks = shape.chunks / shape.directions();
  StepPasses sum;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    sum += passes_[static_cast<std::size_t>(shape.stage_of(rank, chunk))];
  }
  return sum;
}

// Reducing gradients hides behind the backward passes that are left when the first are complete,
// gathering weights behind the forward passes before the last are needed: without chunks the pass
// of one micro-batch, with v chunks min(p, m) (v - 1) / v of the passes of a micro-batch, as the
// chunks finish one after the other.
double StepModel::window() const {
  const double chunks = plan_.chunks;
  const auto in_flight =
      static_cast<double>(std::min<std::int64_t>(plan_.pipeline, plan_.micro_batches()));
  return chunks > 1.0 ? in_flight * (chunks - 1.0) / chunks : 1.0;
}

CompressionTimes StepModel::compression(std::size_t rank) const {
  CompressionTimes max;
  if (!plan_.compression) {
    return max;
  }
  const std::vector<std::vector<int>> kinds = kinds_by_place(plan_, job_.kind_of_rank);
  for (const int kind : kinds[rank]) {
    const CompressionTimes times = compression_times(parameters_[rank], plan_, job_.software,
                                                     OperatorTimes(on_kind(job_, kind).rates));
    max = times.before + times.behind > max.before + max.behind ? times : max;
  }
  return max;
}

void StepModel::add_data(StepParts& parts) {
  const double micro_batches = window();
  StepParts max;
  for (int rank = 0; rank < plan_.pipeline; ++rank) {
    const DataCalls calls = data_calls(parameters_[as_index(rank)], plan_, job_.software);
    const CompressionTimes kernels = compression(as_index(rank));
    const StepPasses passes = of_rank(rank);
    StepParts shown;
    shown[StepPart::Casts] = kernels.before + kernels.behind;
    shown[StepPart::Data] =
        exposed(time_of(calls.reduce), scaled(passes.backward(), micro_batches) + kernels.before) +
        (owns_matrices(plan_, job_.software)
             ? time_of(calls.gather)
             : exposed(time_of(calls.gather), scaled(passes.forward.total(), micro_batches)));
    max = shown.total() > max.total() ? shown : max;
  }
  if (const auto call = ends_call(job_.model, plan_, job_.software)) {
    max[StepPart::Data] += time_of(*call);
  }
  parts += max;
}

// Buckets go down one after the other once they are reduced: what is longer than that and the
// window shows, and the last bucket in any case.
SimTime StepModel::exposed_gradients(int rank) {
  const RankParameters& parameters = parameters_[as_index(rank)];
  const auto down = [&](std::int64_t owned) {
    return job_.host->copy_to_host(Bytes(owned) * gradient_bytes(plan_, job_.software));
  };
  const std::int64_t owned = owned_parameters(parameters, plan_);
  if (!job_.overlap.data) {
    return down(owned);
  }
  const std::int64_t many = reduces_units(plan_, job_.software)
                                ? std::ssize(job_.model.layers) / plan_.pipeline
                                : parameters.total() / bucket_parameters(plan_, job_.software);
  const std::int64_t buckets = std::max<std::int64_t>(1, many);
  const DataCalls calls = data_calls(parameters, plan_, job_.software);
  const SimTime hidden =
      std::max(scaled(of_rank(rank).backward(), window()), time_of(calls.reduce));
  return std::max(down(owned / buckets), difference_or_zero(down(owned), hidden));
}

void StepModel::add_optimizer(StepParts& parts) {
  if (!plan_.offload.optimizer) {
    const auto kinds = kinds_by_place(plan_, job_.kind_of_rank);
    for (std::size_t rank = 0; rank < parameters_.size(); ++rank) {
      const double bytes =
          updated_parameters(parameters_[rank], plan_) * job_.software.optimizer_bytes;
      for (const int kind : kinds[rank]) {
        const OperatorTimes operators(on_kind(job_, kind).rates);
        parts[StepPart::Optimizer] = std::max(parts[StepPart::Optimizer], operators.memory(bytes));
      }
    }
    return;
  }
  HostUpdate max;
  for (int rank = 0; rank < plan_.pipeline; ++rank) {
    HostUpdate update =
        host_update(host_tiles(owned_parameters(parameters_[as_index(rank)], plan_),
                               job_.software.optimizer_bytes, plan_.element_bytes, *job_.host));
    update.copies += exposed_gradients(rank);
    if (update.total() > max.total()) {
      max = update;
    }
  }
  parts[StepPart::Optimizer] = max.optimizer;
  parts[StepPart::Offload] += max.copies;
}

StepTime StepModel::run() {
  stages_ = pipeline_stages(plan_, job_.model);
  passes_ = passes_by_stage();
  for (int rank = 0; rank < plan_.pipeline; ++rank) {
    parameters_.push_back(place_parameters(job_.model, stages_, plan_, rank));
  }
  const PipelineTimeline without_transfers = run_stages({});
  const PipelineTimeline timeline = run_stages(stage_transfers(job_, times_));
  StepTime result;
  for (int rank = 1; rank < plan_.pipeline; ++rank) {
    if (without_transfers.busy(rank) > without_transfers.busy(result.critical_rank)) {
      result.critical_rank = rank;
    }
  }
  StepParts& parts = result.parts;
  const auto& passes = without_transfers.ranks[as_index(result.critical_rank)];
  parts = parts_of(passes, result.critical_rank);
  parts[StepPart::Bubble] = without_transfers.makespan() - parts.total();
  parts[StepPart::Pipeline] = timeline.makespan() - without_transfers.makespan();
  add_data(parts);
  add_optimizer(parts);
  complete(result, job_.software.fixed, job_.server_of_rank);
  const StepPasses of_busiest = of_rank(result.critical_rank);
  result.forward = of_busiest.forward.total();
  result.backward = of_busiest.backward();
  return result;
}

}  // namespace

void complete(StepTime& step, SimTime fixed, std::span<const int> server_of_rank, bool has_jitter) {
  step.parts[StepPart::Fixed] = fixed;
  if (!has_jitter) {
    step.parts[StepPart::Jitter] = jitter_of(step.parts.total(), server_of_rank);
  }
  step.time = step.parts.total();
}

std::vector<SimTime> stage_transfers(const StepJob& job, GroupTimes& times) {
  const ParallelPlan& plan = job.plan;
  const int count = plan.pipeline;
  std::vector<SimTime> result(2 * as_index(count));
  if (count == 1) {
    return result;
  }
  const std::vector<int> ranks = widest_group(plan, RankGroupKind::Pipeline, job.server_of_rank);
  const Bytes size = transfer_size(job.model, plan, job.software.scatter_gather);
  const int pairs = plan.schedule->layout.is_ring ? count : count - 1;
  for (int one = 0; one < pairs; ++one) {
    const int next = (one + 1) % count;
    for (const auto& [from, to] : {std::pair(one, next), std::pair(next, one)}) {
      result[neighbour_index(from, to, count)] =
          times.transfer(ranks[as_index(from)], ranks[as_index(to)], size);
    }
  }
  return result;
}

StepTime step_time(const StepJob& job, GroupTimes& times) {
  CHECK(job.server_of_rank.size() == as_index(job.plan.ranks()), "a server for each rank");
  check_modelled(job);
  return StepModel(job, times).run();
}

}  // namespace trainyard
