// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/model_flops.h"

#include <vector>

#include "parallelism/model/adapters.h"
#include "parallelism/model/model_ends.h"
#include "parallelism/operators/rank_parameters.h"

namespace trainyard {
namespace {

// Weights of the matrices of a layer that a token is multiplied with: no biases, no norms, and not
// the modulation, which is for each sample.
double token_weights(const Model& model, const ModelLayer& layer) {
  std::int64_t sum = 0;
  for (const WeightMatrix& matrix : rank_matrices(model, layer, {})) {
    sum += matrix.elements() * (matrix.is_expert ? layer.experts->active : 1);
  }
  for (const EndLinear& each : layer_modulation(model)) {
    sum -= each.weights();
  }
  return static_cast<double>(sum);
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

// Returns the operations of a token forward.
double adapter_flops(const Model& model) {
  double sum = 0.0;
  for (const ModelLayer& layer : model.layers) {
    for (const AdaptedMatrix& matrix : adapted_matrices(model, layer, 1)) {
      sum += 2.0 * static_cast<double>(matrix.parameters(model.adapters->rank));
    }
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
    flops.linear += 2.0 * token_weights(model, layer) + modulation;
    flops.attention += 2.0 * attention.window_share(sequence) *
                       static_cast<double>(sequence * attention.heads() *
                                           (attention.query_size() + attention.value_size()));
  }
  return flops;
}

std::string_view to_string(FlopsConvention convention) {
  constexpr std::array<std::string_view, kFlopsConventions.size()> kNames{
      "hardware, full recompute (arXiv 2104.04473)", "model (arXiv 2205.05198)",
      "hardware, selective recompute (arXiv 2205.05198)",
      "model, causal (Megatron-Core since 2025)", "6 N + attention (arXiv 2204.02311)"};
  return kNames.at(static_cast<std::size_t>(convention));
}

double training_flops(const Model& model, std::int64_t sequence, FlopsConvention convention) {
  const auto [linear, attention, ends] = token_flops(model, sequence);
  const double adapters = adapter_flops(model);
  const double passes = model.adapters ? 2.0 : 3.0;
  switch (convention) {
    case FlopsConvention::HardwareFullRecompute:
      return (passes + 1.0) * linear + 4.0 * (attention + adapters) + passes * ends;
    case FlopsConvention::Model:
      return passes * (linear + ends) + 3.0 * (attention + adapters);
    case FlopsConvention::HardwareSelectiveRecompute:
      return passes * (linear + ends) + 3.0 * (2.0 * attention + adapters);
    case FlopsConvention::ModelCausal:
      return passes * (linear + ends) + 3.0 * (0.5 * attention + adapters);
    case FlopsConvention::Palm:
      return 2.0 * passes * static_cast<double>(active_parameters_of(model)) +
             3.0 * (attention + adapters);
  }
  return 0.0;
}

double recomputed_flops(const Model& model, std::int64_t sequence, Recompute recompute,
                        const SoftwareProfile& software) {
  const auto [linear, attention, ends] = token_flops(model, sequence);
  const double adapters = adapter_flops(model);
  if (recompute == Recompute::Selective) {
    return software.recomputes_products ? 0.5 * (linear + adapters) : attention;
  }
  return recompute == Recompute::Full
             ? linear + adapters + attention - not_again(model, software.full_recompute)
             : 0.0;
}

}  // namespace trainyard
