// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/walk/step_job.h"

#include <vector>

#include "sim/config_error.h"
#include "support/step_rates.h"

namespace trainyard {

TEST_CASE("what the workload says of overlap goes before the software's", "[step-job]") {
  SoftwareProfile software;
  software.overlap_data = true;
  software.overlap_tensor = true;
  const Overlap overlap = overlap_of({.tensor = false, .expert = true}, software);
  REQUIRE_FALSE(overlap.tensor);
  REQUIRE(overlap.data);
  REQUIRE_FALSE(overlap.pipeline);
  REQUIRE(overlap.expert);
}

TEST_CASE("jitter grows with each doubling of the servers", "[step-job]") {
  const SimTime step(1'000'000'000'000);
  REQUIRE(jitter_of(step, std::vector{0, 0, 0, 0}) == SimTime());
  REQUIRE(jitter_of(step, std::vector{0, 0, 1, 1}) == SimTime(4'000'000'000));
  REQUIRE(jitter_of(step, std::vector{3, 2, 1, 0}) == SimTime(8'000'000'000));
}

TEST_CASE("a stage has the kinds of GPUs of all of its ranks", "[step-job]") {
  using Kinds = std::vector<std::vector<int>>;
  const std::vector<int> kinds{0, 1, 0, 0};
  REQUIRE(kinds_by_place({.tensor = 2, .pipeline = 2}, kinds) == Kinds{{0, 1}, {0}});
  REQUIRE(kinds_by_place({.tensor = 2, .pipeline = 2}, {}) == Kinds{{0}, {0}});
  // Stages i and 3 - i of two directions are on the same two ranks.
  const ParallelPlan two_ways{.pipeline = 4, .schedule = &kDualPipe, .chunks = 2};
  REQUIRE(kinds_by_stage(two_ways, kinds) == Kinds{{0}, {0, 1}, {0, 1}, {0}});
}

TEST_CASE("offload needs rates of the host, and servers a graph of their own", "[step-job]") {
  const Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ParallelPlan plan{.offload = {.optimizer = true}};
  const ComputeRates rates = unit_rates();
  const SoftwareProfile software = shipped_software("nemo");
  const std::vector<int> servers{0};
  const StepJob job{.model = model,
                    .plan = plan,
                    .rates = rates,
                    .software = software,
                    .overlap = {},
                    .server_of_rank = servers};
  REQUIRE_THROWS_MATCHES(
      check_modelled(job), ConfigError,
      Catch::Matchers::Message(
          "step: expected no plan.offload without a cluster's host memory, found it"));
  plan = {.servers = ParameterServers{}};
  REQUIRE_THROWS_MATCHES(
      check_modelled(job), ConfigError,
      Catch::Matchers::Message("step: expected gradients summed by collectives, found "
                               "plan.servers, which trainyard step --method graph --traffic shared "
                               "runs alone"));
}

}  // namespace trainyard
