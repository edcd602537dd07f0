// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/walk/host_launches.h"

#include "support/step_rates.h"

namespace trainyard {
namespace {

ComputeRates rates_of_host() {
  ComputeRates rates = unit_rates();
  rates.host_layer = milliseconds(1);
  rates.host_collective = microseconds(50);
  return rates;
}

// Two of tensor ranks forward, three backward, beside one that is not theirs.
PassCalls some_calls() {
  PassCalls calls;
  calls.forward = {{.times = 2}, {.group = RankGroupKind::Context}};
  calls.backward = {{.times = 1}, {.times = 2}};
  return calls;
}

}  // namespace

TEST_CASE("the host launches the kernels of a layer and the collectives of its tensor ranks",
          "[host_launches]") {
  const ComputeRates rates = rates_of_host();
  const PassCalls calls = some_calls();
  const SoftwareProfile software;
  const ModelLayer layer;
  const HostLaunches forward = forward_launches(rates, software, layer, calls);
  REQUIRE(forward.all == microseconds(1000 + 2 * 50));
  REQUIRE(forward.shown == SimTime());
  REQUIRE(backward_launches(rates, software, layer, calls, Recompute::None).all ==
          microseconds(1300 + 3 * 50));
  REQUIRE(backward_launches(rates, software, layer, calls, Recompute::Selective).all ==
          microseconds(1300 + 3 * 50));
  REQUIRE(backward_launches(rates, software, layer, calls, Recompute::Full).all ==
          microseconds(2300 + 5 * 50));
}

TEST_CASE("a host that waits for each kernel shows in whole, one that waits for tokens in part",
          "[host_launches]") {
  const ComputeRates rates = rates_of_host();
  const PassCalls calls = some_calls();
  SoftwareProfile software;
  software.host_sync = 1.0;
  software.host_expert = 4.0;
  software.host_expert_sync = 2.0;
  ModelLayer layer;
  const HostLaunches waiting = backward_launches(rates, software, layer, calls, Recompute::Full);
  REQUIRE(waiting.shown == waiting.all);
  layer.experts.emplace();
  const HostLaunches of_experts = forward_launches(rates, software, layer, calls);
  REQUIRE(of_experts.all == microseconds(4000 + 2 * 50));
  REQUIRE(of_experts.shown == of_experts.all);
  software.host_sync = 0.0;
  REQUIRE(forward_launches(rates, software, layer, calls).shown == milliseconds(2));
  // One kernel takes the counts from the GPU's memory, but an alltoall from the host.
  software.joins_experts = true;
  REQUIRE(forward_launches(rates, software, layer, calls).shown == SimTime());
  PassCalls sent = calls;
  sent.forward.push_back({.group = RankGroupKind::Expert});
  REQUIRE(forward_launches(rates, software, layer, sent).shown == milliseconds(2));
}

TEST_CASE("adapters and matrices of 4 bits add their kernels to a layer", "[host_launches]") {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-2-7b.yaml");
  REQUIRE(adapter_launches(model, model.layers.front()) == 0.0);
  model.adapters = Adapters{.rank = 16};
  REQUIRE(adapter_launches(model, model.layers.front()) == Approx(7.0 * 4.0 / 40.0));
  model.adapters->is_quantised = true;
  REQUIRE(adapter_launches(model, model.layers.front()) == Approx(7.0 * 6.0 / 40.0));
}

}  // namespace trainyard
