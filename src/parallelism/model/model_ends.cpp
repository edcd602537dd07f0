// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/model_ends.h"

#include <algorithm>

namespace trainyard {
namespace {

// Shift, scale and gate, of attention and of the feed-forward; shift and scale of the last norm.
constexpr std::int64_t kVectorsOfLayer = 6;
constexpr std::int64_t kVectorsOfEnd = 2;

EndLinear linear(const Model& model, std::int64_t inputs, std::int64_t outputs, EndRows rows,
                 EndOutput output = EndOutput::Hidden) {
  return {.inputs = inputs,
          .outputs = outputs,
          .rows = rows,
          .output = output,
          .has_bias = model.bias == Bias::All};
}

}  // namespace

std::vector<EndLinear> input_linears(const Model& model) {
  std::vector<EndLinear> linears;
  const std::int64_t h = model.hidden;
  if (model.patches) {
    linears.push_back(linear(model, model.patches->elements(), h, EndRows::Patches));
    linears.back().has_input_gradient = false;
  }
  if (model.modulation) {
    linears.push_back(linear(model, model.modulation->frequencies, h, EndRows::Samples));
    linears.back().has_input_gradient = false;
    linears.push_back(linear(model, h, h, EndRows::Samples));
  }
  return linears;
}

std::vector<EndLinear> layer_modulation(const Model& model) {
  if (!model.modulation) {
    return {};
  }
  return {linear(model, model.hidden, kVectorsOfLayer * model.hidden, EndRows::Samples)};
}

std::vector<EndLinear> output_linears(const Model& model) {
  std::vector<EndLinear> linears;
  const std::int64_t h = model.hidden;
  const ModelHead& head = model.head;
  if (model.modulation) {
    linears.push_back(linear(model, h, kVectorsOfEnd * h, EndRows::Samples));
  }
  if (head.has_transform) {
    linears.push_back(linear(model, h, h, EndRows::Tokens, EndOutput::Transform));
  }
  if (head.has_pooler) {
    linears.push_back(linear(model, h, h, EndRows::Samples));
  }
  if (head.classes > 0) {
    linears.push_back(linear(model, h, head.classes, EndRows::Samples, EndOutput::Prediction));
  }
  if (head.channels > 0) {
    const std::int64_t outputs = model.patches->size * model.patches->size * head.channels;
    linears.push_back(linear(model, h, outputs, EndRows::Patches, EndOutput::Prediction));
  }
  return linears;
}

std::int64_t learned_vectors(const Model& model) {
  return model.learned_positions + model.token_types +
         (model.patches && model.patches->has_class_token ? 1 : 0) +
         (model.modulation ? model.modulation->labels : 0);
}

std::int64_t parameters_of(const std::vector<EndLinear>& linears) {
  std::int64_t sum = 0;
  for (const EndLinear& each : linears) {
    sum += each.parameters();
  }
  return sum;
}

std::int64_t largest_of(const std::vector<EndLinear>& linears) {
  std::int64_t max = 0;
  for (const EndLinear& each : linears) {
    max = std::max(max, each.weights());
  }
  return max;
}

double rows_of_token(const Model& model, const EndLinear& linear, std::int64_t sequence) {
  const std::int64_t rows = linear.rows == EndRows::Tokens    ? sequence
                            : linear.rows == EndRows::Patches ? model.patches->count()
                                                              : 1;
  return static_cast<double>(rows) / static_cast<double>(sequence);
}

// With sequence parallelism the transform has its rank's tokens, and what is behind it all of them.
std::int64_t rows_of_rank(const Model& model, const EndLinear& linear, const ParallelPlan& plan) {
  if (linear.rows == EndRows::Samples) {
    return plan.micro_batch;
  }
  if (linear.rows == EndRows::Patches) {
    return ceil_divide(plan.micro_batch * model.patches->count(), plan.context);
  }
  return plan.has_sequence_parallelism ? plan.tokens() / plan.tensor : plan.tokens();
}

}  // namespace trainyard
