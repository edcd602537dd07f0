// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/plan_network.h"

#include <vector>

#include "parallelism/walk/step_traffic.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

struct TestNetwork {
  Model model = load_model(kConfigsFolder / "workloads" / "models" / "llama-3-8b.yaml");
  SoftwareProfile software = shipped_software("megatron-core");

  [[nodiscard]] double bytes(ParallelPlan plan, int ranks_of_server) const {
    plan.global_batch = 4 * plan.data * plan.micro_batch;
    plan.sequence = 4096;
    check(plan, model, plan.ranks());
    std::vector<int> servers;
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      servers.push_back(rank / ranks_of_server);
    }
    return network_bytes(model, plan, software, servers);
  }
};

}  // namespace

TEST_CASE("within a server nothing leaves it", "[plan-network]") {
  const TestNetwork test;
  REQUIRE(test.bytes({.tensor = 4, .data = 2}, 8) == 0.0);
  REQUIRE(test.bytes({.tensor = 2, .pipeline = 2, .data = 2, .zero_stage = 3}, 8) == 0.0);
}

TEST_CASE("gradients of one rank a server leave it whole", "[plan-network]") {
  const TestNetwork test;
  const double gradients = static_cast<double>(parameters_of(test.model).total()) *
                           test.software.gradient_bytes * 2.0 * 3.0 / 4.0;
  REQUIRE(test.bytes({.data = 4}, 1) == Approx(gradients));
  // In rings that enter each server once, half of the ranks send out of theirs.
  REQUIRE(test.bytes({.data = 4}, 2) == Approx(gradients / 2.0));
  REQUIRE(test.bytes({.data = 4, .recompute = Recompute::Full}, 1) == Approx(gradients));
}

TEST_CASE("weights of ZeRO 3 travel with every micro-batch", "[plan-network]") {
  const TestNetwork test;
  const auto parameters = static_cast<double>(parameters_of(test.model).total());
  // Weights twice in 16 bits and gradients once, in each of 4 micro-batches.
  const double sent = parameters * (2 * 2 + test.software.gradient_bytes) * 3.0 / 4.0 * 4.0;
  REQUIRE(test.bytes({.data = 4, .zero_stage = 3}, 1) == Approx(sent).epsilon(0.001));
}

TEST_CASE("stages on servers of their own send activations there and back", "[plan-network]") {
  const TestNetwork test;
  // Two stages: one boundary, 4 micro-batches, both ways, in 16 bits, over two GPUs.
  const double sent = 4096.0 * 4096.0 * 2.0 * 2.0 * 4.0 / 2.0;
  REQUIRE(test.bytes({.pipeline = 2}, 1) == Approx(sent));
}

}  // namespace trainyard
