// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/activation_memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "parallelism/model/adapters.h"
#include "parallelism/model/model_ends.h"
#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::int64_t kFullBytes = 4;
constexpr std::int64_t kMaskBytes = 1;

// The numbers of ranks over which things are split.
struct Splits {
  // Degree of what tensor ranks share: heads, inner vectors, vocabulary.
  std::int64_t tensor = 1;
  std::int64_t sequence = 1;  // Degree of what they share by tokens, or each has in full.

  explicit Splits(const ParallelPlan& plan)
      : tensor(plan.tensor), sequence(plan.has_sequence_parallelism ? plan.tensor : 1) {}
};

class TensorList {
 public:
  TensorList(const Model& model, const ParallelPlan& plan, const ActivationOptions& options)
      : model_(model), plan_(plan), options_(options), splits_(plan) {}

  void norm_input(std::string_view operation, std::int64_t elements) {
    add(operation, "input", element_bytes() * elements, splits_.sequence);
  }
  // With adapters it is kept if a target is among `targets`, which lists those that it goes into.
  void linear_input(std::string_view operation, std::int64_t elements, std::int64_t split,
                    std::initializer_list<AdapterTarget> targets = {}) {
    if (!trains_any(model_, targets)) {
      return;
    }
    add(operation, "input", element_bytes() * elements, split, Lifetime::UntilWeightGradient);
  }
  void output_gradient(std::string_view operation, std::int64_t elements, std::int64_t split) {
    add(operation, "gradient of the output", element_bytes() * elements, split,
        Lifetime::BetweenGradients);
  }
  void dropout_mask(std::string_view operation, std::int64_t elements) {
    if (options_.has_dropout) {
      add(operation, "mask of the dropout", kMaskBytes * elements, splits_.sequence);
    }
  }
  void add(std::string_view operation, std::string_view tensor, std::int64_t bytes,
           std::int64_t split, Lifetime lifetime = Lifetime::UntilInputGradient,
           bool is_core = false) {
    tensors_.push_back({.operation = operation,
                        .tensor = tensor,
                        .bytes_per_token = bytes,
                        .split = split,
                        .lifetime = lifetime,
                        .is_attention_core = is_core});
  }

  void add(const SavedTensor& tensor) { tensors_.push_back(tensor); }

  void attention_core(const Attention& attention) {
    const std::int64_t heads = attention.heads();
    if (options_.attention == AttentionKernel::Flash) {
      add("attention", "logarithm of the sums", kFullBytes * heads, splits_.tensor);
      return;
    }
    // A score for each head and each token to attend to; a mask is no smaller a matrix.
    const std::int64_t scores = heads * plan_.sequence;
    add_core("softmax", element_bytes() * scores);
    if (options_.has_dropout) {
      add_core("mask of the dropout of scores", kMaskBytes * scores);
      add_core("scores after dropout", element_bytes() * scores);
    }
  }

  [[nodiscard]] std::int64_t element_bytes() const { return plan_.element_bytes; }
  [[nodiscard]] const Splits& splits() const { return splits_; }
  [[nodiscard]] const ParallelPlan& plan() const { return plan_; }
  [[nodiscard]] const ActivationOptions& options() const { return options_; }
  [[nodiscard]] std::vector<SavedTensor> tensors() && { return std::move(tensors_); }

 private:
  void add_core(std::string_view tensor, std::int64_t bytes) {
    add("attention", tensor, bytes, splits_.tensor, Lifetime::UntilInputGradient, true);
  }

  const Model& model_;
  const ParallelPlan& plan_;
  const ActivationOptions& options_;
  Splits splits_;
  std::vector<SavedTensor> tensors_;
};

void grouped_projections(TensorList& list, const GroupedAttention& attention) {
  // Each tensor rank has one group of keys and values at least.
  const std::int64_t split = list.splits().tensor;
  const std::int64_t groups = std::max<std::int64_t>(attention.kv_heads, split);
  const std::int64_t bytes = list.element_bytes() * attention.head_size;
  list.add("attention", "queries", bytes * attention.heads, split);
  list.add("attention", "keys", bytes * groups, split);
  list.add("attention", "values", bytes * groups, split);
}

