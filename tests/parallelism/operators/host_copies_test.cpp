// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/operators/host_copies.h"

#include <algorithm>
#include <string>
#include <vector>

#include "network/traffic/transfers.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

// Of the slowest copy, when the engine carries all of them at once.
double engine_gigabits(const Cluster& cluster, HostDirection direction) {
  const Bytes size = mib(1024);
  const std::vector<SimTime> times =
      run_transfers(cluster, host_transfers(cluster, direction), size);
  const SimTime last = *std::max_element(times.begin(), times.end());
  return static_cast<double>(size.count()) * 8.0 / last.seconds() / 1e9;
}

double gigabits(Bandwidth rate) {
  return static_cast<double>(rate.bits_per_second()) / 1e9;
}

}  // namespace

TEST_CASE("copies to the host get what the flow engine gives them at once", "[host-copies]") {
  for (const std::string name :
       {"dgx-1", "dgx-a100", "dgx-h100", "gb200-nvl72", "l40s-pcie", "rtx4090-pcie", "polaris"}) {
    const Cluster cluster = shipped_cluster(name, {.nodes = 1});
    const HostRates rates = host_rates(cluster);
    INFO(name);
    // The engine's time has the latency in it.
    REQUIRE(gigabits(rates.to_host) ==
            Approx(engine_gigabits(cluster, HostDirection::FromGpu)).epsilon(1e-3));
    REQUIRE(gigabits(rates.to_gpu) ==
            Approx(engine_gigabits(cluster, HostDirection::ToGpu)).epsilon(1e-3));
  }
}

TEST_CASE("GPUs below one switch share its way up, and those of a socket its memory",
          "[host-copies]") {
  // DGX A100: two GPUs below a switch, four at a socket with 204.8 GB/s.
  const HostRates two = host_rates(shipped_cluster("dgx-a100", {.nodes = 1}));
  const HostRates one = host_rates(shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 1}));
  REQUIRE(gigabits(one.to_host) / gigabits(two.to_host) == Approx(2.0).epsilon(1e-9));
  REQUIRE(one.memory == Bandwidth(1'638'400'000'000));
  REQUIRE(two.memory == Bandwidth(1'638'400'000'000 / 4));
  REQUIRE(one.latency > SimTime());
}

TEST_CASE("a copy takes its latency and its size over its rate", "[host-copies]") {
  const HostRates rates{.to_host = Bandwidth(8'000'000'000),
                        .to_gpu = Bandwidth(16'000'000'000),
                        .memory = Bandwidth(1),
                        .latency = SimTime(1'000'000)};
  REQUIRE(rates.copy_to_host(Bytes(1000)) == SimTime(2'000'000));
  REQUIRE(rates.copy_to_gpu(Bytes(1000)) == SimTime(1'500'000));
  REQUIRE(rates.copy_to_gpu(Bytes(0)) == SimTime());
}

TEST_CASE("plans without offload need no rates of the host", "[host-copies]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  REQUIRE_FALSE(host_rates_for({}, cluster));
  REQUIRE(host_rates_for({.offload = {.activations = true}}, cluster));
}

}  // namespace trainyard
