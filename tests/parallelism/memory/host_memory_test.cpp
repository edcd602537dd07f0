// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/memory/host_memory.h"

#include <string>
#include <vector>

#include "support/built_clusters.h"

namespace trainyard {
namespace {

StepMemory hosted(std::vector<Bytes> of_places) {
  StepMemory memory;
  for (const Bytes size : of_places) {
    RankMemory& rank = memory.ranks.emplace_back();
    rank.host = {.optimizer = size, .gradients = {}, .activations = gib(1)};
  }
  return memory;
}

constexpr Bytes gigabytes(std::int64_t count) {
  return Bytes(count * 1'000'000'000);
}

}  // namespace

TEST_CASE("host memory of a server is the sum over its ranks", "[host-memory]") {
  // Pipeline ranks are furthest apart: each server has one place of the pipeline.
  const ParallelPlan plan{.tensor = 8, .pipeline = 2};
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const HostMemoryUse use = host_memory_use(cluster, plan, hosted({gib(3), gib(5)}));
  REQUIRE(use.hosted.optimizer == gib(40));
  REQUIRE(use.hosted.activations == gib(8));
  REQUIRE(use.fits());
}

TEST_CASE("a server that has less than its ranks need is named with its parts", "[host-memory]") {
  const auto use_of = [](const std::string& size) {
    const Cluster cluster =
        shipped_cluster("dgx-h100", {.nodes = 1, .settings = {"server.host_memory=" + size}});
    return host_memory_use(cluster, {.tensor = 8}, hosted({gigabytes(100)}));
  };
  const HostMemoryUse large = use_of("2 TB");
  const HostMemoryUse small = use_of("512 GB");
  REQUIRE(large.fits());
  REQUIRE(large.verdict() ==
          "fits: a server needs 753.06 of 1862.65 GiB of host memory: optimizer states 745.06, "
          "gradients 0.00, activations 8.00");
  REQUIRE_FALSE(small.fits());
  REQUIRE(
      small.verdict() ==
      "out of host memory: a server needs 753.06 of 476.84 GiB of host memory: optimizer states "
      "745.06, gradients 0.00, activations 8.00");
}

}  // namespace trainyard