void grouped_inputs(TensorList& list, const Model& model, const Attention& attention) {
  const auto& [heads, kv_heads, head_size] = *attention.grouped;
  // Each tensor rank has one group of keys and values at least.
  const std::int64_t groups = std::max<std::int64_t>(kv_heads, list.splits().tensor);
  const std::int64_t split = list.splits().tensor;
  list.linear_input("queries, keys, values", model.hidden, list.splits().sequence,
                    {AdapterTarget::Query, AdapterTarget::Key, AdapterTarget::Value});
  list.output_gradient("queries, keys, values", (heads + 2 * groups) * head_size, split);
  if (attention.has_qk_norm) {
    list.add("norm of queries and keys", "input",
             list.element_bytes() * (heads + groups) * head_size, split);
  }
  grouped_projections(list, *attention.grouped);
}

void latent_inputs(TensorList& list, const Model& model, const LatentAttention& latent) {
  const std::int64_t split = list.splits().tensor;
  const std::int64_t sequence = list.splits().sequence;
  const std::int64_t queries = latent.heads * (latent.head_size + latent.rope_size);
  const std::int64_t up = latent.heads * (latent.head_size + latent.value_size);
  list.linear_input("down projections", model.hidden, sequence);
  list.output_gradient("down projections", latent.query_rank + latent.kv_rank + latent.rope_size,
                       sequence);
  if (latent.query_rank != 0) {
    list.norm_input("norm of latent queries", latent.query_rank);
    list.linear_input("queries", latent.query_rank, sequence);
  }
  list.output_gradient("queries", queries, split);
  list.norm_input("norm of latent keys and values", latent.kv_rank);
  list.linear_input("keys and values", latent.kv_rank, sequence);
  list.output_gradient("keys and values", up, split);
  list.add("attention", "queries", list.element_bytes() * queries, split);
  list.add("attention", "keys", list.element_bytes() * queries, split);
  list.add("attention", "values", list.element_bytes() * latent.heads * latent.value_size, split);
}

void attention_block(TensorList& list, const Model& model, const Attention& attention) {
  list.norm_input("norm before attention", model.hidden);
  if (attention.grouped) {
    grouped_inputs(list, model, attention);
  } else {
    latent_inputs(list, model, *attention.latent);
  }
  list.attention_core(attention);
  // Also what the attention of a fused kernel keeps as its output.
  const std::int64_t outputs = attention.heads() * attention.value_size();
  if (trains_any(model, {AdapterTarget::Output})) {
    list.linear_input("output of attention", outputs, list.splits().tensor,
                      {AdapterTarget::Output});
  } else if (list.options().attention == AttentionKernel::Flash) {
    list.add("attention", "output", list.element_bytes() * outputs, list.splits().tensor);
  }
  list.output_gradient("output of attention", model.hidden, list.splits().sequence);
  list.dropout_mask("output of attention", model.hidden);
}

void feed_forward_block(TensorList& list, std::int64_t hidden, const FeedForward& layer) {
  const std::int64_t inner = layer.matrices() - 1;
  list.linear_input("first linear", hidden, list.splits().sequence,
                    {AdapterTarget::Gate, AdapterTarget::Up});
  list.output_gradient("first linear", inner * layer.size, list.splits().tensor);
  if (!list.options().has_rectifier) {
    list.add("activation function", "input", list.element_bytes() * inner * layer.size,
             list.splits().tensor);
  }
  list.linear_input("second linear", layer.size, list.splits().tensor, {AdapterTarget::Down});
  list.output_gradient("second linear", hidden, list.splits().sequence);
}

void output_norm(TensorList& list, const Model& model, std::string_view operation) {
  if (model.has_output_norms) {
    list.norm_input(operation, model.hidden);
  }
}

