// SPDX-License-Identifier: Apache-2.0
#include "support/drawn_machines.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "sim/yaml_names.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxGpus = 32;

class MachineDraw {
 public:
  explicit MachineDraw(RandomStream& random) : random_(random) {}

  // Nothing where the file is refused.
  std::optional<DrawnMachine> draw() {
    try {
      return random_.below(3) == 0 ? shipped() : described();
    } catch (const ConfigError&) {
      return std::nullopt;
    }
  }

 private:
  bool flip() { return random_.below(2) == 0; }
  int number(int min, int max) {
    return min + static_cast<int>(random_.below(static_cast<std::uint64_t>(max - min + 1)));
  }
  std::string_view one_of(std::initializer_list<std::string_view> words) {
    return *(words.begin() + random_.below(words.size()));
  }
  template <typename Part>
  std::string part_of(const std::map<std::string, Part>& parts) {
    return std::next(parts.begin(), static_cast<std::ptrdiff_t>(random_.below(parts.size())))
        ->first;
  }

  DrawnMachine shipped() {
    const std::vector<std::string> names = yaml_names_in(kConfigsFolder / "clusters");
    const std::string name = names[random_.below(names.size())];
    const int nodes = number(1, 4);
    const auto built = [&](const std::vector<std::string>& pulls) {
      return shipped_cluster(name, {.nodes = nodes, .pulls = pulls});
    };
    return broken({.what = fmt::format("{} --nodes {}", name, nodes), .cluster = built({})}, built);
  }

  DrawnMachine described() {
    const Catalogue& catalogue = shipped_catalogue();
    std::string text =
        fmt::format("name: drawn\nsource: a test\nnodes: {}\nserver:\n", number(1, 4));
    text += fmt::format("  template: {}\n  gpu: {}\n  gpus: {}\n",
                        one_of({"nvswitch", "full-mesh", "pcie"}), part_of(catalogue.gpus()),
                        number(1, 8));
    text += fmt::format("  nic: {}\n  nics: {}\n  cpu: {}\n  sockets: {}\n  pcie_switches: {}\n",
                        part_of(catalogue.nics()), number(1, 8), part_of(catalogue.cpus()),
                        number(1, 2), one_of({"0", "1", "2", "4", "8"}));
    text += fmt::format("  peer_access: {}\n  gpudirect: {}\n  pxn: {}\n",
                        one_of({"none", "pix", "pxb", "phb", "sys"}),
                        one_of({"none", "pix", "pxb", "phb", "sys"}), flip());
    const std::string chosen = part_of(catalogue.switches());
    text +=
        fmt::format("fabric:\n  template: {}\n  leaf: {}\n  spine: {}\n  core: {}\n",
                    one_of({"single-switch", "clos", "rail-optimised"}), chosen, chosen, chosen);
    text += fmt::format("  cable: {} m\n  optics: {}\n  routing: {}\n  oversubscription: {}\n",
                        number(1, 100), flip(), one_of({"ecmp", "static", "spray", "adaptive"}),
                        number(1, 3));
    if (flip()) {
      text += fmt::format("  nodes_per_leaf: {}\n", number(1, 2));
    }
    const auto built = [&](const std::vector<std::string>& pulls) {
      return cluster_of(text, {.pulls = pulls});
    };
    return broken({.what = text, .cluster = built({})}, built);
  }

  // One machine in three lacks a cable or two.
  template <typename Build>
  DrawnMachine broken(DrawnMachine machine, const Build& built) {
    const Topology& topology = machine.cluster.topology;
    std::vector<std::string> pulls(random_.below(3) == 0 ? 1 + random_.below(2) : 0);
    for (std::string& each : pulls) {
      const Link& link = topology.links()[random_.below(topology.link_count())];
      each = fmt::format("{},{}", topology.node(link.source).name, topology.node(link.target).name);
    }
    if (pulls.empty()) {
      return machine;
    }
    return {.what = fmt::format("{} --pull {}", machine.what, fmt::join(pulls, " --pull ")),
            .cluster = built(pulls)};
  }

  RandomStream& random_;
};

}  // namespace

DrawnMachine draw_machine(RandomStream& random) {
  MachineDraw draw(random);
  std::optional<DrawnMachine> drawn;
  while (!drawn || drawn->cluster.gpus.size() > kMaxGpus) {
    drawn = draw.draw();
  }
  return std::move(*drawn);
}

Cluster with_twice_the_bandwidth(const Cluster& cluster) {
  Cluster changed = cluster;
  changed.topology = edited(cluster.topology, {.link = [](LinkId, LinkSpec& link) {
                              link.bandwidth = Bandwidth(2 * link.bandwidth.bits_per_second());
                            }});
  return changed;
}

Cluster with_half_the_latency(const Cluster& cluster) {
  Cluster changed = cluster;
  changed.topology = edited(
      cluster.topology,
      {.link = [](LinkId,
                  LinkSpec& link) { link.latency = SimTime(link.latency.picoseconds() / 2); },
       .node = [](NodeId, Node& node) { node.latency = SimTime(node.latency.picoseconds() / 2); }});
  return changed;
}

}  // namespace trainyard
