// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/adapters.h"

#include <string>
#include <vector>

#include "parallelism/model/activation_memory.h"
#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard {
namespace {

Model adapted(const std::string& name, const Adapters& adapters) {
  Model model = load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
  model.adapters = adapters;
  return model;
}

std::int64_t trained(const Model& model, std::int64_t tensor = 1) {
  std::int64_t sum = 0;
  for (const ModelLayer& layer : model.layers) {
    for (const AdaptedMatrix& matrix : adapted_matrices(model, layer, tensor)) {
      sum += matrix.parameters(model.adapters->rank);
    }
  }
  return sum;
}

std::int64_t kept_bytes(const Model& model) {
  const ParallelPlan plan{.sequence = 4096};
  return saved_bytes(saved_tensors(model, model.layers.front(), plan, {}), plan.tokens())
      .forward.count();
}

}  // namespace

// As print_trainable_parameters() of huggingface/peft has them for Llama 2 7B.
TEST_CASE("adapters have the parameters that PEFT counts", "[adapters]") {
  REQUIRE(trained(adapted("llama-2-7b", {.rank = 16})) == 39'976'960);
  REQUIRE(trained(adapted("llama-2-7b",
                          {.rank = 8, .targets = {AdapterTarget::Query, AdapterTarget::Value}})) ==
          4'194'304);
  // No gate; keys and values of groups.
  REQUIRE(trained(adapted("gpt-3-175b", {.rank = 1})) == 96 * 12'288 * (8 + 2 * 5));
  REQUIRE(trained(adapted("llama-3-8b", {.rank = 1, .targets = {AdapterTarget::Key}})) ==
          32 * (4096 + 1024));
  REQUIRE(adapted_matrices(load_model(kConfigsFolder / "workloads/models/llama-2-7b.yaml"), {}, 1)
              .empty());
}

TEST_CASE("tensor ranks share one half of an adapter and have the other alike", "[adapters]") {
  const Model model = adapted("llama-2-7b", {.rank = 4});
  std::int64_t replicated = 0;
  for (const AdaptedMatrix& matrix : adapted_matrices(model, model.layers.front(), 8)) {
    replicated += matrix.replicated(4);
  }
  REQUIRE(replicated == 7 * 4 * 4096);
  REQUIRE(trained(model, 8) - 32 * replicated == (trained(model) - 32 * replicated) / 8);
}

// arXiv 2305.14314, section 3: scales take 0.127 bits for each parameter.
TEST_CASE("a weight in NF4 has 4 bits and its share of two kinds of scales", "[adapters]") {
  REQUIRE(nf4_bytes(16'384) == 8192 + 256 + 4);
  REQUIRE(nf4_bytes(1) == 1 + 1 + 4);
  REQUIRE(nf4_bytes(0) == 0);
  REQUIRE(kNf4BytesOfWeight * 8.0 == Approx(4.127).margin(0.0005));
}

TEST_CASE("of the inputs of frozen matrices those that adapters need are kept", "[adapters]") {
  const Model all = adapted("llama-2-7b", {.rank = 16});
  const Model queries = adapted("llama-2-7b", {.rank = 16, .targets = {AdapterTarget::Query}});
  const std::int64_t of_token = 2 * 4096;
  // Without those of the feed-forward; that of the output of attention is kept by attention.
  REQUIRE(kept_bytes(all) - kept_bytes(queries) ==
          (of_token + 2 * std::int64_t{11'008} + 2 * 16 * 6) * 4096);
  Model plain = all;
  plain.adapters.reset();
  REQUIRE(kept_bytes(all) - kept_bytes(plain) == 2 * 16 * 7 * 4096);
}

TEST_CASE("adapters are described with what they leave frozen", "[adapters]") {
  REQUIRE(describe_adapters(adapted("llama-2-7b", {.rank = 16, .is_quantised = true})) ==
          "adapters of rank 16 beside all linear layers: 40.0 million parameters are trained, 6738 "
          "million are frozen, those of linear layers in NF4; model FLOPs have no gradients of "
          "frozen weights (docs/models/step.md)");
}

}  // namespace trainyard
