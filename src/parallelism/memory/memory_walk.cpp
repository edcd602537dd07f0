// SPDX-License-Identifier: Apache-2.0
#include "parallelism/memory/memory_walk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "nccl/types/environment.h"
#include "parallelism/memory/scheduled_shape.h"
#include "parallelism/model/adapters.h"
#include "parallelism/model/model_ends.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/walk/gradient_compression.h"
#include "parallelism/walk/step_traffic.h"
#include "parallelism/walk/unit_work.h"
#include "sim/check.h"

namespace trainyard {
namespace {

struct Unit {
  ModelUnit of = {};
  SavedBytes kept = {};
  Bytes logits = {};        // Part of `kept` that the loss holds.
  Bytes working = {};       // In its backward, with what is recomputed.
  Bytes loss_working = {};  // The same of the loss.
  RankParameters parameters = {};
  std::int64_t largest_matrix = 0;  // Elements of the largest one with a gradient.
  Bytes dequantised = {};           // A matrix of 4 bits, as a product takes it.
};

using Chunk = std::vector<Unit>;  // In the order of a forward.

class RankWalk {
 public:
  RankWalk(const Model& model, const ParallelPlan& plan, const MemorySettings& settings,
           const ExpertLoads& loads, int rank, RepeatedPasses repeated)
      : model_(model),
        plan_(plan),
        settings_(settings),
        loads_(loads),
        layers_(model, loads),
        repeated_(repeated) {
    memory_.rank = rank;
  }

  RankMemory run() {
    const PipelineShape shape = scheduled_shape(model_, plan_, settings_, loads_);
    const std::vector<PipelineStage> stages = pipeline_stages(plan_, model_);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      has_embedding_ = has_embedding_ || shape.stage_of(memory_.rank, chunk) == 0;
    }
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      Chunk& added = chunks_.emplace_back();
      for_each_unit(stages[static_cast<std::size_t>(shape.stage_of(memory_.rank, chunk))],
                    [&](const ModelUnit& unit) { added.push_back(unit_of(unit)); });
    }
    add_residents();
    memory_.passes = passes_of(shape, memory_.rank);
    memory_.moment_of_pass.reserve(memory_.passes.size() + 1);
    for (const Pass& pass : memory_.passes) {
      step_or_recall(pass);
    }
    CHECK(held_.kept.count() == 0, "a pass keeps memory behind the step");
    CHECK(held_.logits.count() == 0, "a loss keeps memory behind the step");
    CHECK(held_.away.count() == 0, "activations stay on the host behind the step");
    held_.leaving = {};
    begin({});
    consider({.place = StepPlace::Optimizer}, {});
    memory_.passes.emplace_back();
    const auto highest = std::ranges::max_element(
        memory_.moments, {}, [](const MemoryMoment& moment) { return moment.use.device(); });
    memory_.peak = static_cast<std::size_t>(highest - memory_.moments.begin());
    return std::move(memory_);
  }

 private:
  // The memory that passes leave to the next ones.
  struct Held {
    Bytes kept = {};
    Bytes logits = {};
    Bytes away = {};     // Activations in host memory.
    Bytes leaving = {};  // Bytes of the last forward, still on the way there.

    [[nodiscard]] auto operator<=>(const Held&) const = default;
  };
  struct KnownPass {
    std::uint32_t moment = 0;
    Held then = {};
  };

  // The memory of the moment, beside what is always there and what is kept.
  struct Extra {
    Bytes gathered = {};
    Bytes working = {};
    Bytes loss = {};
    Bytes passing = {};  // Activations on their way to the host or back.
  };

  [[nodiscard]] bool has_shards() const {
    return plan_.shards() > 1 || (settings_.wraps_one_shard && plan_.tensor > 1);
  }
  [[nodiscard]] bool shards_gradients() const { return plan_.zero_stage >= 2 && has_shards(); }
  [[nodiscard]] bool accumulates_unsharded() const {
    return shards_gradients() && settings_.unsharded_gradient > 0 && plan_.micro_batches() > 1;
  }
  [[nodiscard]] bool shards_weights() const { return plan_.zero_stage >= 3 && has_shards(); }