// Adds what adaLN-Zero multiplies: what comes out of the norm, and of the block before its gate.
void modulation_inputs(TensorList& list, const Model& model, std::string_view of_norm,
                       std::string_view of_gate) {
  if (model.modulation) {
    list.norm_input(of_norm, model.hidden);
    list.norm_input(of_gate, model.hidden);
  }
}

// Routed tokens times `elements`, with the imbalance of experts.
std::int64_t routed(const Experts& experts, const ActivationOptions& options,
                    std::int64_t elements) {
  return std::llround(static_cast<double>(experts.active * elements) * options.expert_imbalance);
}

void expert_block(TensorList& list, std::int64_t hidden, const Experts& experts) {
  const ParallelPlan& plan = list.plan();
  // Ranks of one tensor group hold different tokens (sequence parallelism) or are the parts of one
  // expert and hold the same ones; ranks that share an expert hold each other's tokens.
  const std::int64_t split = plan.tensor;
  const auto copies = static_cast<std::int64_t>(plan.expert_tensor);
  const std::int64_t inner = (experts.expert.matrices() - 1) * experts.expert.size;
  list.linear_input("router", hidden, list.splits().sequence);
  list.add("router", "probabilities of experts", kFullBytes * experts.count,
           list.splits().sequence);
  const auto sent = [&](std::int64_t elements) {
    return routed(experts, list.options(), elements);
  };
  list.linear_input("first linear of experts", sent(hidden) * copies, split);
  list.output_gradient("first linear of experts", sent(inner), split);
  list.add("activation function of experts", "input", list.element_bytes() * sent(inner), split);
  list.linear_input("second linear of experts", sent(experts.expert.size), split);
  list.output_gradient("second linear of experts", sent(hidden) * copies, split);
  if (experts.shared) {
    feed_forward_block(list, hidden, *experts.shared);
  }
}

// Outputs of the layer's matrix products in the order of a forward.
std::vector<SavedTensor> products(const Model& model, const ModelLayer& layer,
                                  const ParallelPlan& plan, const ActivationOptions& options) {
  TensorList list(model, plan, options);
  const auto product = [&](std::string_view operation, std::int64_t elements, std::int64_t split) {
    list.add(operation, "output", list.element_bytes() * elements, split);
  };
  const std::int64_t tensor = list.splits().tensor;
  const std::int64_t sequence = list.splits().sequence;
  const Attention& attention = layer.attention;
  const std::int64_t queries = attention.heads() * attention.query_size();
  if (attention.grouped) {
    const std::int64_t groups =
        std::max<std::int64_t>(attention.grouped->kv_heads, tensor) * attention.grouped->head_size;
    product("queries", queries, tensor);
    product("keys", groups, tensor);
    product("values", groups, tensor);
  } else {
    const LatentAttention& latent = *attention.latent;
    if (latent.query_rank != 0) {
      product("down projection of queries", latent.query_rank, sequence);
    }
    product("queries", queries, tensor);
    product("down projection of keys and values", latent.kv_rank + latent.rope_size, sequence);
    product("keys and values", latent.heads * (latent.head_size + latent.value_size), tensor);
  }
  product("output of attention", model.hidden, sequence);
  for (std::int64_t i = 1; i < layer.feed_forward->matrices(); ++i) {
    product("first linear", layer.feed_forward->size, tensor);
  }
  product("second linear", model.hidden, sequence);
  return std::move(list).tensors();
}

std::vector<SavedTensor> alternate_products(const Model& model, const ModelLayer& layer,
                                            const ParallelPlan& plan,
                                            const ActivationOptions& options) {
  CHECK(layer.feed_forward.has_value(), "alternate products of a layer with experts");
  TensorList list(model, plan, options);
  list.norm_input("layer", model.hidden);
  const std::vector<SavedTensor> all = products(model, layer, plan, options);
  for (std::size_t index = 0; index < all.size(); index += 2) {
    list.add(all[index]);
  }
  list.add("output of attention", "input",
           list.element_bytes() * layer.attention.heads() * layer.attention.value_size(),
           list.splits().tensor, Lifetime::UntilWeightGradient);
  if (options.attention == AttentionKernel::Flash) {
    list.attention_core(layer.attention);
  }
  return std::move(list).tensors();
}

