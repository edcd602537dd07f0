// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/lowering/pass_units.h"

#include <string>
#include <vector>

#include "parallelism/operators/layer_time.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

struct UnitCase {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ParallelPlan plan;
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  Overlap overlap = {};
  std::vector<int> servers = std::vector<int>(64);

  [[nodiscard]] PassUnit unit(PassKind kind) const {
    const StepJob job{.model = model,
                      .plan = plan,
                      .rates = rates,
                      .software = software,
                      .overlap = overlap,
                      .server_of_rank = servers};
    return pass_unit(job, OperatorTimes(rates), expert_places(job), {.layer = 0}, kind);
  }
  [[nodiscard]] PassTimes times() const {
    return layer_times(model, model.layers.front(), plan, OperatorTimes(rates));
  }
};

StepParts computed(const PassUnit& unit) {
  StepParts sum;
  for (const UnitPhase& phase : unit.phases) {
    sum += phase.compute;
  }
  return sum;
}

// "all_gather, compute, ..." of the phases; beside each other with "+".
std::string outline(const PassUnit& unit) {
  std::string text;
  for (const UnitPhase& phase : unit.phases) {
    text += text.empty() ? "" : ", ";
    text += phase.compute.total() > SimTime() ? "compute" : "";
    for (const UnitCall& call : phase.calls) {
      text += text.empty() || text.back() == ' ' ? "" : "+";
      text += to_string(call.call.operation);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("the phases of a layer are all that it computes", "[pass_units]") {
  UnitCase layer{.plan = {.tensor = 4, .has_sequence_parallelism = true}};
  const PassTimes times = layer.times();
  REQUIRE(computed(layer.unit(PassKind::Forward)) == times.forward);
  REQUIRE(computed(layer.unit(PassKind::InputGradient)) == times.input_gradient);
  REQUIRE(computed(layer.unit(PassKind::WeightGradient)) == times.weight_gradient);
  StepParts backward = times.input_gradient;
  backward += times.weight_gradient;
  REQUIRE(computed(layer.unit(PassKind::Backward)) == backward);
  layer.plan.recompute = Recompute::Full;
  backward[StepPart::Recompute] = times.forward.total();
  REQUIRE(computed(layer.unit(PassKind::Backward)) == backward);
  layer.plan.recompute = Recompute::Selective;
  backward[StepPart::Recompute] = times.forward[StepPart::Attention];
  REQUIRE(computed(layer.unit(PassKind::Backward)) == backward);
}

TEST_CASE("tensor calls are before and after the blocks of a layer, or beside them",
          "[pass_units]") {
  UnitCase layer{.plan = {.tensor = 4, .has_sequence_parallelism = true}};
  const std::string exposed =
      "all_gather, compute, reduce_scatter, all_gather, compute, reduce_scatter";
  REQUIRE(outline(layer.unit(PassKind::Forward)) == exposed);
  REQUIRE(outline(layer.unit(PassKind::Backward)) == exposed);
  REQUIRE(outline(layer.unit(PassKind::WeightGradient)) == "compute");
  layer.overlap.tensor = true;
  const PassUnit beside = layer.unit(PassKind::Forward);
  REQUIRE(outline(beside) ==
          "compute+all_gather+reduce_scatter, compute+all_gather+reduce_scatter");
  REQUIRE(beside.phases.front().calls.front().slowdown_ppm ==
          slowdown_of(layer.rates.overlapped_tensor));
  layer.overlap.tensor = false;
  layer.plan.has_sequence_parallelism = false;
  REQUIRE(outline(layer.unit(PassKind::Forward)) == "compute, all_reduce, compute, all_reduce");
}

TEST_CASE("rings run beside attention, exchanges before and after its block", "[pass_units]") {
  UnitCase layer{.plan = {.context = 4}};
  REQUIRE(outline(layer.unit(PassKind::Forward)) == "compute, compute+sendrecv, compute");
  const PassUnit unit = layer.unit(PassKind::Forward);
  REQUIRE(unit.phases[1].compute.total() == layer.times().forward[StepPart::Attention]);
  layer.plan.context_kind = ContextParallelism::AllToAll;
  REQUIRE(outline(layer.unit(PassKind::Forward)) == "alltoall, compute, alltoall, compute");
}

TEST_CASE("what is computed again counts as that, with its traffic", "[pass_units]") {
  const UnitCase layer{.plan = {.tensor = 4, .recompute = Recompute::Full}};
  const PassUnit unit = layer.unit(PassKind::Backward);
  REQUIRE(outline(unit) ==
          "compute, all_reduce, compute, all_reduce, compute, all_reduce, compute, all_reduce");
  REQUIRE(unit.phases[1].calls.front().part == StepPart::Recompute);
  REQUIRE(unit.phases[5].calls.front().part == StepPart::Tensor);
}

TEST_CASE("exchanges with experts are around the feed-forward block", "[pass_units]") {
  UnitCase layer{.plan = {.data = 8, .expert = 8}};
  layer.model = load_model(kConfigsFolder / "workloads/models/mixtral-8x7b.yaml");
  REQUIRE(outline(layer.unit(PassKind::Forward)) == "compute, alltoall, compute, alltoall");
}

TEST_CASE("the host holds up layers that are shorter than their launch", "[pass_units]") {
  UnitCase layer;
  layer.plan.sequence = 16;
  REQUIRE(layer.unit(PassKind::Forward).host == layer.rates.host_layer);
  layer.plan.sequence = 8192;
  REQUIRE(layer.unit(PassKind::Forward).host == SimTime());
}

}  // namespace trainyard
