// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/pipeline_schedule.h"
#include "parallelism/workload/workload_text.h"

#include <string>
#include <vector>

#include "parallelism/workload/workload.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::filesystem::path kTextModels = kConfigsFolder / "workloads" / "models";

// Writes the workload with a plan into another folder and reads it there.
Workload written(const std::filesystem::path& file, const std::vector<std::string>& settings,
                 const ParallelPlan& plan) {
  const ScratchFolder folder;
  const std::string text = workload_with_plan(file, kTextModels, settings, plan, "found: 'here'");
  return load_workload(folder.write("best.yaml", text), kTextModels);
}

ParallelPlan other_plan() {
  return {.tensor = 2,
          .has_sequence_parallelism = true,
          .context = 2,
          .context_kind = ContextParallelism::AllToAll,
          .pipeline = 4,
          .schedule = &kInterleaved,
          .chunks = 3,
          .data = 8,
          .zero_stage = 1,
          .shard_group = 4,
          .micro_batch = 2,
          .global_batch = 128,
          .sequence = 1024,
          .recompute = Recompute::Selective,
          .offload = {.activations = true},
          .compression = GradientCompression{.method = CompressionMethod::TopK, .ratio = 0.125},
          .stage_layers = {1, 2, 3},
          .order = {PlanAxis::Data, PlanAxis::Tensor, PlanAxis::Pipeline, PlanAxis::Context}};
}

void require_plan(const Workload& workload, const ParallelPlan& plan) {
  const ParallelPlan& read = workload.plan;
  REQUIRE_FALSE(workload.data_fills_cluster);
  REQUIRE(read.tensor == plan.tensor);
  REQUIRE(read.has_sequence_parallelism == plan.has_sequence_parallelism);
  REQUIRE(read.context == plan.context);
  REQUIRE(read.context_kind == plan.context_kind);
  REQUIRE(read.pipeline == plan.pipeline);
  REQUIRE(read.schedule == plan.schedule);
  REQUIRE(read.chunks == plan.chunks);
  REQUIRE(read.data == plan.data);
  REQUIRE(read.expert == plan.expert);
  REQUIRE(read.expert_tensor == plan.expert_tensor);
  REQUIRE(read.zero_stage == plan.zero_stage);
  REQUIRE(read.shard_group == plan.shard_group);
  REQUIRE(read.micro_batch == plan.micro_batch);
  REQUIRE(read.global_batch == plan.global_batch);
  REQUIRE(read.sequence == plan.sequence);
  REQUIRE(read.recompute == plan.recompute);
  REQUIRE(read.offload.optimizer == plan.offload.optimizer);
  REQUIRE(read.offload.activations == plan.offload.activations);
  REQUIRE(read.compression == plan.compression);
  REQUIRE(read.stage_layers == plan.stage_layers);
  REQUIRE(read.order == plan.order);
}

}  // namespace

TEST_CASE("a workload with another plan is read as that", "[workload-text]") {
  for (const char* name : {"gpt-3-175b", "llama-3-8b", "llama-3-405b", "mixtral-8x7b"}) {
    INFO(name);
    const std::filesystem::path file = kConfigsFolder / "workloads" / (std::string(name) + ".yaml");
    const Workload workload = written(file, {}, other_plan());
    require_plan(workload, other_plan());
    const Workload before = load_workload(file, kTextModels);
    REQUIRE(workload.model.title == before.model.title);
    REQUIRE(workload.model.layers == before.model.layers);
    REQUIRE(workload.software == before.software);
    REQUIRE(workload.precision == before.precision);
  }
}

TEST_CASE("what was set is written", "[workload-text]") {
  const Workload workload =
      written(kConfigsFolder / "workloads" / "llama-3-8b.yaml",
              {"software=nemo", "model.layers.0.count=12", "overlap.tensor=true", "batch.micro=64"},
              other_plan());
  require_plan(workload, other_plan());
  REQUIRE(workload.software == "nemo");
  REQUIRE(workload.model.layers.size() == 12);
  REQUIRE(workload.overlap.tensor == true);
}

TEST_CASE("a model beside its workload is written out", "[workload-text]") {
  const ScratchFolder folder;
  (void)folder.write("mine.yaml", read_text_file(kTextModels / "llama-3-8b.yaml"));
  const std::filesystem::path file = folder.write("work.yaml", R"(title: mine
source: "nowhere"
model: ./mine.yaml
software: nemo
plan: {tensor: 2}
batch: {micro: 1, global: 8, sequence: 1024}
)");
  REQUIRE(written(file, {}, other_plan()).model.layers.size() == 32);
}

}  // namespace trainyard
