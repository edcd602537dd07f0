// SPDX-License-Identifier: Apache-2.0
#include "parallelism/rank_parameters.h"

#include <algorithm>

namespace trainyard {
namespace {

std::int64_t ceil_divide(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

std::int64_t norm(const Model& model, std::int64_t inputs) {
  return model.norm == Norm::Layer ? 2 * inputs : inputs;
}

void add_attention(std::vector<WeightMatrix>& matrices, const Model& model,
                   const Attention& attention, std::int64_t tensor) {
  if (attention.grouped) {
    const auto& [heads, kv_heads, head_size] = *attention.grouped;
    // A group is on several ranks where there are fewer groups than ranks.
    const std::int64_t groups = ceil_divide(kv_heads, tensor);
    matrices.push_back(
        {.inputs = model.hidden, .outputs = (heads / tensor + 2 * groups) * head_size});
    matrices.push_back({.inputs = heads / tensor * head_size, .outputs = model.hidden});
    return;
  }
  const LatentAttention& latent = *attention.latent;
  const std::int64_t heads = latent.heads / tensor;
  const std::int64_t queries = heads * (latent.head_size + latent.rope_size);
  if (latent.query_rank == 0) {
    matrices.push_back({.inputs = model.hidden, .outputs = queries});
  } else {
    matrices.push_back({.inputs = model.hidden, .outputs = latent.query_rank});
    matrices.push_back({.inputs = latent.query_rank, .outputs = queries});
  }
  matrices.push_back({.inputs = model.hidden, .outputs = latent.kv_rank + latent.rope_size});
  matrices.push_back(
      {.inputs = latent.kv_rank, .outputs = heads * (latent.head_size + latent.value_size)});
  matrices.push_back({.inputs = heads * latent.value_size, .outputs = model.hidden});
}

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

// Biases and norms of attention.
std::int64_t attention_vectors(const Model& model, const Attention& attention,
                               std::int64_t tensor) {
  std::int64_t count = 0;
  if (attention.has_qk_norm) {
    count += 2 * norm(model, attention.query_size());
  }
  if (attention.latent) {
    count += norm(model, attention.latent->kv_rank) + norm(model, attention.latent->query_rank);
  }
  if (model.bias == Bias::None) {
    return count;
  }
  if (model.bias == Bias::All) {
    count += model.hidden;  // Of the output.
  }
  if (attention.grouped) {
    const auto& [heads, kv_heads, head_size] = *attention.grouped;
    return count + (heads / tensor + 2 * ceil_divide(kv_heads, tensor)) * head_size;
  }
  const LatentAttention& latent = *attention.latent;
  const std::int64_t queries = latent.query_rank == 0
                                   ? latent.heads / tensor * (latent.head_size + latent.rope_size)
                                   : latent.query_rank;
  return count + queries + latent.kv_rank + latent.rope_size;
}

std::int64_t feed_forward_biases(const Model& model, const FeedForward& layer, std::int64_t split) {
  return model.bias == Bias::All ? (layer.matrices() - 1) * layer.size / split + model.hidden : 0;
}

}  // namespace

RankParameters& RankParameters::operator+=(const RankParameters& other) {
  dense += other.dense;
  expert += other.expert;
  dense_matrices += other.dense_matrices;
  expert_matrices += other.expert_matrices;
  return *this;
}

std::vector<WeightMatrix> rank_matrices(const Model& model, const ModelLayer& layer,
                                        const ParallelPlan& plan) {
  std::vector<WeightMatrix> matrices;
  add_attention(matrices, model, layer.attention, plan.tensor);
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
  RankParameters total{.dense = 2 * norm(model, model.hidden) +
                                attention_vectors(model, layer.attention, plan.tensor)};
  for (const WeightMatrix& matrix : rank_matrices(model, layer, plan)) {
    (matrix.is_expert ? total.expert : total.dense) += matrix.count * matrix.elements();
    (matrix.is_expert ? total.expert_matrices : total.dense_matrices) += matrix.count;
  }
  // Of a feed-forward all matrices before the activation function are one in rank_matrices().
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
  return (ceil_divide(model.vocabulary, plan.tensor) + model.learned_positions) * model.hidden +
         (model.has_embedding_norm ? norm(model, model.hidden) : 0);
}

std::int64_t rank_head_parameters(const Model& model, const ParallelPlan& plan) {
  return ceil_divide(model.vocabulary, plan.tensor) * model.hidden;
}

std::int64_t last_norm_parameters(const Model& model) {
  return norm(model, model.hidden);
}

}  // namespace trainyard
