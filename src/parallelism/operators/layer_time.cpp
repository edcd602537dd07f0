// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/layer_time.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallelism/model/adapters.h"
#include "parallelism/model/model_ends.h"

namespace trainyard {
namespace {

// Bytes of memory-bound operators for each token and element of the hidden state: two norms, two
// residuals and dropout, in 16 bits. For the inner vector of a feed-forward it is two for each
// matrix: what the activation reads and writes. Estimates, with a factor of the software;
// docs/models/step.md.
constexpr double kHiddenBytes = 22.0;
constexpr double kNormBytes = 4.0;  // Bytes of one more norm: read and written.
constexpr double kInnerBytesOfMatrix = 2.0;
// Beyond these, where each elementwise operator is a kernel of its own, of models with RMS norms
// and rotary positions as facebookresearch/llama (model.py, RMSNorm and apply_rotary_emb) writes
// them: of a norm 36 for each element instead of 4 (to FP32, square, mean, product, to 16 bits,
// weights), of queries and keys 20 (to FP32, product, to 16 bits), of the gate 10 for each element
// of the inner vector instead of 6. PyTorch has layer norm and GELU as one kernel each.
constexpr double kEagerNormBytes = 32.0;
constexpr double kEagerRotaryBytes = 20.0;
constexpr double kEagerGateBytes = 4.0;
// Under torch.autocast what goes from layer to layer has 32 bits, and so have norms: of a norm 4
// bytes more, of the sum that makes the stream again 4 more, and 6 for each product that reads what
// was normed, which is cast for it. Where operators are fused, the stream is read and written with
// 2 more each. Backward twice that: gradients of the same sizes, and sums of them.
constexpr double kWideNormBytes = 8.0;
constexpr double kWideReadBytes = 6.0;
constexpr double kFusedWideNormBytes = 4.0;
constexpr double kWideBackward = 2.0;
// The same of adaLN-Zero as facebookresearch/DiT (models.py, modulate and DiTBlock) writes it, for
// both blocks of a layer: a product and a sum behind the norm, and a product with the gate, each of
// which reads and writes. Fused, they are in the kernels of norms and residuals.
constexpr double kEagerModulationBytes = 2.0 * 12.0;
constexpr double kEagerShiftBytes = 8.0;  // Bytes of the last norm, which has no gate.
// Ring attention, for each element of its output: that of the first step is scaled, those of the
// others are added to it, to half of it in half of them on average, for which half of the queries
// are copied (flash_attn_fwd_out_correction in context_parallel.py of NVIDIA/TransformerEngine).
// Backward gradients likewise, at kBackwardBytes.
constexpr double kRingFirstBytes = 4.0;
constexpr double kRingStepBytes = 5.5;
// The same where keys and values are gathered and results added up in FP32 (_SDPAMerger and
// _templated_ring_attention_backward in torch/distributed/tensor/experimental/_attention.py), each
// elementwise expression one kernel. Forward once: the output to FP32 and back, keys and values
// laid out; for each other step: a result that is added to the output, half of one in half of the
// steps, after which both halves are joined. Backward once: keys and values laid out, gradients to
// 16 bits; for each step: three gradients added in FP32, those of keys and values laid out to be
// sent on.
constexpr double kGatheredForwardBytes = 6.0 + 6.0 + 8.0;
constexpr double kGatheredForwardStepBytes = 1.5 + 4.0 + 4.0;
constexpr double kGatheredBackwardBytes = 8.0 + 3.0 * 6.0;
constexpr double kGatheredBackwardStepBytes = 3.0 * (2.0 + 4.0 + 4.0) + 2.0 * (4.0 + 4.0);
constexpr double kBackwardBytes = 1.6;  // Over those forward.
// Permutation of tokens before and after experts: each copy is read and written twice.
constexpr double kPermutationBytes = 8.0;
// Bytes of a logit: written, read for its maximum, its exponentials and its loss in FP32; and
// backward.
constexpr double kLogitBytesForward = 10.0;
constexpr double kLogitBytesBackward = 12.0;
// A tensor rank's share of the vocabulary is padded to a multiple of this (Megatron's
// make-vocab-size-divisible-by).
constexpr std::int64_t kVocabularyUnit = 128;
constexpr double kEmbeddingBytes = 4.0;  // Bytes of an element: read and written.
// Bytes of an element of what a linear layer of the head makes, by an activation function or a
// norm.
constexpr double kHeadElementBytes = 4.0;
// Bytes of FP8 casts: of an element of the input, of the weights, and of the gradient.
constexpr double kInputCastBytes = 4.0;
constexpr double kWeightCastBytes = 3.0;
constexpr double kGradientCastBytes = 4.0;
// Bytes of an adapter as huggingface/peft (tuners/lora/layer.py, Linear.forward) runs it: for each
// element of its output a sum with that of the frozen matrix, and where operators are kernels of
// their own a product with its scale, forward and backward; backward, for each element of its input
// a sum of two gradients.
constexpr double kAdapterSumBytes = 6.0;
constexpr double kEagerScaleBytes = 4.0;

struct Linear {
  Gemm gemm;  // Forward.
  bool is_grouped = false;
};

// Groups of keys and values on a tensor rank; where there are fewer than ranks, some have the same.
std::int64_t share_of(std::int64_t groups, std::int64_t ranks) {
  return std::max<std::int64_t>(1, groups / ranks);
}

void add_attention(const Model& model, const Attention& attention, const ParallelPlan& plan,
                   std::vector<Linear>& linears) {
  const std::int64_t tokens = plan.tokens();
  const std::int64_t h = model.hidden;
  const std::int64_t heads = attention.heads() / plan.tensor;
  const auto add = [&](std::int64_t outputs, std::int64_t inputs) {
    linears.push_back({.gemm = {.m = tokens, .n = outputs, .k = inputs}});
  };
  if (attention.grouped) {
    const std::int64_t size = attention.grouped->head_size;
    add((heads + 2 * share_of(attention.grouped->kv_heads, plan.tensor)) * size, h);
    add(h, heads * size);
    return;
  }
  const LatentAttention& latent = *attention.latent;
  if (latent.query_rank == 0) {
    add(heads * attention.query_size(), h);
  } else {
    add(latent.query_rank, h);
    add(heads * attention.query_size(), latent.query_rank);
  }
  add(latent.kv_rank + latent.rope_size, h);
  add(heads * (latent.head_size + latent.value_size), latent.kv_rank);
  add(h, heads * latent.value_size);
}

void add_feed_forward(const Model& model, const FeedForward& layer, std::int64_t tokens,
                      std::int64_t ranks, std::int64_t count, bool is_grouped,
                      std::vector<Linear>& linears) {
  const std::int64_t inner = layer.size / ranks;
  linears.push_back({.gemm = {.m = tokens,
                              .n = (layer.matrices() - 1) * inner,
                              .k = model.hidden,
                              .count = count},
                     .is_grouped = is_grouped});
  linears.push_back({.gemm = {.m = tokens, .n = model.hidden, .k = inner, .count = count},
                     .is_grouped = is_grouped});
}

// Rows of an expert in a grouped product are filled up to a multiple of this: Fp8Padding of
// TransformerEngine (transformer_engine/pytorch/module/fp8_padding.py), or the routing map itself
// with Megatron-Core's moe_router_padding_for_fp8. In 16 bits nothing is padded, but tiles are
// computed whole, and what has to be aligned is the contiguous side of an operand (cuBLAS, "Tensor
// Core Usage": op_A == N ? m : k), which in the gradient of a weight is not that of its tokens.
constexpr std::int64_t kExpertRows = 16;

// Tokens that one expert of this rank gets: `load` times what it got if all got as many.
std::int64_t tokens_of_expert(const Experts& experts, const ParallelPlan& plan, double load) {
  const std::int64_t sources = std::int64_t{plan.expert} * plan.expert_tensor;
  const std::int64_t routed = plan.tokens() * experts.active * sources;
  const std::int64_t parts = std::int64_t{plan.tensor} * experts.count;
  const std::int64_t even = ceil_divide(routed, parts);
  const auto tokens = static_cast<std::int64_t>(std::ceil(static_cast<double>(even) * load));
  return (tokens + kExpertRows - 1) / kExpertRows * kExpertRows;
}

Gemm gemm_of(const Model& model, const EndLinear& linear, const ParallelPlan& plan) {
  return {.m = rows_of_rank(model, linear, plan), .n = linear.outputs, .k = linear.inputs};
}

std::vector<Linear> linears_of(const Model& model, const ModelLayer& layer,
                               const ParallelPlan& plan, double load) {
  std::vector<Linear> linears;
  for (const EndLinear& each : layer_modulation(model)) {
    linears.push_back({.gemm = gemm_of(model, each, plan)});
  }
  add_attention(model, layer.attention, plan, linears);
  if (layer.feed_forward) {
    add_feed_forward(model, *layer.feed_forward, plan.tokens(), plan.tensor, 1, false, linears);
    return linears;
  }
  const Experts& experts = *layer.experts;
  linears.push_back(
      {.gemm = {.m = plan.tokens() / plan.tensor, .n = experts.count, .k = model.hidden}});
  add_feed_forward(model, experts.expert, tokens_of_expert(experts, plan, load), plan.expert_tensor,
                   experts.count / plan.expert, true, linears);
  if (experts.shared) {
    add_feed_forward(model, *experts.shared, plan.tokens(), plan.tensor, 1, false, linears);
  }
  return linears;
}

// The bytes of this rank with which the steps of a ring of context ranks are added up.
struct RingBytes {
  double forward = 0.0;
  double backward = 0.0;
};

RingBytes ring_bytes(const Attention& attention, const ParallelPlan& plan, bool gathers_keys) {
  if (plan.context == 1 || plan.context_kind != ContextParallelism::Ring) {
    return {};
  }
  const double outputs = static_cast<double>(attention.heads() * attention.value_size()) *
                         static_cast<double>(plan.tokens()) / static_cast<double>(plan.tensor);
  const double steps = plan.context;
  if (gathers_keys) {
    return {
        .forward = outputs * (kGatheredForwardBytes + kGatheredForwardStepBytes * (steps - 1.0)),
        .backward = outputs * (kGatheredBackwardBytes + kGatheredBackwardStepBytes * steps)};
  }
  const double forward = outputs * (kRingFirstBytes + kRingStepBytes * (steps - 1.0));
  return {.forward = forward, .backward = kBackwardBytes * forward};
}

// Returns the bytes of a token forward.
double rotary_bytes(const Attention& attention, const ParallelPlan& plan) {
  if (!attention.grouped) {
    return 0.0;
  }
  return kEagerRotaryBytes *
         static_cast<double>((attention.heads() + attention.grouped->kv_heads) *
                             attention.query_size()) /
         static_cast<double>(plan.tensor);
}

// Bytes forward, of this rank, of a stream of 32 bits beside layers of 16. Frozen weights have 16
// bits, and so has what goes between their layers.
double wide_stream_bytes(const Model& model, const ModelLayer& layer, const ParallelPlan& plan,
                         const OperatorTimes& operators) {
  if (!operators.has_wide_stream() || model.adapters) {
    return 0.0;
  }
  const auto norms = static_cast<double>(layer_norms(model));
  double of_element = kFusedWideNormBytes * norms;
  if (!operators.fuses_operators()) {
    // Queries, keys and values, or what latent ones are made of; gate and up; a router.
    const std::int64_t reads = (layer.attention.grouped ? 3 : 2) +
                               (layer.feed_forward ? layer.feed_forward->matrices() - 1 : 1);
    of_element = kWideNormBytes * norms + kWideReadBytes * static_cast<double>(reads);
  }
  return of_element * static_cast<double>(model.hidden) * static_cast<double>(plan.tokens()) /
         (plan.has_sequence_parallelism ? static_cast<double>(plan.tensor) : 1.0);
}

// Forward, of this rank, in 16 bits.
double memory_bound_bytes(const Model& model, const ModelLayer& layer, const ParallelPlan& plan,
                          double load, const OperatorTimes& operators) {
  const bool is_unfused = !operators.fuses_operators();
  const bool is_eager = is_unfused && model.norm == Norm::Rms;
  const auto tokens = static_cast<double>(plan.tokens());
  const auto tensor = static_cast<double>(plan.tensor);
  const auto inner = [&](const FeedForward& feed_forward) {
    const double of_gate = is_eager && feed_forward.is_gated ? kEagerGateBytes : 0.0;
    return (kInnerBytesOfMatrix * static_cast<double>(feed_forward.matrices()) + of_gate) *
           static_cast<double>(feed_forward.size) / tensor;
  };
  const double hidden = static_cast<double>(model.hidden);
  const double of_modulation = is_unfused && model.modulation ? kEagerModulationBytes : 0.0;
  const auto norms = static_cast<double>(layer_norms(model));
  const double of_norms =
      (norms - 2.0) * kNormBytes +
      norms * (is_eager && !operators.has_norm_kernel() ? kEagerNormBytes : 0.0);
  double of_token = (kHiddenBytes + of_norms + of_modulation) * hidden /
                        (plan.has_sequence_parallelism ? tensor : 1.0) +
                    (is_eager ? rotary_bytes(layer.attention, plan) : 0.0);
  if (layer.feed_forward) {
    of_token += inner(*layer.feed_forward);
  } else {
    const double active = load * static_cast<double>(layer.experts->active);
    of_token += active * (inner(layer.experts->expert) + kPermutationBytes * hidden / tensor);
    if (layer.experts->shared) {
      of_token += inner(*layer.experts->shared);
    }
  }
  return tokens * of_token;
}

AttentionShape attention_shape(const Attention& attention, const ParallelPlan& plan) {
  return {.sequences = plan.micro_batch,
          .heads = attention.heads() / plan.tensor,
          .queries = plan.sequence / plan.context,
          .keys = plan.sequence,
          .query_size = attention.query_size(),
          .value_size = attention.value_size(),
          .is_causal = attention.is_causal,
          .window_share = attention.window_share(plan.sequence)};
}

// Copies of weights and gradients that come with a layer, or an end of the model, of that many
// weights on this rank, `trained` of which have gradients.
void add_weights(double weights, double trained, const ParallelPlan& plan,
                 const OperatorTimes& operators, PassTimes& times) {
  // One rank has all of them, and software then shards nothing (torch.distributed.fsdp: NO_SHARD).
  const bool is_sharded = plan.zero_stage >= 3 && plan.shards() > 1;
  times.weight_gradient[StepPart::MemoryBound] += operators.weight_gradients(trained, is_sharded);
  if (is_sharded) {
    const SimTime gathered = operators.gathered_weights(weights);
    times.forward[StepPart::MemoryBound] += gathered;
    times.kept += gathered;
    if (plan.recompute != Recompute::Full) {
      times.input_gradient[StepPart::MemoryBound] += gathered;
    }
  }
}

// Returns the vocabulary of a tensor rank.
std::int64_t vocabulary_of(const Model& model, const ParallelPlan& plan) {
  const std::int64_t unit = kVocabularyUnit * plan.tensor;
  return (model.vocabulary + unit - 1) / unit * kVocabularyUnit;
}

double elements(std::int64_t a, std::int64_t b, std::int64_t count) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(count);
}

// Returns its forward pass. A frozen weight has no gradient, and one of 4 bits is brought to those
// of the product for each of its products.
StepParts add_linear(const Model& model, const Linear& linear, const OperatorTimes& operators,
                     PassTimes& times) {
  const auto& [m, n, k, count, first] = linear.gemm;
  const double weights = elements(n, k, count);
  const auto time = [&](const Gemm& gemm) {
    return linear.is_grouped ? operators.grouped(gemm, weights) : operators.linear(gemm);
  };
  StepParts forward;
  forward[StepPart::Linear] = time(linear.gemm);
  forward[StepPart::Casts] =
      operators.casts(kInputCastBytes * elements(m, k, count) + kWeightCastBytes * weights);
  if (has_quantised_base(model)) {
    const SimTime dequantised = operators.dequantised(weights);
    forward[StepPart::Casts] += dequantised;
    times.input_gradient[StepPart::Casts] += dequantised;
  }
  times.forward += forward;
  times.input_gradient[StepPart::Linear] += time({.m = m, .n = k, .k = n, .count = count});
  if (!model.adapters) {
    times.weight_gradient[StepPart::Linear] += time({.m = n, .n = k, .k = m, .count = count});
  }
  times.input_gradient[StepPart::Casts] +=
      operators.casts(kGradientCastBytes * elements(m, n, count));
  return forward;
}

// Adds the adapters of a layer; returns their weights.
double add_adapters(const Model& model, const ModelLayer& layer, const ParallelPlan& plan,
                    const OperatorTimes& operators, PassTimes& times) {
  double weights = 0.0;
  const double scale = operators.fuses_operators() ? 0.0 : kEagerScaleBytes;
  for (const AdaptedMatrix& matrix : adapted_matrices(model, layer, plan.tensor)) {
    const std::int64_t tokens = plan.tokens();
    const std::int64_t rank = model.adapters->rank;
    const auto& [inputs, outputs, splits_inputs] = matrix;
    const auto time = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      return operators.linear_over_long_k({.m = m, .n = n, .k = k});
    };
    const double of_output = elements(tokens, outputs, 1);
    times.forward[StepPart::Linear] += time(tokens, rank, inputs) + time(tokens, outputs, rank);
    times.forward[StepPart::MemoryBound] +=
        operators.memory_bound((kAdapterSumBytes + scale) * of_output);
    times.input_gradient[StepPart::Linear] +=
        time(tokens, rank, outputs) + time(tokens, inputs, rank);
    times.input_gradient[StepPart::MemoryBound] +=
        operators.memory_bound(scale * of_output + kAdapterSumBytes * elements(tokens, inputs, 1));
    times.weight_gradient[StepPart::Linear] +=
        time(rank, inputs, tokens) + time(outputs, rank, tokens);
    weights += static_cast<double>(matrix.parameters(rank));
  }
  return weights;
}

