// SPDX-License-Identifier: Apache-2.0
// Clusters of several kinds of server, of servers that stand in files, and of servers that share an
// NVLink domain.
#include "support/catch.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "support/described_servers.h"
#include "support/paths.h"
#include "support/program.h"
#include "topology/cluster/cluster.h"
#include "topology/lint/summary.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

Cluster parse(const std::string& text, const ClusterOverrides& overrides = {}) {
  ConfigDocument document = ConfigDocument::parse(text, "my.yaml");
  return build_cluster(document, shipped_catalogue(), overrides);
}

std::string error_of(const std::string& text, const ClusterOverrides& overrides = {}) {
  try {
    (void)parse(text, overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

int count(const Topology& topology, NodeKind kind) {
  int found = 0;
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    found += topology.node(NodeId(node)).kind == kind ? 1 : 0;
  }
  return found;
}

bool reaches_all(const Cluster& cluster) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  return std::ranges::all_of(cluster.gpus, [&](NodeId source) {
    return std::ranges::all_of(
        cluster.gpus, [&](NodeId target) { return routing.route(source, target, 0, path); });
  });
}

const std::string kMixed = R"(name: mixed
source: a test
servers:
  - nodes: 2
    server: {template: nvswitch, gpu: H100-SXM, gpus: 8, nic: ConnectX-7, nics: 4}
  - nodes: 3
    server: {template: pcie, gpu: L40S, gpus: 2, nic: ConnectX-7, nics: 1}
fabric:
  template: clos
  leaf: Spectrum4-SN5400
  spine: Spectrum4-SN5400
  cable: 2 m
)";

TEST_CASE("servers of several kinds stand in the order of the list") {
  const Cluster cluster = parse(kMixed);
  REQUIRE(cluster.nodes == 5);
  REQUIRE(cluster.server_gpus == std::vector<int>{8, 8, 2, 2, 2});
  REQUIRE(cluster.gpus_per_node == 8);
  REQUIRE(cluster.nics_per_node == 1);
  REQUIRE(cluster.gpus.size() == 2 * 8 + 3 * 2);
  REQUIRE(cluster.topology.node(cluster.gpus[16]).name == "server2/gpu0");
  REQUIRE(count(cluster.topology, NodeKind::Nic) == 2 * 4 + 3 * 1);
  REQUIRE(count(cluster.topology, NodeKind::Memory) == 5);
  REQUIRE(count(cluster.topology, NodeKind::NvSwitch) == 2);
  REQUIRE(reaches_all(cluster));
  REQUIRE(!summarise(cluster).empty());
}

TEST_CASE("the option --gpus-per-node cuts each server that has more") {
  const Cluster cluster = parse(kMixed, {.gpus_per_node = 4});
  REQUIRE(cluster.server_gpus == std::vector<int>{4, 4, 2, 2, 2});
  REQUIRE(cluster.gpus_per_node == 4);
  REQUIRE(cluster.topology.node(cluster.gpus[4]).name == "server1/gpu0");
  REQUIRE(parse(kMixed, {.gpus_per_node = 1}).gpus.size() == 5);
  REQUIRE(error_of(kMixed, {.gpus_per_node = 9}) ==
          "my.yaml:4:3: servers: --gpus-per-node: expected 1 to 8, the GPUs of the largest server, "
          "found 9");
}

