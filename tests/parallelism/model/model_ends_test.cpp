// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/model_ends.h"

#include <string>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

Model shipped(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

}  // namespace

TEST_CASE("a decoder has a vocabulary and nothing else at its ends", "[model]") {
  for (const char* const name : {"llama-3-8b", "gpt-3-175b", "bloom-176b", "deepseek-v3"}) {
    INFO(name);
    const Model model = shipped(name);
    REQUIRE(input_linears(model).empty());
    REQUIRE(layer_modulation(model).empty());
    REQUIRE(output_linears(model).empty());
    REQUIRE(largest_of(output_linears(model)) == 0);
    REQUIRE(learned_vectors(model) == model.learned_positions);
  }
}

TEST_CASE("linear layers at the ends are for tokens, patches or samples", "[model]") {
  const Model dit = shipped("dit-xl-2");
  const ParallelPlan plan{
      .tensor = 4, .has_sequence_parallelism = true, .micro_batch = 8, .sequence = 256};
  const std::vector<EndLinear> inputs = input_linears(dit);
  REQUIRE(inputs.size() == 3);
  REQUIRE(rows_of_rank(dit, inputs[0], plan) == 8 * 256);  // Of all tokens, on each tensor rank.
  REQUIRE(rows_of_rank(dit, inputs[1], plan) == 8);
  REQUIRE_FALSE(inputs[0].has_input_gradient);
  REQUIRE_FALSE(inputs[1].has_input_gradient);
  REQUIRE(inputs[2].has_input_gradient);
  REQUIRE(rows_of_rank(dit, layer_modulation(dit).front(), plan) == 8);
  REQUIRE(rows_of_token(dit, layer_modulation(dit).front(), 256) == 1.0 / 256.0);
  REQUIRE(parameters_of(layer_modulation(dit)) == 6 * 1152 * (1152 + 1));

  const Model bert = shipped("bert-large");
  const ParallelPlan of_text{
      .tensor = 4, .has_sequence_parallelism = true, .micro_batch = 8, .sequence = 512};
  const std::vector<EndLinear> outputs = output_linears(bert);
  REQUIRE(outputs.size() == 3);
  REQUIRE(rows_of_rank(bert, outputs[0], of_text) == 8 * 512 / 4);  // The transform.
  REQUIRE(rows_of_token(bert, outputs[0], 512) == 1.0);
  REQUIRE(rows_of_rank(bert, outputs[1], of_text) == 8);  // The pooler.
  REQUIRE(outputs[2].output == EndOutput::Prediction);
  REQUIRE(largest_of(outputs) == 1024 * 1024);

  const Model vit = shipped("vit-large-16");
  REQUIRE(learned_vectors(vit) == 197 + 1);
  REQUIRE(learned_vectors(bert) == 512 + 2);
  REQUIRE(learned_vectors(dit) == 256 + 1001);
  REQUIRE(rows_of_rank(vit, input_linears(vit).front(), {.micro_batch = 2, .sequence = 197}) ==
          2 * 196);
  REQUIRE(rows_of_token(vit, input_linears(vit).front(), 197) == 196.0 / 197.0);
}

}  // namespace trainyard
