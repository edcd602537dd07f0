// SPDX-License-Identifier: Apache-2.0
// Linear layers beside attention, feed-forwards and the matrix of the vocabulary: those that make
// tokens of patches and a vector of a time step, those that modulate layers, and those behind the
// last layer. Some are for each token, others for each sample alone. All tensor ranks have them in
// full, as in Megatron-LM (megatron/core/models/vision, models/bert) and NeMo's DiT.
#pragma once

#include <cstdint>
#include <vector>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"

namespace trainyard {

enum class EndRows : std::uint8_t { Tokens, Patches, Samples };

enum class EndOutput : std::uint8_t {
  Hidden,      // Goes on.
  Transform,   // Goes on, through a norm.
  Prediction,  // Goes to the loss.
};

struct EndLinear {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  EndRows rows = EndRows::Tokens;
  EndOutput output = EndOutput::Hidden;
  bool has_bias = false;
  bool has_input_gradient = true;  // Not where data go in.

  [[nodiscard]] std::int64_t weights() const { return inputs * outputs; }
  [[nodiscard]] std::int64_t parameters() const { return weights() + (has_bias ? outputs : 0); }
};

// Returns the layers before the others: the patches, and the two of the time step.
[[nodiscard]] std::vector<EndLinear> input_linears(const Model& model);
// Returns the modulation of each layer: shifts, scales and gates, if any.
[[nodiscard]] std::vector<EndLinear> layer_modulation(const Model& model);
// Returns what stands behind the layers, without the matrix of the vocabulary.
[[nodiscard]] std::vector<EndLinear> output_linears(const Model& model);

// Vectors of h elements before the layers: positions, types of tokens, a class token, labels.
[[nodiscard]] std::int64_t learned_vectors(const Model& model);

// Returns the parameters of all, with the bias of those that have one.
[[nodiscard]] std::int64_t parameters_of(const std::vector<EndLinear>& linears);
// Weights of the largest; 0 if there is none.
[[nodiscard]] std::int64_t largest_of(const std::vector<EndLinear>& linears);

// Returns the rows for each token of a sequence, on average.
[[nodiscard]] double rows_of_token(const Model& model, const EndLinear& linear,
                                   std::int64_t sequence);
// Returns the rows of a micro-batch on one rank.
[[nodiscard]] std::int64_t rows_of_rank(const Model& model, const EndLinear& linear,
                                        const ParallelPlan& plan);

}  // namespace trainyard