  [[nodiscard]] Unit unit_of(const ModelUnit& of) {
    Unit unit = of.place == StepPlace::Layer       ? layers_.of(of, [&] { return layer_unit(of); })
                : of.place == StepPlace::Embedding ? embedding_unit()
                                                   : head_unit();
    unit.of = of;
    return unit;
  }

  [[nodiscard]] Unit embedding_unit() const {
    Unit unit;
    unit.kept = kept_bytes(model_, plan_, settings_, loads_, {.place = StepPlace::Embedding});
    ParallelPlan plan = plan_;
    plan.tensor = settings_.has_split_embedding ? plan.tensor : 1;
    unit.parameters = gathered_parameters(model_, plan, {.place = StepPlace::Embedding});
    const std::int64_t labels = model_.modulation ? model_.modulation->labels * model_.hidden : 0;
    unit.largest_matrix = model_.adapters ? 0
                                          : std::max({rank_logit_parameters(model_, plan), labels,
                                                      largest_of(input_linears(model_))});
    return unit;
  }

  [[nodiscard]] Unit layer_unit(const ModelUnit& of) {
    const ModelLayer& layer = model_.layers[static_cast<std::size_t>(of.layer)];
    const ActivationOptions options =
        activation_options(model_, of.layer, plan_, settings_, loads_);
    Unit unit;
    const std::vector<SavedTensor> saved = saved_tensors(model_, layer, plan_, options);
    unit.kept = kept_bytes(model_, plan_, settings_, loads_, of);
    // Under full recomputation the layer's input is the first tensor that it saves.
    unit.working = saved_bytes(saved, plan_.tokens()).forward - unit.kept.forward +
                   backward_working_bytes(model_, layer, plan_, options);
    unit.parameters = gathered_parameters(model_, plan_, of);
    for (const WeightMatrix& matrix : rank_matrices(model_, layer, plan_)) {
      if (model_.adapters) {
        const Bytes size = Bytes(matrix.elements()) * plan_.element_bytes;
        unit.dequantised = has_quantised_base(model_) ? std::max(unit.dequantised, size) : Bytes();
      } else {
        add_matrix(matrix.inputs, matrix.outputs, unit);
      }
    }
    for (const AdaptedMatrix& matrix : adapted_matrices(model_, layer, plan_.tensor)) {
      add_matrix(matrix.inputs, model_.adapters->rank, unit);
      add_matrix(model_.adapters->rank, matrix.outputs, unit);
    }
    return unit;
  }

  // Adds a matrix with a gradient.
  void add_matrix(std::int64_t inputs, std::int64_t outputs, Unit& unit) {
    unit.largest_matrix = std::max(unit.largest_matrix, inputs * outputs);
    const std::pair<std::int64_t, std::int64_t> shape{inputs, outputs};
    if (std::find(shapes_.begin(), shapes_.end(), shape) == shapes_.end()) {
      shapes_.push_back(shape);
    }
  }

  [[nodiscard]] Unit head_unit() const {
    Unit unit;
    const std::vector<SavedTensor> tensors = head_tensors(model_, plan_, settings_.activations);
    unit.kept = saved_bytes(tensors, plan_.tokens());
    unit.logits = tensors.back().bytes(plan_.tokens());
    unit.loss_working = loss_working_bytes(model_, plan_, settings_.activations);
    unit.largest_matrix = model_.adapters ? 0
                                          : std::max(rank_logit_parameters(model_, plan_),
                                                     largest_of(output_linears(model_)));
    unit.parameters = held_parameters(model_, plan_, {.has_embedding = has_embedding_},
                                      {.place = StepPlace::Head});
    return unit;
  }

  // Returns whether ZeRO-Offload runs one micro-batch: nothing is accumulated on the GPU.
  [[nodiscard]] bool streams_gradients() const {
    return plan_.offload.optimizer && plan_.micro_batches() == 1;
  }

