// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/lowering/graph_lowering.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/step_rates.h"

namespace trainyard {
namespace {

struct LoweringCase {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ParallelPlan plan;
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  Overlap overlap = {};

  [[nodiscard]] StepGraph lower(Folding folding) const {
    const std::vector<int> servers(static_cast<std::size_t>(plan.ranks()));
    return lower_step({.model = model,
                       .plan = plan,
                       .rates = rates,
                       .software = software,
                       .overlap = overlap,
                       .server_of_rank = servers},
                      folding);
  }
};

// Operations of rank 0 whose name has this in it, in order.
std::vector<OperationId> named(const OperationGraph& graph, const std::string& text) {
  std::vector<OperationId> found;
  for (std::uint32_t id = 0; id < graph.operations().size(); ++id) {
    if (graph.rank_of(OperationId(id)) == 0 &&
        graph.name_of(OperationId(id)).find(text) != std::string::npos) {
      found.emplace_back(id);
    }
  }
  return found;
}

bool waits_for(const OperationGraph& graph, OperationId after, OperationId before) {
  return std::any_of(
      graph.dependencies().begin(), graph.dependencies().end(),
      [&](const GraphDependency& each) { return each.before == before && each.after == after; });
}

}  // namespace

TEST_CASE("a folded graph has one rank for each of the pipeline", "[graph_lowering]") {
  const LoweringCase step{.plan = {.tensor = 2, .pipeline = 4, .data = 2, .global_batch = 16}};
  const StepGraph folded = step.lower(Folding::Folded);
  REQUIRE(folded.graph.ranks() == 16);
  REQUIRE(folded.graph.present().size() == 4);
  const StepGraph whole = step.lower(Folding::Unfolded);
  REQUIRE(whole.graph.present().size() == 16);
  REQUIRE(whole.graph.operations().size() == 4 * folded.graph.operations().size());
  REQUIRE(folded.passes.size() == 4 * 2 * 8);
  for (const StepGraph* each : {&folded, &whole}) {
    REQUIRE_NOTHROW(check(each->graph, "test"));
  }
}

TEST_CASE("with overlap gradients are reduced in buckets, each when its last layer is done",
          "[graph_lowering]") {
  LoweringCase step{.plan = {.data = 4, .zero_stage = 1, .global_batch = 8}};
  REQUIRE(named(step.lower(Folding::Folded).graph, "gradients to").empty());
  step.overlap.data = true;
  const StepGraph lowered = step.lower(Folding::Folded);
  // A layer has 218 million parameters, more than a bucket; embedding and head have their own.
  const std::vector<OperationId> buckets = named(lowered.graph, "gradients to");
  REQUIRE(buckets.size() == 34);
  const std::vector<OperationId> backward = named(lowered.graph, "backward layer 31");
  REQUIRE(waits_for(lowered.graph, buckets[1], backward.back()));
  const std::vector<OperationId> weights = named(lowered.graph, "weights");
  REQUIRE(weights.size() == 34);
  const std::vector<OperationId> forward = named(lowered.graph, "forward layer 0");
  REQUIRE(waits_for(lowered.graph, forward.front(), weights[1]));
  REQUIRE_FALSE(waits_for(lowered.graph, forward.back(), weights[1]));
}

TEST_CASE("the first bucket of DistributedDataParallel is small, others as large as was said",
          "[graph_lowering]") {
  LoweringCase step{.plan = {.data = 4, .global_batch = 8, .bucket = gib(1)}};
  step.overlap.data = true;
  step.software.buckets = BucketRule::PyTorch;
  // The head; ten times three layers, of which two have 872 MB in 16 bits; two and the embedding.
  REQUIRE(named(step.lower(Folding::Folded).graph, "gradients to").size() == 12);
  // With ZeRO each unit, as FSDP wraps them: 32 layers and the two ends.
  step.plan.zero_stage = 2;
  REQUIRE(named(step.lower(Folding::Folded).graph, "gradients to").size() == 34);
}

TEST_CASE("with ZeRO 3 the next weights are gathered while a layer runs", "[graph_lowering]") {
  LoweringCase step{.plan = {.data = 4, .zero_stage = 3, .global_batch = 8}};
  step.overlap.data = true;
  const StepGraph lowered = step.lower(Folding::Folded);
  const std::vector<OperationId> gathers = named(lowered.graph, "weights of layer 5");
  const std::vector<OperationId> before = named(lowered.graph, "forward layer 3");
  const std::vector<OperationId> after = named(lowered.graph, "forward layer 5");
  REQUIRE(waits_for(lowered.graph, gathers.front(), before.front()));
  REQUIRE(waits_for(lowered.graph, after.front(), gathers.front()));
}

TEST_CASE("tied embeddings are summed between the ends of the pipeline", "[graph_lowering]") {
  LoweringCase step{.plan = {.pipeline = 4, .global_batch = 8}};
  REQUIRE(named(step.lower(Folding::Folded).graph, "tied").empty());
  step.model.has_tied_embeddings = true;
  REQUIRE(named(step.lower(Folding::Folded).graph, "tied").size() == 1);
}

}  // namespace trainyard
