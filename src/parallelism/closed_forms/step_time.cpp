// SPDX-License-Identifier: Apache-2.0
#include "parallelism/closed_forms/step_time.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "parallelism/closed_forms/host_launches.h"
#include "parallelism/closed_forms/pipeline_timeline.h"
#include "parallelism/closed_forms/stage_transfers.h"
#include "parallelism/closed_forms/step_passes.h"
#include "parallelism/memory/offload.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/bucket_size.h"
#include "parallelism/operators/layer_time.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/time_arithmetic.h"
#include "parallelism/traffic/step_traffic.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

class StepModel {
 public:
  StepModel(const StepJob& job, GroupTimes& times)
      : job_(job), plan_(job.plan), operators_(job.rates), times_(times) {}

  StepTime run();

 private:
  [[nodiscard]] const std::vector<int>& group(RankGroupKind kind);
  [[nodiscard]] SimTime time_of(const GroupCall& call);
  [[nodiscard]] SimTime time_of(const std::vector<GroupCall>& calls);
  void add_traffic(const std::vector<GroupCall>& calls, SimTime attention, StepParts& parts);
  // Tokens to their experts and back, in one direction of a pass: `load` as in expert_routing.h.
  [[nodiscard]] SimTime exchange(const Experts& experts, int element_bytes, double load);
  void add_exchanges(const ModelLayer& layer, double load, StepPasses& passes);
  // Returns what shows of traffic beside so much computation.
  [[nodiscard]] SimTime exposed(SimTime traffic, SimTime window) const;
  void add_sharded(const RankParameters& parameters, StepPasses& passes);
  void add_activation_copies(int of_model, StepPasses& passes) const;
  [[nodiscard]] SimTime run_again(const ModelLayer& layer, const PassTimes& compute,
                                  const PassCalls& calls, SimTime forward);
  [[nodiscard]] StepPasses layer(int of_model);
  // The same, worked out once for layers that follow one another and are alike.
  [[nodiscard]] const StepPasses& same_layer(int of_model);
  [[nodiscard]] StepPasses end(const PassTimes& compute, const PassCalls& calls,
                               std::int64_t parameters);  // Parameters of this rank.
  [[nodiscard]] StepPasses stage(const PipelineStage& stage);
  [[nodiscard]] PipelineTimeline run_stages(std::vector<SimTime> transfers) const;
  [[nodiscard]] StepParts parts_of(const std::vector<TimedPass>& passes, int rank) const;
  // All stages of the model that a rank of the pipeline has.
  [[nodiscard]] StepPasses of_rank(int rank) const;
  [[nodiscard]] RankParameters parameters_of_rank(int rank) const;
  // Micro-batches whose passes hide the traffic of gradients and weights.
  [[nodiscard]] double window() const;
  [[nodiscard]] SimTime exposed_data();
  // Gradients on their way to the host that show.
  [[nodiscard]] SimTime exposed_gradients(int rank);
  void add_optimizer(StepParts& parts);
  [[nodiscard]] SimTime optimizer() const;

