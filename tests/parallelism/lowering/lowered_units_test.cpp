// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/lowering/lowered_units.h"
#include "parallelism/model/pipeline_schedule.h"

#include <vector>

#include "parallelism/walk/step_traffic.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

struct UnitsCase {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ParallelPlan plan;
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  std::vector<int> servers = {};

  [[nodiscard]] StepJob job() const {
    return {.model = model,
            .plan = plan,
            .rates = rates,
            .software = software,
            .overlap = {},
            .server_of_rank = servers};
  }
};

}  // namespace

TEST_CASE("the units of a stage have its parameters", "[lowered_units]") {
  for (const bool is_tied : {false, true}) {
    for (const int pipeline : {1, 4}) {
      UnitsCase step;
      step.model.has_tied_embeddings = is_tied;
      step.plan.pipeline = pipeline;
      step.plan.global_batch = 8;
      const StepJob job = step.job();
      OperationGraph graph(pipeline);
      const StepUnits units(job, graph);
      for (int place = 0; place < pipeline; ++place) {
        RankParameters sum;
        for (const ModelUnit& each : units.units_of(units.stage_of(place, 0))) {
          sum += units.gradients_of(units.stage_of(place, 0), each);
        }
        const PipelineStage& stage = units.stage_of(place, 0);
        REQUIRE(sum.total() == stage_parameters(step.model, stage, step.plan).total());
        REQUIRE(sum.total() == units.parameters_of_rank(place).total());
      }
    }
  }
}

TEST_CASE("a rank runs the units of its passes, backward in reverse", "[lowered_units]") {
  UnitsCase step;
  step.plan.pipeline = 2;
  step.plan.schedule = &kInterleaved;
  step.plan.chunks = 2;
  step.plan.global_batch = 4;
  step.model.layers.resize(8);
  const StepJob job = step.job();
  OperationGraph graph(2);
  const StepUnits units(job, graph);
  const std::vector<Pass> passes = passes_of(step.plan.pipeline_shape(), 0);
  const std::vector<UnitOfPass> all = units.units_of_rank(passes, 0);
  std::size_t at = 0;
  std::vector<int> first(2);
  std::vector<int> last(2);
  for (const Pass& pass : passes) {
    std::vector<ModelUnit> wanted = units.units_of(units.stage_of(0, pass.chunk));
    const std::size_t count = wanted.size();
    for (std::size_t index = 0; index < count; ++index, ++at) {
      const bool is_forward = pass.kind == PassKind::Forward;
      REQUIRE(all[at].unit == wanted[is_forward ? index : count - 1 - index]);
      REQUIRE(all[at].ends_pass == (index + 1 == count));
      first[static_cast<std::size_t>(pass.chunk)] += all[at].is_first_forward ? 1 : 0;
      last[static_cast<std::size_t>(pass.chunk)] += all[at].is_last_gradient ? 1 : 0;
    }
  }
  REQUIRE(at == all.size());
  REQUIRE(first == std::vector<int>{3, 2});  // The embedding is in the first chunk.
  REQUIRE(last == std::vector<int>{3, 2});
}

TEST_CASE("the mixes of a unit are added once", "[lowered_units]") {
  const UnitsCase step;
  const StepJob job = step.job();
  OperationGraph graph(1);
  StepUnits units(job, graph);
  const NamedUnit& unit = units.unit({.layer = 3}, PassKind::Forward);
  REQUIRE(unit.name == "forward layer 3");
  const std::size_t mixes = graph.mixes().size();
  REQUIRE(mixes == unit.mixes.size());
  REQUIRE(&units.unit({.layer = 3}, PassKind::Forward) == &unit);
  REQUIRE(graph.mixes().size() == mixes);
  REQUIRE(units.unit({.place = StepPlace::Head}, PassKind::Backward).name == "backward head");
  REQUIRE(name_of({.place = StepPlace::Embedding}) == "embedding");
}

}  // namespace trainyard