TEST_CASE("each mistake in a list of servers is one line that says what to do") {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = kMixed;
    const std::size_t place = text.find(from);
    REQUIRE(place != std::string::npos);
    return text.replace(place, from.size(), to);
  };
  REQUIRE(error_of(kMixed, {.nodes = 4}) ==
          "--nodes 4: the cluster lists several kinds of servers; give --set servers.0.nodes=4 for "
          "the first");
  REQUIRE(parse(kMixed, {.settings = {"servers.0.nodes=4"}}).nodes == 7);
  REQUIRE(error_of(with("servers:", "nodes: 2\nservers:")) ==
          "my.yaml:3:8: nodes: servers says this already; leave it out");
  REQUIRE(error_of(with("servers:", "server: {gpu: L40S}\nservers:")) ==
          "my.yaml:3:9: server: servers says this already; leave it out");
  REQUIRE(error_of(with("  - nodes: 3\n", "  - nodse: 3\n")) ==
          "my.yaml:6:5: servers[1]: missing key \"nodes\"; is \"nodse\" a misspelling of it?");
  REQUIRE(error_of(with("gpu: L40S", "gpu: L4OS")) ==
          "my.yaml:7:35: servers[1].server.gpu: expected the name of a GPU in the catalogue, found "
          "\"L4OS\"; did you mean \"L40S\"?");
  REQUIRE(error_of(with("nics: 1", "nics: 0")) ==
          "my.yaml:6:5: servers[1]: servers without NICs cannot reach the others");
  REQUIRE(error_of(with("nics: 1}", "tree: [[gpu, nic, {nic: ConnectX-6}]]}")).find("gpus: ") !=
          std::string::npos);
  const std::string two = "tree: [[gpu, gpu, nic, {nic: ConnectX-6}]]}";
  REQUIRE(error_of(with("nics: 1}", two)) ==
          "my.yaml:9:13: fabric.template: needs NICs of one part in each server");
  REQUIRE(error_of("name: x\nsource: y\nservers: []\n") ==
          "my.yaml:3:10: servers: expected 1 to 1000 kinds of server, found 0");
  REQUIRE(error_of("name: x\nsource: y\nservers: [dgx]\n") ==
          "my.yaml:3:11: servers[0]: expected a mapping, found \"dgx\"");
}

const std::string kRack = R"(name: rack
source: a test
nodes: 18
server:
  template: nvswitch
  gpu: GB200
  gpus: 4
  nic: ConnectX-7
  nics: 4
  cpu: Grace
  sockets: 2
  nvlink_domain: 18
  nvswitch: NVSwitch4
  nvswitch_chips: 18
)";
const std::string kFabric = R"(fabric:
  template: rail-optimised
  leaf: Quantum2-QM9700
  spine: Quantum2-QM9700
  cable: 10 m
)";

TEST_CASE("servers of one NVLink domain need no fabric") {
  const Cluster rack = parse(kRack);
  REQUIRE(rack.gpus.size() == 72);
  Routing routing(rack.topology, rack.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(rack.gpus[0], rack.gpus[71], 0, path));
  REQUIRE(path.size() == 2);
  REQUIRE(path_latency(rack.topology, path) == nanoseconds(800));
  REQUIRE(path_bandwidth(rack.topology, path) == gigabytes_per_second(702));  // 18 x 50 x 0.78.
  REQUIRE(!summarise(rack).empty());
  REQUIRE(error_of(kRack, {.nodes = 19}) ==
          "--nodes 19: nodes: 19 servers cannot reach each other: there is no fabric");
}

TEST_CASE("several domains are joined by the fabric, the last may be smaller") {
  const Cluster racks = parse(kRack + kFabric, {.nodes = 40});
  REQUIRE(count(racks.topology, NodeKind::NvSwitch) == 3);
  const auto gpus = [&](const std::string& name) {
    return racks.topology.links_from(*racks.topology.find(name)).size();
  };
  REQUIRE(gpus("domain0/nvswitch") == 72);
  REQUIRE(gpus("domain1/nvswitch") == 72);
  REQUIRE(gpus("domain2/nvswitch") == 4 * 4);
  Routing routing(racks.topology, racks.routing);
  std::vector<LinkId> path;
  const auto crosses = [&](std::size_t from, std::size_t to) {
    REQUIRE(routing.route(racks.gpus[from], racks.gpus[to], 0, path));
    return std::ranges::any_of(path, [&](LinkId link) {
      return racks.topology.link(link).spec.kind == LinkKind::Network;
    });
  };
  REQUIRE(!crosses(0, 71));
  REQUIRE(crosses(0, 72));
  REQUIRE(crosses(71, 159));
  REQUIRE(!summarise(racks).empty());
}