  // Moves what the optimizer needs from the GPU to the host; layers keep weights as they use them.
  // `owned` and `held`: parameters that the rank updates, and those that it keeps.
  void move_optimizer(std::int64_t owned, std::int64_t held) {
    const StateFormat& states = settings_.states;
    memory_.host.optimizer = resident_[MemoryClass::OptimizerStates];
    memory_.host.gradients = Bytes(owned) * states.gradient;
    resident_[MemoryClass::OptimizerStates] = {};
    if (states.weight > states.compute) {
      memory_.host.optimizer += Bytes(owned) * states.weight;
      resident_[MemoryClass::Weights] = Bytes(held) * states.compute;
    }
    if (streams_gradients()) {
      resident_[MemoryClass::Gradients] = {};
    }
  }

  void add_residents() {
    RankParameters total;
    for (const Chunk& chunk : chunks_) {
      for (const Unit& unit : chunk) {
        total += unit.parameters;
      }
    }
    const StateFormat& states = settings_.states;
    const std::int64_t dense_shards = plan_.shards();
    const std::int64_t expert_shards =
        plan_.shard_group == 0 ? plan_.expert_gradient_ranks() : plan_.shard_group;
    const auto share = [&](int from_stage) {
      return plan_.zero_stage < from_stage
                 ? total
                 : RankParameters{.dense = ceil_divide(total.dense, dense_shards),
                                  .expert = ceil_divide(total.expert, expert_shards)};
    };
    resident_[MemoryClass::Weights] = Bytes(share(3).total()) * states.weight;
    if (states.weight > states.compute && (plan_.zero_stage == 1 || plan_.zero_stage == 2)) {
      // The wider weights are the master copy, and sharded as such.
      resident_[MemoryClass::Weights] =
          Bytes(total.total()) * states.compute + Bytes(share(1).total()) * states.weight;
    }
    resident_[MemoryClass::Gradients] = accumulates_unsharded()
                                            ? Bytes(total.total()) * settings_.unsharded_gradient
                                            : Bytes(share(2).total()) * states.gradient;
    resident_[MemoryClass::OptimizerStates] = Bytes(share(1).total()) * states.optimizer;
    if (plan_.offload.optimizer) {
      move_optimizer(share(1).total(), share(3).total());
    }
    resident_[MemoryClass::Weights] += Bytes(
        plan_.zero_stage < 3 ? total.frozen_bytes : ceil_divide(total.frozen_bytes, dense_shards));
    if (settings_.weight_gradients == WeightGradientBuffer::CachedByShape) {
      for (const auto& [inputs, outputs] : shapes_) {
        resident_[MemoryClass::Working] += Bytes(inputs * outputs) * states.compute;
      }
    }
    resident_[MemoryClass::Buffers] =
        settings_.buckets + compression_buffers(total, plan_, states.gradient);
    if (plan_.pipeline > 1) {
      // An activation and a gradient on their way.
      resident_[MemoryClass::Buffers] += transfer_size(model_, plan_, false) * 2;
    }
    resident_[MemoryClass::Communication] = communication_buffers();
    resident_[MemoryClass::Context] = settings_.context;
  }

  [[nodiscard]] bool shares_tied_embedding() const {
    const bool is_end = memory_.rank == 0 || memory_.rank == plan_.pipeline - 1;
    return model_.has_tied_embeddings && plan_.pipeline > 1 && is_end;
  }