// Returns the predictions of a model of images; those of a whole sample are left out, as other
// small numbers are.
std::int64_t predictions_of_token(const Model& model) {
  std::int64_t count = 0;
  for (const EndLinear& each : output_linears(model)) {
    const bool counts = each.output == EndOutput::Prediction && each.rows != EndRows::Samples;
    count += counts ? each.outputs : 0;
  }
  return count;
}

std::int64_t logit_ranks(const ParallelPlan& plan, const ActivationOptions& options) {
  return options.has_split_logits ? plan.tensor : 1;
}

Bytes split_bytes(const ParallelPlan& plan, std::int64_t elements, std::int64_t split) {
  return Bytes(ceil_divide(plan.tokens() * plan.element_bytes * elements, split));
}

}  // namespace

Bytes SavedTensor::bytes(std::int64_t tokens) const {
  return Bytes(ceil_divide(tokens * bytes_per_token, split));
}

std::vector<SavedTensor> saved_tensors(const Model& model, const ModelLayer& layer,
                                       const ParallelPlan& plan, const ActivationOptions& options) {
  TensorList list(model, plan, options);
  attention_block(list, model, layer.attention);
  output_norm(list, model, "norm behind attention");
  modulation_inputs(list, model, "modulation before attention", "gate of attention");
  list.norm_input("norm before the feed-forward", model.hidden);
  if (layer.feed_forward) {
    feed_forward_block(list, model.hidden, *layer.feed_forward);
  } else {
    expert_block(list, model.hidden, *layer.experts);
  }
  output_norm(list, model, "norm behind the feed-forward");
  modulation_inputs(list, model, "modulation before the feed-forward", "gate of the feed-forward");
  list.dropout_mask("second linear", model.hidden);
  if (model.adapters) {
    const auto count = std::ssize(adapted_matrices(model, layer, plan.tensor));
    list.add("adapters", "input of the second matrix",
             list.element_bytes() * model.adapters->rank * count, 1, Lifetime::UntilWeightGradient);
  }
  return std::move(list).tensors();
}

std::vector<SavedTensor> kept_tensors(const Model& model, const ModelLayer& layer,
                                      const ParallelPlan& plan, const ActivationOptions& options) {
  if (plan.recompute == Recompute::Full) {
    TensorList list(model, plan, options);
    list.norm_input("layer", model.hidden);
    if (options.keeps_projections && layer.feed_forward && layer.attention.grouped) {
      grouped_projections(list, *layer.attention.grouped);
    }
    return std::move(list).tensors();
  }
  if (plan.recompute == Recompute::Selective &&
      options.selective == SelectiveRecompute::AlternateProducts) {
    return alternate_products(model, layer, plan, options);
  }
  std::vector<SavedTensor> tensors = saved_tensors(model, layer, plan, options);
  if (plan.recompute == Recompute::Selective) {
    std::erase_if(tensors, [](const SavedTensor& tensor) { return tensor.is_attention_core; });
  }
  return tensors;
}

std::vector<SavedTensor> embedding_tensors(const Model& model, const ParallelPlan& plan,
                                           const ActivationOptions& options) {
  TensorList list(model, plan, options);
  if (model.patches) {
    list.linear_input("patches", model.patches->elements(), 1);
  }
  if (model.has_embedding_norm) {
    list.norm_input("norm of the embedding", model.hidden);
  }
  list.dropout_mask("embedding", model.hidden);
  return std::move(list).tensors();
}