// Adds a layer of 16 bits at an end of the model, from its product forward.
void add_end(const Model& model, const Gemm& gemm, bool has_input_gradient,
             const OperatorTimes& operators, StepPart part, PassTimes& times) {
  const auto& [m, n, k, count, first] = gemm;
  times.forward[part] += operators.product(gemm);
  if (!model.adapters) {
    times.weight_gradient[part] += operators.product({.m = n, .n = k, .k = m});
  }
  if (has_input_gradient) {
    times.input_gradient[part] += operators.product({.m = m, .n = k, .k = n});
  }
}

// Adds what the linear layers of the head leave to operators that are bound by memory.
void add_head_elements(const Model& model, const ParallelPlan& plan, const OperatorTimes& operators,
                       PassTimes& times) {
  double forward = 0.0;
  double backward = 0.0;
  for (const EndLinear& each : output_linears(model)) {
    const double count = elements(rows_of_rank(model, each, plan), each.outputs, 1);
    if (each.output == EndOutput::Prediction) {
      forward += kLogitBytesForward * count;
      backward += kLogitBytesBackward * count;
      continue;
    }
    const double operators_of = each.output == EndOutput::Transform ? 2.0 : 1.0;
    forward += operators_of * kHeadElementBytes * count;
    backward += kBackwardBytes * operators_of * kHeadElementBytes * count;
  }
  if (model.modulation && !operators.fuses_operators()) {
    const double bytes = kEagerShiftBytes * elements(plan.tokens(), model.hidden, 1);
    forward += bytes;
    backward += kBackwardBytes * bytes;
  }
  times.forward[StepPart::Head] += operators.memory_bound(forward);
  times.input_gradient[StepPart::Head] += operators.memory_bound(backward);
}

}  // namespace