  const StepJob& job_;
  const ParallelPlan& plan_;
  OperatorTimes operators_;
  GroupTimes& times_;
  std::vector<PipelineStage> stages_;
  std::vector<StepPasses> passes_;  // Passes by stage.
  std::optional<int> last_layer_;
  StepPasses last_passes_;
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
      parts[StepPart::Tensor] +=
          job_.overlap.tensor ? scaled(time, job_.rates.overlapped_tensor) : time;
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
SimTime StepModel::exchange(const Experts& experts, int element_bytes, double load) {
  const std::vector<int>& ranks = group(RankGroupKind::Expert);
  const std::int64_t tokens = plan_.tokens() / plan_.tensor;
  const double elements =
      load * static_cast<double>(tokens) * static_cast<double>(job_.model.hidden);
  const auto size = [&](double copies) {
    return Bytes(std::llround(elements * copies)) * element_bytes;
  };
  if (!job_.software.dispatches_by_domain) {
    return times_.collective(Operation::AllToAll, ranks, size(static_cast<double>(experts.active)));
  }
  const std::span<const int> domains =
      job_.domain_of_rank.empty() ? job_.server_of_rank : job_.domain_of_rank;
  const ExpertDomains places = expert_domains(ranks, domains);
  SimTime time;
  if (places.domain.size() > 1) {
    time = times_.collective(Operation::AllToAll, places.domain,
                             size(expected_places(experts, plan_.expert)));
  }
  if (places.rail.size() > 1) {
    const auto count = static_cast<std::int64_t>(places.rail.size());
    time = std::max(time, times_.collective(Operation::AllToAll, places.rail,
                                            size(expected_places(experts, count))));
  }
  return time;
}

// Forward, tokens go in the precision of the dispatch and come back as activations are; backward,
// gradients do (arXiv 2412.19437, section 3.3.3). Overlapped, both are beside another one's work.
void StepModel::add_exchanges(const ModelLayer& layer, double load, StepPasses& passes) {
  if (!layer.experts || plan_.expert == 1) {
    return;
  }
  const bool in_fp8 = job_.software.dispatches_fp8 && job_.rates.fp8_cast > 0.0;
  const SimTime back = exchange(*layer.experts, plan_.element_bytes, load);
  const SimTime there = in_fp8 ? exchange(*layer.experts, 1, load) : back;
  const auto shown = [&](SimTime window) {
    const SimTime traffic = there + back;
    return job_.overlap.expert ? difference_or_zero(traffic, window) +
                                     scaled(std::min(traffic, window), job_.rates.overlapped_data)
                               : traffic;
  };
  passes.forward[StepPart::Expert] += shown(passes.forward.total());
  passes.input_gradient[StepPart::Expert] += shown(passes.backward());
}

SimTime StepModel::exposed(SimTime traffic, SimTime window) const {
  if (!job_.overlap.data) {
    return traffic;
  }
  return difference_or_zero(traffic, window) +
         scaled(std::min(traffic, window), job_.rates.overlapped_data);
}

void StepModel::add_sharded(const RankParameters& parameters, StepPasses& passes) {
  if (plan_.zero_stage < 3) {
    return;
  }
  const PassCalls calls = sharded_calls(parameters, plan_, job_.software);
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

void StepModel::add_activation_copies(int of_model, StepPasses& passes) const {
  if (!plan_.offload.activations) {
    return;
  }
  const Bytes size = layer_activations(job_.model, of_model, plan_, job_.software, job_.loads);
  passes.forward[StepPart::Offload] +=
      difference_or_zero(job_.host->copy_to_host(size), passes.forward.total());
  passes.input_gradient[StepPart::Offload] +=
      difference_or_zero(job_.host->copy_to_gpu(size), passes.backward());
}

// Returns, with full recomputation, the time of a layer that takes `forward` with all its traffic.
SimTime StepModel::run_again(const ModelLayer& layer, const PassTimes& compute,
                             const PassCalls& calls, SimTime forward) {
  const FullRecompute kind = job_.software.full_recompute;
  if (kind == FullRecompute::Layer || !layer.feed_forward) {
    return forward;
  }
  StepParts parts = recomputed_fully(compute, kind);
  add_traffic(recomputed_calls(calls, layer, kind), compute.forward[StepPart::Attention], parts);
  return parts.total();
}

StepPasses StepModel::layer(int of_model) {
  const ModelLayer& layer = job_.model.layers[static_cast<std::size_t>(of_model)];
  const double load =
      layer.experts ? fullest_rank(job_.loads, of_model, *layer.experts, plan_.expert) : 1.0;
  const PassTimes compute = layer_times(job_.model, layer, plan_, operators_, load);
  const PassCalls calls = layer_calls(job_.model, layer, plan_, job_.software);
  StepPasses passes{.forward = compute.forward,
                    .input_gradient = compute.input_gradient,
                    .weight_gradient = compute.weight_gradient};
  add_traffic(calls.forward, compute.forward[StepPart::Attention], passes.forward);
  add_traffic(calls.backward, compute.input_gradient[StepPart::Attention], passes.input_gradient);
  add_exchanges(layer, load, passes);
  if (plan_.recompute == Recompute::Full) {
    passes.input_gradient[StepPart::Recompute] =
        run_again(layer, compute, calls, passes.forward.total());
  } else if (plan_.recompute == Recompute::Selective) {
    passes.input_gradient[StepPart::Recompute] =
        recomputed_selectively(compute, job_.software.recomputes_products);
  }
  const HostLaunches forward = forward_launches(job_.rates, job_.software, layer, calls);
  const HostLaunches backward =
      backward_launches(job_.rates, job_.software, layer, calls, plan_.recompute);
  passes.forward[StepPart::Host] =
      std::max(forward.shown, difference_or_zero(forward.all, passes.forward.total()));
  passes.input_gradient[StepPart::Host] =
      std::max(backward.shown, difference_or_zero(backward.all, passes.backward()));
  add_sharded(rank_parameters(job_.model, layer, plan_), passes);
  add_activation_copies(of_model, passes);
  return passes;
}

const StepPasses& StepModel::same_layer(int of_model) {
  const auto at = [&](int place) -> const ModelLayer& {
    return job_.model.layers[static_cast<std::size_t>(place)];
  };
  const bool is_same = last_layer_ && job_.loads.layers.empty() && at(of_model) == at(*last_layer_);
  if (!is_same) {
    last_passes_ = layer(of_model);
    last_layer_ = of_model;
  }
  return last_passes_;
}

StepPasses StepModel::end(const PassTimes& compute, const PassCalls& calls,
                          std::int64_t parameters) {
  StepPasses passes{.forward = compute.forward,
                    .input_gradient = compute.input_gradient,
                    .weight_gradient = compute.weight_gradient};
  add_traffic(calls.forward, {}, passes.forward);
  add_traffic(calls.backward, {}, passes.input_gradient);
  add_sharded({.dense = parameters}, passes);
  return passes;
}

StepPasses StepModel::stage(const PipelineStage& stage) {
  const Model& model = job_.model;
  StepPasses sum;
  if (stage.has_embedding) {
    sum += end(embedding_times(model, plan_, operators_), embedding_calls(model, plan_),
               rank_embedding_parameters(model, plan_));
  }
  for (int index = 0; index < stage.layers; ++index) {
    const int of_model = stage.first_layer + index;
    sum += same_layer(of_model);
  }
  if (stage.has_head) {
    sum += end(head_times(model, plan_, operators_), head_calls(model, plan_),
               rank_head_parameters(model, plan_));
  }
  return sum;
}

PipelineTimeline StepModel::run_stages(std::vector<SimTime> transfers) const {
  PipelineTimes times{.stages = {},
                      .transfer = {},
                      .transfer_to_neighbour = std::move(transfers),
                      .transfers = job_.overlap.pipeline ? PipelineTransfers::Asynchronous
                                                         : PipelineTransfers::Synchronous};
  for (const StepPasses& passes : passes_) {
    times.stages.push_back({.forward = passes.forward.total(),
                            .input_gradient = passes.input_gradient.total(),
                            .weight_gradient = passes.weight_gradient.total()});
  }
  return run_pipeline(plan_.pipeline_shape(), times);
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

RankParameters StepModel::parameters_of_rank(int rank) const {
  const PipelineShape shape = plan_.pipeline_shape();
  RankParameters sum;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const auto stage = static_cast<std::size_t>(shape.stage_of(rank, chunk));
    sum += stage_parameters(job_.model, stages_[stage], plan_);
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

SimTime StepModel::exposed_data() {
  const double micro_batches = window();
  SimTime most;
  for (int rank = 0; rank < plan_.pipeline; ++rank) {
    const DataCalls calls = data_calls(parameters_of_rank(rank), plan_, job_.software);
    const StepPasses passes = of_rank(rank);
    const SimTime shown =
        exposed(time_of(calls.reduce), scaled(passes.backward(), micro_batches)) +
        (owns_matrices(plan_, job_.software)
             ? time_of(calls.gather)
             : exposed(time_of(calls.gather), scaled(passes.forward.total(), micro_batches)));
    most = std::max(most, shown);
  }
  if (job_.model.has_tied_embeddings && plan_.pipeline > 1) {
    most += time_of({.group = RankGroupKind::Ends,
                     .operation = Operation::AllReduce,
                     .elements = rank_logit_parameters(job_.model, plan_),
                     .element_bytes = gradient_bytes(plan_, job_.software)});
  }
  return most;
}

SimTime StepModel::optimizer() const {
  double most = 0.0;
  for (int rank = 0; rank < plan_.pipeline; ++rank) {
    const RankParameters parameters = parameters_of_rank(rank);
    const bool shards = plan_.zero_stage > 0;
    const double owned =
        static_cast<double>(parameters.dense) / (shards ? plan_.shards() : 1) +
        static_cast<double>(parameters.expert) / (shards ? plan_.expert_gradient_ranks() : 1);
    most = std::max(most, owned);
  }
  return operators_.memory(most * job_.software.optimizer_bytes);
}

// Buckets go down one after the other once they are reduced: what is longer than that and the
// window shows, and the last bucket in any case.
SimTime StepModel::exposed_gradients(int rank) {
  const RankParameters parameters = parameters_of_rank(rank);
  const auto down = [&](std::int64_t owned) {
    return job_.host->copy_to_host(Bytes(owned) * gradient_bytes(plan_, job_.software));
  };
  const std::int64_t owned = owned_parameters(parameters, plan_);
  if (!job_.overlap.data) {
    return down(owned);
  }
  const std::int64_t bucket = bucket_parameters(plan_);
  const std::int64_t buckets = std::max<std::int64_t>(1, parameters.total() / bucket);
  const DataCalls calls = data_calls(parameters, plan_, job_.software);
  const SimTime hidden =
      std::max(scaled(of_rank(rank).backward(), window()), time_of(calls.reduce));
  return std::max(down(owned / buckets), difference_or_zero(down(owned), hidden));
}

void StepModel::add_optimizer(StepParts& parts) {
  if (!plan_.offload.optimizer) {
    parts[StepPart::Optimizer] = optimizer();
    return;
  }
  HostUpdate most;
  for (int rank = 0; rank < plan_.pipeline; ++rank) {
    HostUpdate update =
        host_update(host_tiles(owned_parameters(parameters_of_rank(rank), plan_),
                               job_.software.optimizer_bytes, plan_.element_bytes, *job_.host));
    update.copies += exposed_gradients(rank);
    if (update.total() > most.total()) {
      most = update;
    }
  }
  parts[StepPart::Optimizer] = most.optimizer;
  parts[StepPart::Offload] += most.copies;
}

StepTime StepModel::run() {
  stages_ = pipeline_stages(plan_, job_.model);
  for (const PipelineStage& one : stages_) {
    passes_.push_back(stage(one));
  }
  const PipelineTimeline without_transfers = run_stages({});
  const PipelineTimeline timeline = run_stages(stage_transfers(job_, times_));
  StepTime result;
  for (int rank = 1; rank < plan_.pipeline; ++rank) {
    if (without_transfers.busy(rank) > without_transfers.busy(result.busiest_rank)) {
      result.busiest_rank = rank;
    }
  }
  StepParts& parts = result.parts;
  const auto& passes = without_transfers.ranks[static_cast<std::size_t>(result.busiest_rank)];
  parts = parts_of(passes, result.busiest_rank);
  parts[StepPart::Bubble] = without_transfers.makespan() - parts.total();
  parts[StepPart::Pipeline] = timeline.makespan() - without_transfers.makespan();
  parts[StepPart::Data] += exposed_data();
  add_optimizer(parts);
  parts[StepPart::Fixed] = job_.software.fixed;
  parts[StepPart::Jitter] = jitter_of(parts.total(), job_.server_of_rank);
  result.time = parts.total();
  const StepPasses of_busiest = of_rank(result.busiest_rank);
  result.forward = of_busiest.forward.total();
  result.backward = of_busiest.backward();
  return result;
}

}  // namespace

StepTime step_time(const StepJob& job, GroupTimes& times) {
  CHECK(job.server_of_rank.size() == static_cast<std::size_t>(job.plan.ranks()),
        "a server for each rank");
  check_modelled(job);
  return StepModel(job, times).run();
}

}  // namespace trainyard
