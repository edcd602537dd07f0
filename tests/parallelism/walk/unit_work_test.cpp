// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/walk/unit_work.h"

#include <string>
#include <vector>

#include "support/step_rates.h"

namespace trainyard {
namespace {

struct WorkCase {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ParallelPlan plan;
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");
  std::vector<int> servers = std::vector<int>(8);

  [[nodiscard]] UnitWork work(const ModelUnit& unit) const {
    const StepJob job{.model = model,
                      .plan = plan,
                      .rates = rates,
                      .software = software,
                      .overlap = {},
                      .server_of_rank = servers};
    return work_of(job, OperatorTimes(rates), unit);
  }
};

}  // namespace

TEST_CASE("the walk over a stage visits its ends and its layers in order", "[unit_work]") {
  std::string names;
  for_each_unit({.first_layer = 3, .layers = 2, .has_embedding = true, .has_head = true},
                [&](const ModelUnit& unit) { names += name_of(unit) + " "; });
  REQUIRE(names == "embedding layer 3 layer 4 head ");
}

TEST_CASE("full recomputation runs a layer again, but no end of the model", "[unit_work]") {
  WorkCase test;
  test.plan = {.tensor = 8, .recompute = Recompute::Full};
  test.software.full_recompute = FullRecompute::Layer;
  const UnitWork layer = test.work({.layer = 2});
  REQUIRE(layer.again == layer.compute.forward);
  REQUIRE(layer.calls.again == layer.calls.forward);
  for (const StepPlace place : {StepPlace::Embedding, StepPlace::Head}) {
    const UnitWork end = test.work({.place = place});
    REQUIRE(end.compute.forward.total() > SimTime());
    REQUIRE(end.again.total() == SimTime());
    REQUIRE(end.calls.again.empty());
    REQUIRE(end.backward_host.all == SimTime());
  }
}

TEST_CASE("layers that follow one another and are equal are computed once", "[unit_work]") {
  WorkCase test;
  test.model.layers.resize(4);
  test.model.layers[2].feed_forward->size *= 2;
  int made = 0;
  const auto count = [&](LayerMemo<int> memo) {
    made = 0;
    for_each_unit({.layers = 4, .has_embedding = true, .has_head = true},
                  [&](const ModelUnit& unit) { memo.of(unit, [&] { return ++made; }); });
    return made;
  };
  REQUIRE(count(LayerMemo<int>(test.model)) == 5);  // Layers 0, 2 and 3, and both ends.
  REQUIRE(count(LayerMemo<int>(test.model, {.layers = {{.first = 0, .last = 3}}})) == 6);
}

TEST_CASE("each place in the pipeline waits for the GPU that computes longest", "[unit_work]") {
  WorkCase test;
  test.plan = {.tensor = 2, .pipeline = 2};
  const std::vector<ComputeRates> rates{shipped_compute("H100-SXM", "megatron-flash"),
                                        shipped_compute("A100-SXM-80GB", "megatron-flash")};
  const std::vector<int> kinds{0, 1, 0, 0};
  test.servers.resize(4);
  const StepJob alike{.model = test.model,
                      .plan = test.plan,
                      .rates = rates.front(),
                      .software = test.software,
                      .overlap = {},
                      .server_of_rank = test.servers};
  REQUIRE(slowest_kinds(alike) == std::vector{0, 0});
  StepJob mixed = alike;
  mixed.kinds = rates;
  mixed.kind_of_rank = kinds;
  REQUIRE(slowest_kinds(mixed) == std::vector{1, 0});
}

}  // namespace trainyard
