// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/tier_volumes.h"

#include <map>
#include <string>
#include <vector>

#include "collectives/run/run.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

std::vector<LinkTraffic> traffic_of_run(const CollectiveResult& run) {
  std::vector<LinkTraffic> traffic;
  for (const LinkUse& use : run.link_use) {
    traffic.push_back({.link = use.link, .parts = {{.purpose = "data", .bytes = use.bytes}}});
  }
  return traffic;
}

std::map<std::string, Bytes> bytes_of(const Cluster& cluster, const CollectiveJob& job) {
  std::map<std::string, Bytes> bytes;
  for (const TierVolume& volume :
       tier_volumes(LinkResources(cluster.topology, cluster.routing.fabric),
                    traffic_of_run(run_collective(cluster, job)))) {
    bytes[volume.key] = volume.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("a ring puts (n - 1) / n of the size of each rank on both links to the NVSwitches",
          "[volumes]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const std::int64_t size = mib(256).count();
  for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
    const auto gathered = bytes_of(
        cluster, {.operation = Operation::AllGather, .size = mib(256), .fidelity = fidelity});
    REQUIRE(gathered.size() == 1);
    REQUIRE(gathered.at("nvlink").count() == 8 * (size * 7 / 8) * 2);
    const auto reduced = bytes_of(
        cluster, {.operation = Operation::AllReduce, .size = mib(256), .fidelity = fidelity});
    REQUIRE(reduced.at("nvlink").count() == 2 * gathered.at("nvlink").count());
  }
}

// A ring leaves each server once in each channel, and the channels share the size.
TEST_CASE("a ring over servers crosses the links of NICs once for each server", "[volumes]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  const std::int64_t size = mib(256).count();
  const CollectiveJob job{.operation = Operation::AllReduce, .size = mib(256)};
  const auto bytes = bytes_of(cluster, job);
  const std::int64_t of_hop = 2 * size * 31 / 32;
  REQUIRE(bytes.at("nic").count() == 4 * of_hop * 2);
  REQUIRE(bytes.at("pcie").count() >= 4 * of_hop * 2);
}

// Each hop goes from a chip to its switch, along one link to the next, and to the chip there.
TEST_CASE("a ring along a torus crosses one link of a dimension in each hop", "[volumes]") {
  const Cluster cluster = shipped_cluster("tpu-v4");
  const auto bytes = bytes_of(cluster, {.operation = Operation::AllReduce, .size = mib(64)});
  const std::int64_t of_hop = 2 * mib(64).count() * 63 / 64;
  REQUIRE(bytes.at("nic").count() == 64 * of_hop * 2);
  REQUIRE((bytes.at("dimension_0") + bytes.at("dimension_1") + bytes.at("dimension_2")).count() ==
          64 * of_hop);
  REQUIRE(bytes.size() == 4);
}

// Every rank but the root sends all up, and gets all from above.
TEST_CASE("a tree crosses the links of NICs twice for each edge between servers", "[volumes]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  const auto bytes =
      bytes_of(cluster, {.operation = Operation::AllReduce, .algorithm = &kTree, .size = mib(256)});
  REQUIRE(bytes.at("nic").count() == 3 * 2 * mib(256).count() * 2);
}

TEST_CASE("hierarchical sends between servers what their number asks for alone", "[volumes]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  const auto bytes = bytes_of(
      cluster, {.operation = Operation::AllGather, .algorithm = &kHierarchical, .size = mib(256)});
  // Every server gets what the three others have, each byte once.
  REQUIRE(bytes.at("nic").count() == 4 * (mib(256).count() * 3 / 4) * 2);
}

TEST_CASE("tiers add up to all that links carry", "[volumes]") {
  const Cluster cluster = shipped_cluster("hgx-h100-clos", {.nodes = 16});
  const CollectiveResult run = run_collective(
      cluster, {.operation = Operation::AllToAll, .algorithm = &kDirect, .size = mib(64)});
  Bytes all;
  for (const LinkUse& use : run.link_use) {
    all += use.bytes;
  }
  Bytes sum;
  int links = 0;
  for (const TierVolume& volume :
       tier_volumes(LinkResources(cluster.topology), traffic_of_run(run))) {
    sum += volume.bytes;
    links += volume.links;
    REQUIRE(volume.busiest.count() * volume.links >= volume.bytes.count());
    REQUIRE(volume.busiest <= volume.bytes);
  }
  REQUIRE(all > Bytes(0));
  REQUIRE(sum == all);
  REQUIRE(links == static_cast<int>(run.link_use.size()));
}

TEST_CASE("a link that occurs twice counts once, with the bytes of both", "[volumes]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const std::vector<TierVolume> volumes =
      tier_volumes(LinkResources(cluster.topology),
                   std::vector<LinkTraffic>{
                       {.link = LinkId(0), .parts = {{.purpose = "tensor", .bytes = Bytes(5)}}},
                       {.link = LinkId(0),
                        .parts = {{.purpose = "data", .bytes = Bytes(2)},
                                  {.purpose = "tensor", .bytes = Bytes(1)}}}});
  REQUIRE(volumes.size() == 1);
  REQUIRE(volumes[0].links == 1);
  REQUIRE(volumes[0].bytes == Bytes(8));
  REQUIRE(volumes[0].busiest == Bytes(8));
  REQUIRE(volumes[0].parts == std::vector<PurposeBytes>{{.purpose = "data", .bytes = Bytes(2)},
                                                        {.purpose = "tensor", .bytes = Bytes(6)}});
}

}  // namespace trainyard
