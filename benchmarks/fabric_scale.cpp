// SPDX-License-Identifier: Apache-2.0
// How building and routing grow with the cluster:
//   fabric_scale TEMPLATE SERVERS   TEMPLATE: clos, rail-optimised
// builds SERVERS servers of 8 GPUs and 8 NICs below switches of 144 ports, three tiers where two do
// not suffice, then routes a million random pairs of GPUs with ECMP. Prints the CPU seconds of
// each part, nanoseconds a route, and the memory of the router of the fabric for each endpoint.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/check.h"
#include "sim/config.h"
#include "sim/random.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"
#include "topology/routing/up_down_router.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kRoutes = 1'000'000;

// Of this process, so that others on the machine count less.
double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

Cluster build(const std::string& layout, int servers) {
  const Catalogue catalogue = Catalogue::load(TRAINYARD_SOURCE_DIR "/configs/hardware");
  ConfigDocument document = ConfigDocument::parse(
      fmt::format("name: scale\n"
                  "source: none\n"
                  "nodes: {}\n"
                  "server: {{template: nvswitch, gpu: B300, gpus: 8, nic: ConnectX-8, nics: 8}}\n"
                  "fabric: {{template: {}, leaf: QuantumX800-Q3400, spine: QuantumX800-Q3400,\n"
                  "         core: QuantumX800-Q3400, cable: 10 m}}\n",
                  servers, layout),
      "fabric_scale");
  return build_cluster(document, catalogue, {});
}

struct Walk {
  double seconds = 0.0;
  std::uint64_t links = 0;
};

Walk route_random_pairs(const Cluster& cluster, Routing& routing) {
  RandomStream random(1, "pairs");
  std::vector<std::pair<NodeId, NodeId>> pairs;
  for (std::uint32_t pair = 0; pair < kRoutes; ++pair) {
    const std::uint64_t source = random.below(cluster.gpus.size());
    const std::uint64_t other = random.below(cluster.gpus.size() - 1);
    pairs.emplace_back(cluster.gpus[source], cluster.gpus[other < source ? other : other + 1]);
  }
  Walk walk;
  std::vector<LinkId> path;
  const double start = cpu_seconds();
  for (std::uint32_t pair = 0; pair < kRoutes; ++pair) {
    CHECK(routing.route(pairs[pair].first, pairs[pair].second, pair, path), "no route");
    walk.links += path.size();
  }
  walk.seconds = cpu_seconds() - start;
  return walk;
}

int run(const std::string& layout, int servers) {
  const double start = cpu_seconds();
  const Cluster cluster = build(layout, servers);
  const double build_seconds = cpu_seconds() - start;
  const double built = cpu_seconds();
  Routing routing(cluster.topology, cluster.routing);
  const double table_seconds = cpu_seconds() - built;
  const double before_fabric = cpu_seconds();
  const std::size_t heap_before = mallinfo2().uordblks;
  const UpDownRouter fabric(cluster.topology);
  const std::size_t fabric_bytes = mallinfo2().uordblks - heap_before;
  const double fabric_seconds = cpu_seconds() - before_fabric;
  const Walk walk = route_random_pairs(cluster, routing);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{:>14} {:>6} GPUs: build {:.2f} s, routing tables {:.2f} s, of which fabric {:.3f} s, "
      "{:.0f} ns a route of {:.1f} links, {:.0f} B an endpoint in the fabric's tables, {:.0f} MiB "
      "in all\n",
      layout, cluster.gpus.size(), build_seconds, table_seconds, fabric_seconds,
      walk.seconds * 1e9 / kRoutes, static_cast<double>(walk.links) / kRoutes,
      static_cast<double>(fabric_bytes) / static_cast<double>(fabric.endpoints().size()),
      static_cast<double>(usage.ru_maxrss) / 1024.0);
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  const std::string layout = argc > 1 ? argv[1] : "";
  const int servers = argc == 3 ? std::atoi(argv[2]) : 0;
  if ((layout != "clos" && layout != "rail-optimised") || servers < 2) {
    fmt::print(stderr, "usage: fabric_scale clos|rail-optimised SERVERS\n");
    return 2;
  }
  return trainyard::run(layout, servers);
}
