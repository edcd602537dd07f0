// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/memory/offload.h"

#include <vector>

#include "support/built_clusters.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

constexpr std::int64_t kTile = std::int64_t{128} * 1024 * 1024;

// 10^12 bits/s of memory, of which the optimizer gets 0.46.
HostRates rates_with(std::int64_t to_gpu) {
  return {.to_host = Bandwidth(to_gpu),
          .to_gpu = Bandwidth(to_gpu),
          .memory = Bandwidth(1'000'000'000'000),
          .latency = {}};
}

}  // namespace

TEST_CASE("a rank's optimizer has its shard", "[offload]") {
  const RankParameters parameters{.dense = 1001, .expert = 600};
  REQUIRE(owned_parameters(parameters, {.data = 8}) == 1601);
  // Eight ranks have the same dense weights, two of them the same experts.
  REQUIRE(owned_parameters(parameters, {.data = 8, .expert = 4, .zero_stage = 1}) == 126 + 300);
  REQUIRE(owned_parameters(parameters, {.data = 8, .zero_stage = 2, .shard_group = 4}) == 251 + 75);
}

TEST_CASE("with full recomputation the input of a layer leaves", "[offload]") {
  const Model model = load_model(kConfigsFolder / "workloads/models/gpt-3-175b.yaml");
  const ParallelPlan plan{.micro_batch = 2, .sequence = 2048, .recompute = Recompute::Full};
  REQUIRE(layer_activations(model, 0, plan, shipped_software("nemo")) ==
          Bytes(std::int64_t{2} * 12288 * 2 * 2048));
}

TEST_CASE("an update is cut into tiles, and weights come up beside the next", "[offload]") {
  // 2^27 parameters x 240 bits / 460 Gb/s = 70.026640696 ms; 2^31 bits / 32 Gb/s = 67.108864 ms.
  const SimTime update(70'026'640'696);
  const SimTime copy(67'108'864'000);
  const std::vector<HostTile> tiles = host_tiles(3 * kTile, 30.0, 2, rates_with(32'000'000'000));
  REQUIRE(tiles.size() == 3);
  REQUIRE(tiles.front().update == update);
  REQUIRE(tiles.back().copy == copy);
  const HostUpdate by_cpu = host_update(tiles);
  REQUIRE(by_cpu.optimizer == update * 3);
  REQUIRE(by_cpu.copies == copy);
  // At half the rate copies take longer than updates, and only the first update shows.
  const HostUpdate by_link =
      host_update(host_tiles(3 * kTile, 30.0, 2, rates_with(16'000'000'000)));
  REQUIRE(by_link.optimizer == update);
  REQUIRE(by_link.copies == copy * 6);
}

TEST_CASE("the last tile is what is left", "[offload]") {
  const std::vector<HostTile> tiles =
      host_tiles(kTile + kTile / 4, 30.0, 2, rates_with(8'000'000'000));
  REQUIRE(tiles.size() == 2);
  REQUIRE(tiles.back().copy * 4 == tiles.front().copy);
  REQUIRE(host_tiles(0, 30.0, 2, rates_with(1)).empty());
  REQUIRE(host_update({}).total() == SimTime());
}

}  // namespace trainyard
