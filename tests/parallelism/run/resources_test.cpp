// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/resources.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collectives/run/run.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

std::vector<std::string> keys_of(const Cluster& cluster, ResourceScope scope) {
  std::vector<std::string> keys;
  for (const Resource& resource : resources_of(cluster, scope)) {
    keys.push_back(resource.key);
  }
  return keys;
}

MachineModel machine_of(const Cluster& cluster) {
  return {.cluster = cluster,
          .nccl = nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml"),
          .rates = GpuRates::load(kConfigsFolder / "hardware" / "gpu-rates.yaml"),
          .software = {}};
}

SimTime ring_time(const Cluster& cluster) {
  return run_collective(cluster, {.operation = Operation::AllGather, .size = mib(256)}).time;
}

}  // namespace

TEST_CASE("a cluster has the resources of its links, and what runs on it others", "[resources]") {
  const Cluster one = shipped_cluster("dgx-h100", {.nodes = 1});
  const std::vector<std::string> plain = keys_of(one, {.nccl = false});
  REQUIRE(plain.front() == "nvlink");
  REQUIRE(plain.back() == "server_latency");
  const std::vector<std::string> step = keys_of(one, {.nccl = true, .compute = true});
  REQUIRE(step.back() == "gpu_memory");
  const Cluster clos = shipped_cluster("hgx-h100-clos", {.nodes = 16});
  const std::vector<std::string> all = keys_of(clos, {.nccl = false});
  REQUIRE(std::set<std::string>(all.begin(), all.end()).contains("tier_0"));
  REQUIRE(std::set<std::string>(all.begin(), all.end()).size() == all.size());
}

TEST_CASE("each link is of one resource, and only its links get faster", "[resources]") {
  const Cluster cluster = shipped_cluster("hgx-h100-clos", {.nodes = 16});
  const LinkResources links(cluster.topology);
  const MachineModel machine = machine_of(cluster);
  for (const Resource& resource : links.list()) {
    const MachineModel better = scaled(machine, resource, 1.1);
    int changed = 0;
    for (std::uint32_t index = 0; index < cluster.topology.link_count(); ++index) {
      const LinkId id(index);
      const std::int64_t before = cluster.topology.link(id).spec.bandwidth.bits_per_second();
      const std::int64_t after = better.cluster.topology.link(id).spec.bandwidth.bits_per_second();
      const bool is_meant = links.of(id).key == resource.key;
      REQUIRE(after == (is_meant ? std::llround(static_cast<double>(before) * 1.1) : before));
      changed += is_meant ? 1 : 0;
    }
    REQUIRE(changed > 0);
  }
}

TEST_CASE("the shape of a fabric divides links by dimension, or in groups and between them",
          "[resources]") {
  const auto counts_of = [](const Cluster& cluster) {
    const LinkResources links(cluster.topology, cluster.routing.fabric);
    std::map<std::string, int> counts;
    for (std::uint32_t index = 0; index < cluster.topology.link_count(); ++index) {
      ++counts[links.of(LinkId(index)).key];
    }
    return counts;
  };
  // Each of 64 chips has a neighbour on both sides in each dimension.
  const auto torus = counts_of(shipped_cluster("tpu-v4"));
  for (const std::string dimension : {"dimension_0", "dimension_1", "dimension_2"}) {
    REQUIRE(torus.at(dimension) == 64 * 2);
  }
  REQUIRE_FALSE(torus.contains("tier_0"));
  // 10 groups of 8 switches that are all joined, with 4 links between each two groups.
  const auto dragonfly = counts_of(shipped_cluster("polaris"));
  REQUIRE(dragonfly.at("local") == 10 * 8 * 7);
  REQUIRE(dragonfly.at("global") == 10 * 9 * 4);
  REQUIRE_FALSE(dragonfly.contains("tier_0"));
}

TEST_CASE("a ring over NICs follows them alone, and everything at once is everything",
          "[resources]") {
  // One GPU of each node, whose NIC is slower than its PCIe.
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4, .gpus_per_node = 1});
  const MachineModel machine = machine_of(cluster);
  const SimTime base = ring_time(cluster);
  const auto of = [&](const Resource& resource) {
    return elasticity(base, ring_time(scaled(machine, resource, 1.1).cluster), 1.1);
  };
  double sum = 0.0;
  for (const Resource& resource : resources_of(cluster, {.nccl = false})) {
    const double value = of(resource);
    sum += value;
    if (resource.key == "nic") {
      REQUIRE(value == Approx(1.0).margin(0.01));
    } else {
      REQUIRE(std::abs(value) < 0.01);
    }
  }
  REQUIRE(sum == Approx(1.0).margin(0.001));
  REQUIRE(of(all_resources()) == Approx(1.0).margin(1e-6));
}

TEST_CASE("an elasticity is the exponent of a power law, whatever the factor", "[resources]") {
  const SimTime base = milliseconds(7);
  for (const double factor : {0.5, 0.9, 1.1, 2.0}) {
    for (const double exponent : {0.0, 0.3, 1.0}) {
      const double changed = static_cast<double>(base.picoseconds()) * std::pow(factor, -exponent);
      REQUIRE(elasticity(base, SimTime(std::llround(changed)), factor) ==
              Approx(exponent).margin(1e-6));
    }
  }
}

TEST_CASE("all resources at once scale every rate up and every time down", "[resources]") {
  const MachineModel machine = machine_of(shipped_cluster("dgx-a100", {.nodes = 2}));
  const MachineModel twice = scaled(machine, all_resources(), 2.0);
  const auto& before = machine.rates.generations.at("ampere");
  const auto& after = twice.rates.generations.at("ampere");
  REQUIRE(after.gemm == 2.0 * before.gemm);
  REQUIRE(after.memory == 2.0 * before.memory);
  REQUIRE(after.host_layer * 2 == before.host_layer);
  REQUIRE(twice.nccl.gpus.at("hopper").link_latency.simple * 2 ==
          machine.nccl.gpus.at("hopper").link_latency.simple);
  REQUIRE(twice.nccl.launch.process_per_gpu * 2 == machine.nccl.launch.process_per_gpu);
  // What is no limit stays none.
  REQUIRE(twice.nccl.networks.at("rdma").connection_rate ==
          machine.nccl.networks.at("rdma").connection_rate);
}

}  // namespace trainyard