// A configs folder with the shipped parts and servers of its own.
class Configs {
 public:
  Configs() {
    std::filesystem::create_directories(folder_.path() / "servers");
    std::filesystem::copy(source_dir() / "configs/hardware", folder_.path() / "hardware");
    folder_.write("servers/box.yaml",
                  "source: A manual.\ntemplate: nvswitch\ngpu: H100-SXM\ngpus: 8\n"
                  "nic: ConnectX-7\nnics: 8\npcie_switches: 8\n");
  }
  [[nodiscard]] const ScratchFolder& folder() const { return folder_; }
  [[nodiscard]] Cluster parse(const std::string& text,
                              const ClusterOverrides& overrides = {}) const {
    const Catalogue catalogue = Catalogue::load(folder_.path() / "hardware");
    ConfigDocument document = ConfigDocument::parse(text, "my.yaml");
    return build_cluster(document, catalogue, overrides);
  }

 private:
  ScratchFolder folder_;
};

TEST_CASE("a cluster names its servers, and --set reaches into them") {
  const Configs configs;
  const std::string text = "name: x\nsource: y\nnodes: 2\nserver: box\n" + kFabric;
  const Cluster named = configs.parse(text);
  REQUIRE(named.gpus.size() == 16);
  REQUIRE(named.nics_per_node == 8);
  const Cluster less = configs.parse(text, {.settings = {"server.gpus=4", "server.nics=4"}});
  REQUIRE(less.gpus.size() == 8);
  REQUIRE(less.nics_per_node == 4);
  const Cluster based = configs.parse(
      "name: x\nsource: y\nservers:\n  - {nodes: 1, server: box}\n"
      "  - {nodes: 1, server: {base: box, gpus: 4, nic: ConnectX-6}}\n" +
      std::string("fabric: {template: clos, leaf: Spectrum4-SN5400, spine: Spectrum4-SN5400, "
                  "cable: 2 m}\n"));
  REQUIRE(based.server_gpus == std::vector<int>{8, 4});
  configs.folder().write("servers/v100.yaml",
                         "source: A manual.\nbase: box\ngpu: V100-SXM2-32GB\n");
  const Cluster replaced = configs.parse(text, {.settings = {"server=v100"}});
  REQUIRE(replaced.topology.parts()[replaced.topology.node(replaced.gpus[0]).part] ==
          "V100-SXM2-32GB");
}

TEST_CASE("where NICs are fewer than PCIe switches, a NIC is beside two GPUs") {
  const auto load = [](const std::string& nics) {
    return load_cluster(source_dir() / "configs/clusters/dgx-h100.yaml", shipped_catalogue(),
                        {.nodes = 2, .settings = {"server.nics=" + nics}});
  };
  // GPUs whose PCIe switch has a NIC, too.
  const auto beside = [](const Cluster& cluster) {
    int count = 0;
    for (const NodeId gpu : cluster.gpus) {
      for (const LinkId up : cluster.topology.links_from(gpu)) {
        const NodeId above = cluster.topology.link(up).target;
        if (cluster.topology.node(above).kind == NodeKind::PcieSwitch) {
          for (const LinkId down : cluster.topology.links_from(above)) {
            const NodeId below = cluster.topology.link(down).target;
            count += cluster.topology.node(below).kind == NodeKind::Nic ? 1 : 0;
          }
        }
      }
    }
    return count;
  };
  REQUIRE(beside(load("8")) == 16);
  REQUIRE(load("8").warnings.empty());
  REQUIRE(beside(load("4")) == 16);
  REQUIRE(load("4").warnings ==
          std::vector<std::string>{
              "server: 4 of 8 PCIe switches, as there are 4 NICs, each beside the GPUs that share "
              "it; tree describes other servers"});
  REQUIRE(beside(load("2")) == 4);
}

TEST_CASE("a mistake in a server's file is an error there") {
  const Configs configs;
  configs.folder().write("servers/wrong.yaml", "source: A manual.\nbase: box\ncolour: red\n");
  REQUIRE_THROWS_WITH(configs.parse("name: x\nsource: y\nnodes: 1\nserver: wrong\n" + kFabric),
                      Catch::Contains("servers/wrong.yaml:3:1: server: unknown key \"colour\""));
  REQUIRE_THROWS_WITH(configs.parse("name: x\nsource: y\nnodes: 1\nserver: bax\n"),
                      Catch::Contains("my.yaml:4:9: server: expected the name of a file in ") &&
                          Catch::Contains("found \"bax\"; did you mean \"box\"?"));
}

}  // namespace
}  // namespace trainyard
