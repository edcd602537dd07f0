// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/model_flops.h"

#include <vector>

#include "parallelism/model/model_ends.h"

namespace trainyard {
namespace {

// Weights of the matrices that a token is multiplied with: no biases, no norms.
double attention_weights(const Model& model, const Attention& attention) {
  const auto hidden = static_cast<double>(model.hidden);
  if (attention.grouped) {
    const auto& [heads, kv_heads, head_size] = *attention.grouped;
    return hidden * static_cast<double>((2 * heads + 2 * kv_heads) * head_size);
  }
  const LatentAttention& latent = *attention.latent;
  const auto queries = static_cast<double>(latent.heads * (latent.head_size + latent.rope_size));
  const auto rank = static_cast<double>(latent.query_rank);
  const auto kv_rank = static_cast<double>(latent.kv_rank);
  return (latent.query_rank == 0 ? hidden * queries : (hidden + queries) * rank) +
         hidden * (kv_rank + static_cast<double>(latent.rope_size)) +
         kv_rank * static_cast<double>(latent.heads * (latent.head_size + latent.value_size)) +
         hidden * static_cast<double>(latent.heads * latent.value_size);
}

double feed_forward_weights(const Model& model, const FeedForward& layer) {
  return static_cast<double>(layer.matrices() * layer.size * model.hidden);
}

// Returns the work of a token forward in products that full recomputation leaves out.
double not_again(const Model& model, FullRecompute kind) {
  double weights = 0.0;
  for (const ModelLayer& layer : model.layers) {
    if (kind == FullRecompute::Layer || !layer.feed_forward) {
      continue;
    }
    weights += static_cast<double>(layer.feed_forward->size * model.hidden);
    if (kind == FullRecompute::Unprojected && layer.attention.grouped) {
      const auto& [heads, kv_heads, size] = *layer.attention.grouped;
      weights += static_cast<double>((heads + 2 * kv_heads) * size * model.hidden);
    }
  }
  return 2.0 * weights;
}

// Returns the operations of a token.
double end_flops(const Model& model, const std::vector<EndLinear>& linears, std::int64_t sequence) {
  double sum = 0.0;
  for (const EndLinear& each : linears) {
    sum += 2.0 * static_cast<double>(each.weights()) * rows_of_token(model, each, sequence);
  }
  return sum;
}

}  // namespace

TokenFlops token_flops(const Model& model, std::int64_t sequence) {
  TokenFlops flops;
  flops.ends = 2.0 * static_cast<double>(model.vocabulary * model.hidden) +
               end_flops(model, input_linears(model), sequence) +
               end_flops(model, output_linears(model), sequence);
  const double modulation = end_flops(model, layer_modulation(model), sequence);
  for (const ModelLayer& layer : model.layers) {
    const Attention& attention = layer.attention;
    flops.linear += 2.0 * attention_weights(model, attention) + modulation;
    flops.attention += 2.0 * static_cast<double>(sequence * attention.heads() *
                                                 (attention.query_size() + attention.value_size()));
    if (layer.feed_forward) {
      flops.linear += 2.0 * feed_forward_weights(model, *layer.feed_forward);
      continue;
    }
    const Experts& experts = *layer.experts;
    flops.linear +=
        2.0 * (static_cast<double>(experts.active) * feed_forward_weights(model, experts.expert) +
               static_cast<double>(model.hidden * experts.count));
    if (experts.shared) {
      flops.linear += 2.0 * feed_forward_weights(model, *experts.shared);
    }
  }
  return flops;
}

std::string_view to_string(FlopsConvention convention) {
  switch (convention) {
    case FlopsConvention::HardwareFullRecompute:
      return "hardware, full recompute (arXiv 2104.04473)";
    case FlopsConvention::Model:
      return "model (arXiv 2205.05198)";
    case FlopsConvention::HardwareSelectiveRecompute:
      return "hardware, selective recompute (arXiv 2205.05198)";
    case FlopsConvention::ModelCausal:
      return "model, causal (Megatron-Core since 2025)";
    case FlopsConvention::Palm:
      return "6 N + attention (arXiv 2204.02311)";
  }
  return "";
}

double training_flops(const Model& model, std::int64_t sequence, FlopsConvention convention) {
  const auto [linear, attention, ends] = token_flops(model, sequence);
  switch (convention) {
    case FlopsConvention::HardwareFullRecompute:
      return 4.0 * (linear + attention) + 3.0 * ends;
    case FlopsConvention::Model:
      return 3.0 * (linear + attention + ends);
    case FlopsConvention::HardwareSelectiveRecompute:
      return 3.0 * (linear + 2.0 * attention + ends);
    case FlopsConvention::ModelCausal:
      return 3.0 * (linear + 0.5 * attention + ends);
    case FlopsConvention::Palm:
      return 6.0 * static_cast<double>(active_parameters_of(model)) + 3.0 * attention;
  }
  return 0.0;
}

double recomputed_flops(const Model& model, std::int64_t sequence, Recompute recompute,
                        const SoftwareProfile& software) {
  const auto [linear, attention, ends] = token_flops(model, sequence);
  switch (recompute) {
    case Recompute::None:
      break;
    case Recompute::Selective:
      return software.recomputes_products ? 0.5 * linear : attention;
    case Recompute::Full:
      return linear + attention - not_again(model, software.full_recompute);
  }
  return 0.0;
}

}  // namespace trainyard