std::vector<SavedTensor> head_tensors(const Model& model, const ParallelPlan& plan,
                                      const ActivationOptions& options) {
  TensorList list(model, plan, options);
  if (!model.is_post_norm) {
    list.norm_input("last norm", model.hidden);
  }
  if (model.modulation) {
    list.norm_input("last modulation", model.hidden);
  }
  if (model.head.has_transform) {
    list.linear_input("transform", model.hidden, list.splits().sequence);
    list.norm_input("activation function of the transform", model.hidden);
    list.norm_input("norm of the transform", model.hidden);
  }
  if (model.vocabulary > 0 || model.head.channels > 0) {
    list.linear_input("head", model.hidden, list.splits().sequence);
  }
  if (model.vocabulary > 0) {
    list.add(
        "loss", "logits and their softmax",
        (options.loss == LossKernel::Fused ? plan.element_bytes : kFullBytes) * model.vocabulary,
        logit_ranks(plan, options));
  } else {
    list.add("loss", "predictions", kFullBytes * predictions_of_token(model), 1);
  }
  return std::move(list).tensors();
}

SavedBytes saved_bytes(const std::vector<SavedTensor>& tensors, std::int64_t tokens) {
  SavedBytes sum;
  for (const SavedTensor& tensor : tensors) {
    const Bytes bytes = tensor.bytes(tokens);
    sum.forward += tensor.lifetime == Lifetime::BetweenGradients ? Bytes() : bytes;
    sum.weight += tensor.lifetime == Lifetime::UntilInputGradient ? Bytes() : bytes;
  }
  return sum;
}

Bytes backward_working_bytes(const Model& model, const ModelLayer& layer, const ParallelPlan& plan,
                             const ActivationOptions& options) {
  const Splits splits(plan);
  // The gradient of the residual, and with sequence parallelism the gathered input of a linear.
  Bytes around = split_bytes(plan, model.hidden, splits.sequence);
  if (plan.has_sequence_parallelism) {
    around += split_bytes(plan, model.hidden, 1);
  }
  const Attention& attention = layer.attention;
  const std::int64_t queries = attention.heads() * attention.query_size();
  const std::int64_t outputs = attention.heads() * attention.value_size();
  const std::int64_t groups =
      attention.grouped ? attention.grouped->kv_heads * attention.grouped->head_size : 0;
  const std::int64_t keys_and_values = attention.grouped ? 2 * groups : queries + outputs;
  std::int64_t of_attention = queries + keys_and_values + outputs;
  if (plan.context > 1 && plan.context_kind == ContextParallelism::Ring) {
    // Keys and values of another rank with their gradients, at work and on their way.
    of_attention += 4 * keys_and_values;
  }
  if (options.attention == AttentionKernel::Unfused) {
    // Bytes of scores, after and before softmax.
    of_attention += 2 * attention.heads() * plan.sequence;
  }
  std::int64_t of_linears = 0;
  if (layer.feed_forward) {
    of_linears = layer.feed_forward->matrices() * layer.feed_forward->size;
  } else {
    const Experts& experts = *layer.experts;
    of_linears =
        routed(experts, options,
               experts.expert.matrices() * experts.expert.size + model.hidden * plan.expert_tensor);
  }
  return around + split_bytes(plan, std::max(of_attention, of_linears), splits.tensor);
}

Bytes loss_working_bytes(const Model& model, const ParallelPlan& plan,
                         const ActivationOptions& options) {
  // The gradient of the head's input, and with sequence parallelism its gathered input.
  const Bytes inputs = split_bytes(plan, model.hidden, 1) * (plan.has_sequence_parallelism ? 2 : 1);
  const std::int64_t logits = plan.tokens() * model.vocabulary;
  const std::array<std::int64_t, 4> of_logit{0, plan.element_bytes, 8, 4};  // Each LossKernel.
  return inputs + Bytes(ceil_divide(logits * of_logit.at(static_cast<std::size_t>(options.loss)),
                                    logit_ranks(plan, options)));
}

}  // namespace trainyard
