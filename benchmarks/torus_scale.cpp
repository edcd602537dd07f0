// SPDX-License-Identifier: Apache-2.0
// Large grids and dragonflies, one a process so that the peak memory is that of the run:
//   torus_scale LENGTH [LENGTH ...]   a torus of chips with one GPU each
//   torus_scale dragonfly GROUPS      groups of 32 switches, 16 hosts each
// Builds it, routes a million pairs that are drawn at random, and prints one line: seconds to
// build, seconds for the tables, nanoseconds a route, links a route, memory a host.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/random.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss);
}

struct Case {
  std::string fabric;
  int hosts = 1;
};

Case torus(const std::vector<int>& shape) {
  Case result;
  std::string list;
  for (const int length : shape) {
    list += (list.empty() ? "" : ", ") + std::to_string(length);
    result.hosts *= length;
  }
  result.fabric = "template: torus, shape: [" + list + "], link: ICI-v4, attach: gpu";
  return result;
}

Case dragonfly(int groups) {
  return {.fabric = fmt::format("template: dragonfly, groups: {}, switches_per_group: 32, "
                                "endpoints_per_switch: 16, global_links: 1, switch: Rosetta, "
                                "local_cable: 2 m, global_cable: 20 m",
                                groups),
          .hosts = groups * 32 * 16};
}

int run(const std::string& name, const Case& what) {
  const Catalogue catalogue =
      Catalogue::load(std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs/hardware");
  ConfigDocument document = ConfigDocument::parse(
      fmt::format("name: benchmark\nsource: none\nnodes: {}\nserver: {{template: pcie, gpu: L40S, "
                  "gpus: 1, nic: Cassini, nics: {}}}\nfabric: {{{}}}\n",
                  what.hosts, name == "torus" ? 0 : 1, what.fabric),
      "benchmark");
  const double before = peak_kib();
  auto start = std::chrono::steady_clock::now();
  const Cluster cluster = build_cluster(document, catalogue, {});
  const double build = seconds_since(start);
  const double built = peak_kib();
  start = std::chrono::steady_clock::now();
  Routing routing(cluster.topology, cluster.routing);
  const double tables = seconds_since(start);

  constexpr std::uint32_t kRoutes = 1'000'000;
  RandomStream random(1, "benchmark pairs");
  std::vector<LinkId> path;
  std::uint64_t links = 0;
  start = std::chrono::steady_clock::now();
  for (std::uint32_t route = 0; route < kRoutes; ++route) {
    const NodeId source = cluster.gpus[random.below(cluster.gpus.size())];
    const NodeId target = cluster.gpus[random.below(cluster.gpus.size())];
    CHECK(routing.route(source, target, route, path), "a pair is not joined");
    links += path.size();
  }
  const double routes = seconds_since(start);
  fmt::print(
      "{:>9} {:>7} hosts: build {:6.3f} s  tables {:6.3f} s  {:6.0f} ns a route of {:4.1f} links  "
      "topology {:.2f} KiB a host, tables and routes {:.2f} KiB a host\n",
      name, what.hosts, build, tables, routes * 1e9 / kRoutes, static_cast<double>(links) / kRoutes,
      (built - before) / what.hosts, (peak_kib() - built) / what.hosts);
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "dragonfly") {
    return trainyard::run("dragonfly", trainyard::dragonfly(std::atoi(argv[2])));
  }
  std::vector<int> shape;
  for (const std::string& argument : arguments) {
    shape.push_back(std::atoi(argument.c_str()));
  }
  if (shape.empty() || shape.front() < 1) {
    fmt::print(stderr, "usage: torus_scale LENGTH ... | torus_scale dragonfly GROUPS\n");
    return 2;
  }
  return trainyard::run("torus", trainyard::torus(shape));
}
