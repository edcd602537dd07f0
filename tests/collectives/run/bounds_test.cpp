// SPDX-License-Identifier: Apache-2.0
// Lower bounds by formula, and that no algorithm is faster.
#include "support/catch.h"

#include "collectives/run/bounds.h"

#include "collectives/placement/aggregation.h"
#include "collectives/run/run.h"
#include "support/placed_run.h"
#include "support/servers.h"

namespace trainyard {
namespace {

using namespace literals;

SimTime bandwidth_bound(const Cluster& cluster, Operation operation, Bytes size,
                        const TrafficMatrix* matrix = nullptr) {
  return CollectiveBounds(cluster, operation, RankId(0), matrix).at(size).bandwidth;
}

TEST_CASE("what leaves a server goes through its NICs") {
  // Two servers of four ranks and four NICs: 4 B each way.
  const Cluster cluster = cluster_of({{.gpus = 4, .nics = 4}, {.gpus = 4, .nics = 4}});
  const Bandwidth out(4 * kTestNic.bits_per_second());
  const auto bound = [&](Operation operation) {
    return bandwidth_bound(cluster, operation, 8_MiB);
  };
  REQUIRE(bound(Operation::AllReduce) == transfer_time(8_MiB, out));
  REQUIRE(bound(Operation::AllGather) == transfer_time(4_MiB, out));
  REQUIRE(bound(Operation::ReduceScatter) == transfer_time(4_MiB, out));
  REQUIRE(bound(Operation::AllToAll) == transfer_time(16_MiB, out));
  REQUIRE(bound(Operation::Broadcast) == transfer_time(8_MiB, out));
  REQUIRE(bound(Operation::Scatter) == transfer_time(4_MiB, out));
  REQUIRE(bound(Operation::Barrier) == SimTime());
  TrafficMatrix matrix{.ranks = 8, .bytes = std::vector<std::int64_t>(64, 0)};
  matrix.bytes[4] = 1'000'000;  // From 0 to 4, between the servers.
  matrix.bytes[1] = 50;
  REQUIRE(bandwidth_bound(cluster, Operation::AllToAllV, matrix.largest(), &matrix) >=
          transfer_time(Bytes(1'000'000), out));
}

// Sizes at which latency counts and at which bandwidth does.
void require_bound(const char* name, const ClusterOverrides& overrides,
                   std::initializer_list<Bytes> sizes) {
  const Cluster cluster = shipped_cluster(name, overrides);
  for (const Operation operation : kOperations) {
    const CollectiveBounds bounds(cluster, operation, RankId(0));
    for (const Algorithm algorithm : algorithms_for(operation)) {
      if (placement_error(cluster, Routing(cluster.topology, cluster.routing), algorithm)) {
        continue;
      }
      for (const Bytes wanted : sizes) {
        const Bytes size = aligned_size(operation, wanted, static_cast<int>(cluster.gpus.size()));
        INFO(name << " " << to_string(operation) << " " << to_string(algorithm) << " "
                  << to_string(size));
        const SimTime time =
            run_collective(cluster, {.operation = operation, .algorithm = algorithm, .size = size})
                .time;
        REQUIRE(bounds.at(size).time() <= time);
        REQUIRE((bounds.at(size).latency > SimTime()) == (operation != Operation::AllToAllV));
      }
    }
  }
}

TEST_CASE("a relay in the server may be a shorter way than the route, and the bound knows") {
  for (const char* name : {"ascend-910b", "gcp-a4", "h800", "mi300x", "alibaba-hpn"}) {
    require_bound(name, {.nodes = 2}, {Bytes(64), 2_KiB});
  }
}

TEST_CASE("no algorithm beats the bound") {
  struct Case {
    const char* name;
    ClusterOverrides overrides;
  };
  for (const Case& item : {Case{"dgx-h100", {.nodes = 1}}, Case{"dgx-h100", {.nodes = 3}},
                           Case{"dgx-1", {.nodes = 1}}, Case{"rtx4090-pcie", {}},
                           Case{"hgx-h100-clos", {.nodes = 4}}, Case{"dgx-a100", {.nodes = 2}}}) {
    require_bound(item.name, item.overrides, {4_KiB, 16_MiB});
  }
}

TEST_CASE("a ring over large messages comes close to the bound, and one rank has none") {
  const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = 1});
  const CollectiveBounds bounds(cluster, Operation::AllGather, RankId(0));
  const SimTime time =
      run_collective(cluster, {.operation = Operation::AllGather, .size = 4_GiB}).time;
  REQUIRE(bounds.at(4_GiB).time() / time > 0.8);
  const Cluster single = cluster_of({{.gpus = 1, .nics = 1}});
  REQUIRE(CollectiveBounds(single, Operation::AllReduce, RankId(0)).at(1_GiB).time() == SimTime());
}

}  // namespace
}  // namespace trainyard