  // Adds the buffers of each group of ranks that this one is in.
  [[nodiscard]] Bytes communication_buffers() const {
    const std::array<int, 5> groups{plan_.tensor, plan_.context, plan_.pipeline,
                                    plan_.gradient_ranks(), plan_.expert};
    const auto shared =
        std::count_if(groups.begin(), groups.end(), [](int ranks) { return ranks > 1; });
    // Frameworks also have one of all ranks, which meet when they start.
    const int all = plan_.ranks();
    const bool is_one_of_them = std::ranges::find(groups, all) != groups.end();
    auto communicators = shared + (all > 1 && !is_one_of_them ? 1 : 0);
    if (settings_.has_deepspeed_groups) {
      communicators += (all > 1 && is_one_of_them ? 1 : 0) +
                       (plan_.tensor * plan_.pipeline > 1 ? 1 : 0) +
                       (shares_tied_embedding() ? 1 : 0);
    }
    const nccl::Environment library;
    return (library.simple_buffer + library.ll_buffer + library.ll128_buffer) *
           (static_cast<std::int64_t>(communicators) * settings_.connections);
  }

  void begin(const Pass& pass) {
    const std::size_t position = memory_.moment_of_pass.size();
    memory_.moment_of_pass.push_back(static_cast<std::uint32_t>(memory_.moments.size()));
    memory_.moments.push_back({.position = position, .pass = pass});
    is_first_ = true;
  }

  // A recalled pass has had its part in the most that is on the host.
  void step_or_recall(const Pass& pass) {
    const auto [known, is_new] = known_passes_.try_emplace({pass.kind, pass.chunk, held_});
    if (is_new || repeated_ == RepeatedPasses::WalkAgain) {
      begin(pass);
      step(pass);
      CHECK(!is_first_, "a pass without a moment");
      known->second = {.moment = memory_.moment_of_pass.back(), .then = held_};
      return;
    }
    memory_.moment_of_pass.push_back(known->second.moment);
    held_ = known->second.then;
  }

