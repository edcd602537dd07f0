// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/rank_parameters.h"

#include <algorithm>
#include <cstddef>

#include "parallelism/model/adapters.h"
#include "parallelism/model/model_ends.h"
#include "sim/units.h"

namespace trainyard {
namespace {

// The matrices before the activation function are one.
void add_feed_forward(std::vector<WeightMatrix>& matrices, std::int64_t hidden,
                      const FeedForward& layer, std::int64_t split, std::int64_t count,
                      bool is_expert) {
  const std::int64_t inner = layer.size / split;
  matrices.push_back({.inputs = hidden,
                      .outputs = (layer.matrices() - 1) * inner,
                      .count = count,
                      .is_expert = is_expert});
  matrices.push_back({.inputs = inner, .outputs = hidden, .count = count, .is_expert = is_expert});
}

// Adds what PowerSGD makes of `count` matrices: thin ones where those are less than half as large
// (min_compression_rate of PyTorch's PowerSGDState is 2; _should_compress of powerSGD_hook.py).
void add_thin(const ParallelPlan& plan, std::int64_t rows, std::int64_t columns, std::int64_t count,
              ThinMatrices& thin) {
  constexpr std::int64_t kMinRate = 2;
  if (!plan.compression || plan.compression->method != CompressionMethod::PowerSgd) {
    return;
  }
  const std::int64_t rank = std::min<std::int64_t>({plan.compression->rank, rows, columns});
  if ((rows + columns) * rank * kMinRate < rows * columns) {
    thin += {.count = count,
             .whole = count * rows * columns,
             .left = count * rows * rank,
             .right = count * columns * rank};
  }
}

ThinMatrices thin_ends(const Model& model, const ParallelPlan& plan,
                       const std::vector<EndLinear>& linears, bool has_vocabulary) {
  ThinMatrices thin;
  for (const EndLinear& each : linears) {
    add_thin(plan, each.outputs, each.inputs, 1, thin);
  }
  if (has_vocabulary && model.vocabulary > 0) {
    add_thin(plan, ceil_divide(model.vocabulary, plan.tensor), model.hidden, 1, thin);
  }
  return thin;
}

RankParameters all_gathered(const Model& model, const ParallelPlan& plan, const ModelUnit& unit) {
  return unit.place == StepPlace::Layer
             ? rank_parameters(model, model.layers[static_cast<std::size_t>(unit.layer)], plan)
         : unit.place == StepPlace::Embedding
             ? RankParameters{.dense = rank_embedding_parameters(model, plan),
                              .dense_thin = thin_ends(model, plan, input_linears(model), true)}
             : RankParameters{.dense = rank_head_parameters(model, plan),
                              .dense_thin = thin_ends(model, plan, output_linears(model), true)};
}

}  // namespace

ThinMatrices& ThinMatrices::operator+=(const ThinMatrices& other) {
  count += other.count;
  whole += other.whole;
  left += other.left;
  right += other.right;
  return *this;
}

RankParameters& RankParameters::operator+=(const RankParameters& other) {
  dense += other.dense;
  expert += other.expert;
  dense_matrices += other.dense_matrices;
  expert_matrices += other.expert_matrices;
  frozen_bytes += other.frozen_bytes;
  replicated += other.replicated;
  dense_thin += other.dense_thin;
  expert_thin += other.expert_thin;
  return *this;
}

std::vector<WeightMatrix> rank_matrices(const Model& model, const ModelLayer& layer,
                                        const ParallelPlan& plan) {
  std::vector<WeightMatrix> matrices = attention_matrices(model, layer.attention, plan.tensor);
  for (const EndLinear& each : layer_modulation(model)) {
    matrices.push_back({.inputs = each.inputs, .outputs = each.outputs});
  }
  if (layer.feed_forward) {
    add_feed_forward(matrices, model.hidden, *layer.feed_forward, plan.tensor, 1, false);
    return matrices;
  }
  const Experts& experts = *layer.experts;
  matrices.push_back({.inputs = model.hidden, .outputs = experts.count});
  add_feed_forward(matrices, model.hidden, experts.expert, plan.expert_tensor,
                   experts.count / plan.expert, true);
  if (experts.shared) {
    add_feed_forward(matrices, model.hidden, *experts.shared, plan.tensor, 1, false);
  }
  return matrices;
}

RankParameters rank_parameters(const Model& model, const ModelLayer& layer,
                               const ParallelPlan& plan) {
  RankParameters total{.dense = layer_norms(model) * norm_parameters(model, model.hidden) +
                                inner_norm_parameters(model, layer.attention) +
                                attention_biases(model, layer.attention, plan.tensor)};
  for (const EndLinear& each : layer_modulation(model)) {
    total.dense += each.parameters() - each.weights();
  }
  for (const WeightMatrix& matrix : rank_matrices(model, layer, plan)) {
    (matrix.is_expert ? total.expert : total.dense) += matrix.count * matrix.elements();
    (matrix.is_expert ? total.expert_matrices : total.dense_matrices) += matrix.count;
    add_thin(plan, matrix.outputs, matrix.inputs, matrix.count,
             matrix.is_expert ? total.expert_thin : total.dense_thin);
  }
  // In a feed-forward all matrices before the activation function are one in rank_matrices().
  const auto apart = [](const FeedForward& one) { return one.matrices() - 2; };
  if (layer.feed_forward) {
    total.dense += feed_forward_biases(model, *layer.feed_forward, plan.tensor);
    total.dense_matrices += apart(*layer.feed_forward);
    return total;
  }
  const Experts& experts = *layer.experts;
  total.expert_matrices += experts.count / plan.expert * apart(experts.expert);
  total.dense += experts.has_router_bias ? experts.count : 0;
  total.expert +=
      experts.count / plan.expert * feed_forward_biases(model, experts.expert, plan.expert_tensor);
  if (experts.shared) {
    total.dense += feed_forward_biases(model, *experts.shared, plan.tensor);
    total.dense_matrices += apart(*experts.shared);
  }
  return total;
}

std::int64_t rank_embedding_parameters(const Model& model, const ParallelPlan& plan) {
  return (ceil_divide(model.vocabulary, plan.tensor) + learned_vectors(model)) * model.hidden +
         parameters_of(input_linears(model)) +
         (model.has_embedding_norm ? norm_parameters(model, model.hidden) : 0);
}

std::int64_t rank_logit_parameters(const Model& model, const ParallelPlan& plan) {
  return ceil_divide(model.vocabulary, plan.tensor) * model.hidden;
}

std::int64_t rank_head_parameters(const Model& model, const ParallelPlan& plan) {
  return rank_logit_parameters(model, plan) + parameters_of(output_linears(model)) +
         (model.head.has_bias ? ceil_divide(model.vocabulary, plan.tensor) : 0) +
         (model.head.has_transform ? norm_parameters(model, model.hidden) : 0);
}

RankParameters rank_head(const Model& model, const ParallelPlan& plan, bool shares_logits) {
  const std::int64_t last_norm = model.is_post_norm ? 0 : norm_parameters(model, model.hidden);
  const std::int64_t shared = shares_logits ? rank_logit_parameters(model, plan) : 0;
  const std::int64_t logits = model.vocabulary > 0 && !shares_logits ? 1 : 0;
  return {.dense = last_norm + rank_head_parameters(model, plan) - shared,
          .dense_matrices = std::ssize(output_linears(model)) + logits,
          .dense_thin = thin_ends(model, plan, output_linears(model), !shares_logits)};
}

RankParameters trained_parameters(const Model& model, const ParallelPlan& plan,
                                  const ModelUnit& unit, const RankParameters& all) {
  if (!model.adapters) {
    return all;
  }
  RankParameters trained;
  std::int64_t quantised = 0;
  if (unit.place == StepPlace::Layer) {
    const std::int64_t rank = model.adapters->rank;
    const ModelLayer& layer = model.layers[static_cast<std::size_t>(unit.layer)];
    for (const AdaptedMatrix& matrix : adapted_matrices(model, layer, plan.tensor)) {
      trained.dense += matrix.parameters(rank);
      trained.dense_matrices += 2;
      trained.replicated += plan.tensor > 1 ? matrix.replicated(rank) : 0;
    }
    for (const WeightMatrix& matrix : rank_matrices(model, layer, plan)) {
      quantised += has_quantised_base(model) ? matrix.count * matrix.elements() : 0;
    }
  }
  trained.frozen_bytes = (all.total() - quantised) * plan.element_bytes + nf4_bytes(quantised);
  return trained;
}

RankParameters gathered_parameters(const Model& model, const ParallelPlan& plan,
                                   const ModelUnit& unit) {
  return trained_parameters(model, plan, unit, all_gathered(model, plan, unit));
}

RankParameters held_parameters(const Model& model, const ParallelPlan& plan,
                               const PipelineStage& stage, const ModelUnit& unit) {
  if (unit.place == StepPlace::Head) {
    const bool shares_logits = model.has_tied_embeddings && stage.has_embedding;
    return trained_parameters(model, plan, unit, rank_head(model, plan, shares_logits));
  }
  RankParameters held = all_gathered(model, plan, unit);
  if (unit.place == StepPlace::Embedding) {
    const int tables =
        (model.vocabulary > 0 ? 1 : 0) + (model.modulation && model.modulation->labels > 0 ? 1 : 0);
    held.dense_matrices = std::ssize(input_linears(model)) + tables;
  }
  return trained_parameters(model, plan, unit, held);
}

RankParameters stage_parameters(const Model& model, const PipelineStage& stage,
                                const ParallelPlan& plan) {
  RankParameters sum;
  for_each_unit(stage,
                [&](const ModelUnit& unit) { sum += held_parameters(model, plan, stage, unit); });
  return sum;
}

RankParameters place_parameters(const Model& model, const std::vector<PipelineStage>& stages,
                                const ParallelPlan& plan, int place) {
  const PipelineShape shape = plan.pipeline_shape();
  RankParameters sum;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    sum += stage_parameters(model, stages[static_cast<std::size_t>(shape.stage_of(place, chunk))],
                            plan);
  }
  return sum;
}

RankParameters tensor_parameters(const ImageLayer& layer, std::size_t tensor,
                                 const ParallelPlan& plan) {
  RankParameters parameters{.dense = layer.tensors[tensor]};
  if (layer.convolution && tensor == 0) {
    const std::int64_t rows = layer.convolution->outputs;
    parameters.dense_matrices = 1;
    add_thin(plan, rows, parameters.dense / rows, 1, parameters.dense_thin);
  }
  return parameters;
}

RankParameters network_parameters(const std::vector<ImageLayer>& layers, const ParallelPlan& plan) {
  RankParameters sum;
  for (const ImageLayer& layer : layers) {
    for (std::size_t tensor = 0; tensor < layer.tensors.size(); ++tensor) {
      sum += tensor_parameters(layer, tensor, plan);
    }
  }
  return sum;
}

double updated_parameters(const RankParameters& parameters, const ParallelPlan& plan) {
  const bool shards = plan.zero_stage > 0;
  return static_cast<double>(parameters.dense) / (shards ? plan.shards() : 1) +
         static_cast<double>(parameters.expert) / (shards ? plan.expert_gradient_ranks() : 1);
}

}  // namespace trainyard