PassTimes layer_times(const Model& model, const ModelLayer& layer, const ParallelPlan& plan,
                      const OperatorTimes& operators, double load) {
  PassTimes times;
  double weights = 0.0;
  std::vector<StepParts> products;
  for (const Linear& linear : linears_of(model, layer, plan, load)) {
    const StepParts forward = add_linear(model, linear, operators, times);
    products.push_back(forward);
    weights += elements(linear.gemm.n, linear.gemm.k, linear.gemm.count);
  }
  if (layer.feed_forward) {
    times.last_product = products.back();
    times.projections = layer.attention.grouped ? products.front() : StepParts();
  }
  const double adapters = add_adapters(model, layer, plan, operators, times);
  const double at_rest =
      has_quantised_base(model) ? weights * kNf4BytesOfWeight / plan.element_bytes : weights;
  add_weights(at_rest + adapters, model.adapters ? adapters : weights, plan, operators, times);
  const AttentionShape shape = attention_shape(layer.attention, plan);
  times.forward[StepPart::Attention] = operators.attention_forward(shape);
  times.input_gradient[StepPart::Attention] = operators.attention_backward(shape);
  const double bytes = memory_bound_bytes(model, layer, plan, load, operators);
  const double wide = wide_stream_bytes(model, layer, plan, operators);
  times.forward[StepPart::MemoryBound] += operators.memory_bound(bytes + wide);
  times.input_gradient[StepPart::MemoryBound] +=
      operators.memory_bound(kBackwardBytes * bytes + kWideBackward * wide);
  const RingBytes ring = ring_bytes(layer.attention, plan, operators.gathers_keys());
  times.forward[StepPart::MemoryBound] += operators.memory_bound(ring.forward);
  times.kept += operators.memory_bound(ring.forward);
  times.input_gradient[StepPart::MemoryBound] += operators.memory_bound(ring.backward);
  return times;
}