  void step(const Pass& pass) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(pass.chunk)];
    if (chunk.empty()) {  // A stage may have no unit at all.
      consider({}, {});
    }
    if (pass.kind == PassKind::Forward) {
      forward(chunk);
    } else if (pass.kind == PassKind::WeightGradient) {
      weight_gradients(chunk);
    } else {
      backward(chunk, pass.kind == PassKind::InputGradient);
    }
  }

  void forward(const Chunk& chunk) {
    for (std::size_t index = 0; index < chunk.size(); ++index) {
      const Unit& unit = chunk[index];
      Extra extra{.gathered = gathered(chunk, index, 1), .working = unit.dequantised};
      keep(unit, extra);
      consider(unit.of, extra);
    }
  }

  [[nodiscard]] bool is_offloaded(const Unit& unit) const {
    return plan_.offload.activations && unit.of.place == StepPlace::Layer;
  }

  // Keeps the unit on the host, and for the time of two forwards also here.
  void keep(const Unit& unit, Extra& extra) {
    if (!is_offloaded(unit)) {
      held_.kept += unit.kept.forward - unit.logits;
      held_.logits += unit.logits;
      extra.passing = held_.leaving;
      held_.leaving = {};
      return;
    }
    extra.passing = unit.kept.forward + held_.leaving;
    held_.leaving = unit.kept.forward;
    held_.away += unit.kept.forward;
    memory_.host.activations = std::max(memory_.host.activations, held_.away);
  }

  // Returns the activations of the unit itself and of the one whose backward is next.
  [[nodiscard]] Bytes returned(const Chunk& chunk, std::size_t index) const {
    const Unit& unit = chunk[index];
    const Bytes own = is_offloaded(unit) ? unit.kept.forward : Bytes();
    const bool has_next = index > 0 && is_offloaded(chunk[index - 1]);
    return own + (has_next ? chunk[index - 1].kept.forward : Bytes());
  }

  void release(const Unit& unit) {
    if (is_offloaded(unit)) {
      held_.away = held_.away - unit.kept.forward;
      return;
    }
    held_.kept = held_.kept - (unit.kept.forward - unit.logits);
    held_.logits = held_.logits - unit.logits;
  }

  void backward(const Chunk& chunk, bool is_split) {
    for (std::size_t index = chunk.size(); index-- > 0;) {
      const Unit& unit = chunk[index];
      Extra extra{.gathered = gathered(chunk, index, -1),
                  .working = unit.working + unit.dequantised,
                  .loss = unit.loss_working,
                  .passing = returned(chunk, index)};
      if (shards_gradients()) {
        // In the layers' format, and on its way in that of the accumulated ones.
        extra.gathered +=
            Bytes(unit.parameters.total()) *
            (settings_.states.compute + (accumulates_unsharded() ? 0 : settings_.states.gradient));
      } else if (needs_matrix_buffer(unit)) {
        extra.working += Bytes(unit.largest_matrix) * settings_.states.compute;
      }
      if (streams_gradients() && !shards_gradients()) {
        extra.gathered += Bytes(unit.parameters.total()) * settings_.states.gradient;
      }
      consider(unit.of, extra);
      release(unit);
      if (is_split) {
        held_.kept += unit.kept.weight;
      }
    }
  }

  void weight_gradients(const Chunk& chunk) {
    for (std::size_t index = chunk.size(); index-- > 0;) {
      const Unit& unit = chunk[index];
      Extra extra;
      if (needs_matrix_buffer(unit)) {
        extra.working = Bytes(unit.largest_matrix) * settings_.states.compute;
      }
      consider(unit.of, extra);
      held_.kept = held_.kept - unit.kept.weight;
    }
  }

  // Embedding and head have no fused addition of gradients.
  [[nodiscard]] bool needs_matrix_buffer(const Unit& unit) const {
    return settings_.weight_gradients == WeightGradientBuffer::Transient ||
           unit.of.place != StepPlace::Layer;
  }

  // Weights of a unit and of those after it in the direction of the pass.
  [[nodiscard]] Bytes gathered(const Chunk& chunk, std::size_t index, int direction) const {
    if (!shards_weights()) {
      return {};
    }
    Bytes sum;
    auto at = static_cast<std::ptrdiff_t>(index);
    const auto count = static_cast<std::ptrdiff_t>(chunk.size());
    for (int ahead = 0; ahead <= settings_.prefetched_units; ++ahead, at += direction) {
      if (at >= 0 && at < count) {
        const RankParameters& parameters = chunk[static_cast<std::size_t>(at)].parameters;
        sum +=
            Bytes(parameters.total()) * settings_.states.compute + Bytes(parameters.frozen_bytes);
      }
    }
    return sum;
  }

  void consider(const ModelUnit& unit, const Extra& extra) {
    MemoryUse use = resident_;
    use[MemoryClass::GatheredWeights] += extra.gathered;
    use[MemoryClass::Activations] += held_.kept + extra.passing;
    use[MemoryClass::Loss] += held_.logits + extra.loss;
    use[MemoryClass::Working] += extra.working;
    const Bytes passing = use.allocated() - resident_.allocated();
    use[MemoryClass::Fragmentation] =
        Bytes(std::llround(static_cast<double>(passing.count()) * settings_.fragmentation));
    MemoryMoment& moment = memory_.moments.back();
    if (is_first_ || use.device() > moment.use.device()) {
      moment.unit = unit;
      moment.use = use;
      is_first_ = false;
    }
  }

  const Model& model_;
  const ParallelPlan& plan_;
  const MemorySettings& settings_;
  const ExpertLoads& loads_;
  std::vector<Chunk> chunks_;
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes_;  // Shapes of matrices, each once.
  LayerMemo<Unit> layers_;
  bool has_embedding_ = false;
  MemoryUse resident_;
  Held held_;
  std::map<std::tuple<PassKind, int, Held>, KnownPass> known_passes_;  // Passes by kind and chunk.
  RepeatedPasses repeated_;
  bool is_first_ = true;
  RankMemory memory_;
};

}  // namespace

RankMemory rank_memory(const Model& model, const ParallelPlan& plan, const MemorySettings& settings,
                       const ExpertLoads& loads, int rank, RepeatedPasses repeated) {
  return RankWalk(model, plan, settings, loads, rank, repeated).run();
}

}  // namespace trainyard
