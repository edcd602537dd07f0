// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/rank_parameters.h"

#include <string>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

Model shipped_parameters(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

std::int64_t all_of(const Model& model, const ParallelPlan& plan) {
  std::int64_t total = rank_embedding_parameters(model, plan) +
                       rank_head(model, plan, model.has_tied_embeddings).dense;
  for (const ModelLayer& layer : model.layers) {
    total += rank_parameters(model, layer, plan).total();
  }
  return total;
}

}  // namespace

TEST_CASE("one rank has all parameters of a model", "[memory]") {
  for (const char* name :
       {"bloom-176b", "deepseek-v3", "gpt-3-175b", "llama-3-405b", "mixtral-8x22b", "mpt-7b",
        "qwen3-30b-a3b", "qwen3-32b", "bert-base", "bert-large", "vit-large-16", "dit-xl-2"}) {
    INFO(name);
    const Model model = shipped_parameters(name);
    REQUIRE(all_of(model, {}) == parameters_of(model).total());
  }
}

TEST_CASE("tensor ranks cut matrices and share what is small", "[memory]") {
  const Model model = shipped_parameters("llama-3-70b");
  const ParallelPlan plan{.tensor = 8};
  const ModelLayer& layer = model.layers.front();
  const std::int64_t norms = 2 * model.hidden;
  REQUIRE((rank_parameters(model, layer, plan).dense - norms) * 8 ==
          parameters_of(model, layer).total() - norms);
  // 8 groups of keys and values on 16 ranks: each has one.
  const std::vector<WeightMatrix> matrices = rank_matrices(model, layer, {.tensor = 16});
  REQUIRE(matrices.front().outputs == (64 / 16 + 2) * 128);
}

TEST_CASE("tensor ranks have what is at the ends in full, but for the vocabulary", "[memory]") {
  const Model bert = shipped_parameters("bert-base");
  const ParallelPlan plan{.tensor = 2};
  const std::int64_t vocabulary = 30'522 * 768;
  REQUIRE(rank_embedding_parameters(bert, {}) - rank_embedding_parameters(bert, plan) ==
          vocabulary / 2);
  REQUIRE(rank_head_parameters(bert, {}) - rank_head_parameters(bert, plan) ==
          (vocabulary + 30'522) / 2);
  REQUIRE(rank_head(bert, plan, false).dense == rank_head_parameters(bert, plan));  // No last norm.
  const Model dit = shipped_parameters("dit-xl-2");
  REQUIRE(rank_logit_parameters(dit, plan) == 0);
  REQUIRE(rank_embedding_parameters(dit, plan) == parameters_of(dit).embedding);
  REQUIRE(rank_head_parameters(dit, plan) == parameters_of(dit).head);
  // Patches, two of the time step, the labels; shift and scale, and the outputs.
  REQUIRE(held_parameters(dit, plan, {}, {.place = StepPlace::Embedding}).dense_matrices == 4);
  REQUIRE(rank_head(dit, plan, false).dense_matrices == 2);
  const ModelLayer& layer = dit.layers.front();
  REQUIRE(rank_matrices(dit, layer, plan)[2].elements() == 6 * 1152 * 1152);
  const ParameterCount whole = parameters_of(dit, layer);
  // Biases of outputs are whole on each rank.
  REQUIRE(rank_parameters(dit, layer, plan).dense ==
          whole.modulation + (whole.attention + whole.feed_forward) / 2 + 1152);
}

TEST_CASE("experts are cut by expert ranks, not by tensor ranks", "[memory]") {
  const Model model = shipped_parameters("mixtral-8x7b");
  const ModelLayer& layer = model.layers.front();
  const std::int64_t experts = parameters_of(model, layer).experts;
  const ParallelPlan plan{.tensor = 4, .data = 8, .expert = 8, .expert_tensor = 2};
  REQUIRE(rank_parameters(model, layer, plan).expert == experts / 16);
  REQUIRE(rank_parameters(model, layer, {.tensor = 4}).expert == experts);
}

TEST_CASE("weights are counted one by one, gates and experts for themselves", "[memory]") {
  const Model dense = shipped_parameters("llama-3-8b");
  const Model mixture = shipped_parameters("mixtral-8x7b");
  const ParallelPlan plan;
  // Queries, keys and values are one; output, gate, up and down.
  REQUIRE(rank_parameters(dense, dense.layers[0], plan).dense_matrices == 5);
  REQUIRE(rank_parameters(dense, dense.layers[0], plan).expert_matrices == 0);
  const RankParameters experts = rank_parameters(mixture, mixture.layers[0], plan);
  REQUIRE(experts.dense_matrices == 3);  // With the router.
  REQUIRE(experts.expert_matrices == 8 * 3);
}

TEST_CASE("with adapters a rank trains these alone and holds the rest frozen", "[memory]") {
  Model model = shipped_parameters("llama-2-7b");
  const auto held = [&](const ParallelPlan& plan) {
    return stage_parameters(model, {.layers = 32, .has_embedding = true, .has_head = true}, plan);
  };
  const std::int64_t all = held({}).total();
  REQUIRE(held({}).frozen_bytes == 0);
  model.adapters = Adapters{.rank = 16};
  REQUIRE(held({}).total() == 39'976'960);
  REQUIRE(held({}).dense_matrices == 32 * 7 * 2);
  REQUIRE(held({}).frozen_bytes == 2 * all);
  REQUIRE(held({}).replicated == 0);
  REQUIRE(held({.tensor = 2}).replicated == 32 * 7 * 16 * 4096);
  // Embedding, head and norms stay as they are.
  model.adapters->is_quantised = true;
  const std::int64_t linear = std::int64_t{32} * (4 * 4096 * 4096 + 3 * 4096 * 11'008);
  REQUIRE(held({}).frozen_bytes == 2 * (all - linear) + linear / 2 + linear / 64 + linear / 4096);
}

}  // namespace trainyard