SimTime recomputed_selectively(const PassTimes& times, bool recomputes_products) {
  const StepParts& forward = times.forward;
  if (!recomputes_products) {
    return forward[StepPart::Attention];
  }
  const SimTime products = forward[StepPart::Linear] + forward[StepPart::Casts];
  return SimTime(products.picoseconds() / 2) + forward[StepPart::MemoryBound] - times.kept;
}

StepParts recomputed_fully(const PassTimes& times, FullRecompute kind) {
  StepParts parts = times.forward;
  if (kind != FullRecompute::Layer) {
    parts -= times.last_product;
  }
  if (kind == FullRecompute::Unprojected) {
    parts -= times.projections;
  }
  return parts;
}

PassTimes embedding_times(const Model& model, const ParallelPlan& plan,
                          const OperatorTimes& operators) {
  const double look_ups = model.token_types > 0 ? 2.0 : 1.0;
  const double bytes = look_ups * kEmbeddingBytes * elements(plan.tokens(), model.hidden, 1);
  PassTimes times;
  times.forward[StepPart::MemoryBound] = operators.memory_bound(bytes);
  if (!model.adapters) {
    times.weight_gradient[StepPart::MemoryBound] = operators.memory_bound(kBackwardBytes * bytes);
  }
  double weights = elements(vocabulary_of(model, plan), model.hidden, 1);
  for (const EndLinear& each : input_linears(model)) {
    add_end(model, gemm_of(model, each, plan), each.has_input_gradient, operators, StepPart::Linear,
            times);
    weights += static_cast<double>(each.weights());
  }
  add_weights(weights, model.adapters ? 0.0 : weights, plan, operators, times);
  return times;
}

PassTimes head_times(const Model& model, const ParallelPlan& plan, const OperatorTimes& operators) {
  const Gemm logits{.m = plan.tokens(), .n = vocabulary_of(model, plan), .k = model.hidden};
  const double count = elements(logits.m, logits.n, 1);
  PassTimes times;
  add_end(model, logits, true, operators, StepPart::Head, times);
  times.forward[StepPart::Head] += operators.memory_bound(kLogitBytesForward * count);
  times.input_gradient[StepPart::Head] += operators.memory_bound(kLogitBytesBackward * count);
  double weights = elements(logits.n, logits.k, 1);
  for (const EndLinear& each : output_linears(model)) {
    add_end(model, gemm_of(model, each, plan), each.has_input_gradient, operators, StepPart::Head,
            times);
    weights += static_cast<double>(each.weights());
  }
  add_head_elements(model, plan, operators, times);
  add_weights(weights, model.adapters ? 0.0 : weights, plan, operators, times);
  return times;
}

}  // namespace trainyard
