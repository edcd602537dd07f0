// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pipeline_stages.h"

#include <vector>

#include "parallelism/model/pipeline_schedule.h"
#include "support/catch.h"

namespace trainyard {
namespace {

std::vector<int> layers_of(int layers, int pipeline, int chunks, std::vector<int> given = {}) {
  Model model;
  model.layers.resize(static_cast<std::size_t>(layers));
  const ParallelPlan plan{.pipeline = pipeline,
                          .schedule = chunks == 1 ? &kOneForwardOneBackward : &kInterleaved,
                          .chunks = chunks,
                          .stage_layers = std::move(given)};
  std::vector<int> found;
  int first = 0;
  const std::vector<PipelineStage> stages = pipeline_stages(plan, model);
  for (const PipelineStage& stage : stages) {
    REQUIRE(stage.first_layer == first);
    REQUIRE(stage.has_embedding == found.empty());
    first += stage.layers;
    found.push_back(stage.layers);
    REQUIRE(stage.has_head == (found.size() == stages.size()));
  }
  REQUIRE(first == layers);
  return found;
}

}  // namespace

TEST_CASE("layers are sharded evenly, with the ends as layers where that comes out", "[stages]") {
  REQUIRE(layers_of(12, 4, 1) == std::vector<int>{3, 3, 3, 3});
  REQUIRE(layers_of(3, 1, 1) == std::vector<int>{3});
  REQUIRE(layers_of(14, 4, 1) == std::vector<int>{3, 4, 4, 3});
  REQUIRE(layers_of(15, 4, 1) == std::vector<int>{4, 4, 4, 3});
  REQUIRE(layers_of(13, 4, 1) == std::vector<int>{3, 4, 3, 3});
  REQUIRE(layers_of(70, 4, 1) == std::vector<int>{17, 18, 18, 17});
  // Llama 3 405B: a chunk with the embedding alone and one with the head alone.
  const std::vector<int> llama = layers_of(126, 16, 8);
  REQUIRE(llama.size() == 128);
  REQUIRE(llama.front() == 0);
  REQUIRE(llama[1] == 1);
  REQUIRE(llama.back() == 0);
}

TEST_CASE("a plan may say which stage has how many layers", "[stages]") {
  REQUIRE(layers_of(10, 4, 1, {1, 4, 4, 1}) == std::vector<int>{1, 4, 4, 1});
}

}  // namespace trainyard
