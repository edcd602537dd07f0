// SPDX-License-Identifier: Apache-2.0
#include "parallelism/rank_parameters.h"

#include <string>

#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

Model shipped(const std::string& name) {
  return load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
}

std::int64_t all_of(const Model& model, const ParallelPlan& plan) {
  std::int64_t total = rank_embedding_parameters(model, plan) + last_norm_parameters(model) +
                       (model.has_tied_embeddings ? 0 : rank_head_parameters(model, plan));
  for (const ModelLayer& layer : model.layers) {
    total += rank_parameters(model, layer, plan).total();
  }
  return total;
}

}  // namespace

TEST_CASE("one rank has all parameters of a model", "[memory]") {
  for (const char* name : {"bloom-176b", "deepseek-v3", "gpt-3-175b", "llama-3-405b",
                           "mixtral-8x22b", "mpt-7b", "qwen3-30b-a3b", "qwen3-32b"}) {
    INFO(name);
    const Model model = shipped(name);
    REQUIRE(all_of(model, {}) == parameters_of(model).total());
  }
}

TEST_CASE("tensor ranks cut matrices and share what is small", "[memory]") {
  const Model model = shipped("llama-3-70b");
  const ParallelPlan plan{.tensor = 8};
  const ModelLayer& layer = model.layers.front();
  const std::int64_t norms = 2 * model.hidden;
  REQUIRE((rank_parameters(model, layer, plan).dense - norms) * 8 ==
          parameters_of(model, layer).total() - norms);
  // 8 groups of keys and values on 16 ranks: each has one.
  const std::vector<WeightMatrix> matrices = rank_matrices(model, layer, {.tensor = 16});
  REQUIRE(matrices.front().outputs == (64 / 16 + 2) * 128);
}

TEST_CASE("experts are cut by expert ranks, not by tensor ranks", "[memory]") {
  const Model model = shipped("mixtral-8x7b");
  const ModelLayer& layer = model.layers.front();
  const std::int64_t experts = parameters_of(model, layer).experts;
  const ParallelPlan plan{.tensor = 4, .data = 8, .expert = 8, .expert_tensor = 2};
  REQUIRE(rank_parameters(model, layer, plan).expert == experts / 16);
  REQUIRE(rank_parameters(model, layer, {.tensor = 4}).expert == experts);
}

TEST_CASE("weights are counted one by one, gates and experts for themselves", "[memory]") {
  const Model dense = shipped("llama-3-8b");
  const Model mixture = shipped("mixtral-8x7b");
  const ParallelPlan plan;
  // Queries, keys and values are one; output, gate, up and down.
  REQUIRE(rank_parameters(dense, dense.layers[0], plan).dense_matrices == 5);
  REQUIRE(rank_parameters(dense, dense.layers[0], plan).expert_matrices == 0);
  const RankParameters experts = rank_parameters(mixture, mixture.layers[0], plan);
  REQUIRE(experts.dense_matrices == 3);  // With the router.
  REQUIRE(experts.expert_matrices == 8 * 3);
}

}  // namespace trainyard
