// SPDX-License-Identifier: Apache-2.0
// Cluster files as a user writes them: the shipped ones, overrides, and what each mistake says.
#include "support/catch.h"

#include "support/paths.h"
#include "support/shipped.h"
#include "topology/cluster/cluster.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

const std::filesystem::path kConfigs = source_dir() / "configs";

Cluster load(const std::string& name, const ClusterOverrides& overrides = {}) {
  return load_cluster(kConfigs / "clusters" / (name + ".yaml"), shipped_catalogue(), overrides);
}

Cluster parse_cluster(const std::string& text, const ClusterOverrides& overrides = {}) {
  ConfigDocument document = ConfigDocument::parse(text, "my.yaml");
  return build_cluster(document, shipped_catalogue(), overrides);
}

// A small cluster file; tests replace a line of it.
const std::string kSmall = R"(name: small
source: a test
nodes: 2
server:
  template: nvswitch
  gpu: H100-SXM
  gpus: 8
  nic: ConnectX-7
  nics: 4
  pcie_switches: 4
fabric:
  template: single-switch
  leaf: Quantum2-QM9700
  cable: 2 m
)";

std::string replaced(const std::string& line, const std::string& by) {
  std::string text = kSmall;
  const std::size_t place = text.find(line + "\n");
  REQUIRE(place != std::string::npos);
  return text.replace(place, line.size() + 1, by.empty() ? "" : by + "\n");
}

std::vector<std::filesystem::path> cluster_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigs / "clusters")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

int count_cluster(const Topology& topology, NodeKind kind) {
  int found = 0;
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    found += topology.node(NodeId(node)).kind == kind ? 1 : 0;
  }
  return found;
}

// All pairs of small clusters; of large ones, GPUs spread over the whole with one another.
TEST_CASE("in every shipped cluster every GPU reaches every other by a valid path") {
  constexpr std::size_t kMaxEnds = 400;
  REQUIRE(cluster_files().size() >= 30);
  for (const std::filesystem::path& file : cluster_files()) {
    INFO(file.string());
    const Cluster cluster = load_cluster(file, shipped_catalogue(), {});
    REQUIRE(cluster.gpus.size() == static_cast<std::size_t>(std::accumulate(
                                       cluster.server_gpus.begin(), cluster.server_gpus.end(), 0)));
    // Odd, so that all places in a server are met.
    const std::size_t step = cluster.gpus.size() / kMaxEnds * 2 + 1;
    std::vector<NodeId> ends;
    for (std::size_t gpu = 0; gpu < cluster.gpus.size(); gpu += step) {
      ends.push_back(cluster.gpus[gpu]);
    }
    Routing routing(cluster.topology, cluster.routing);
    std::vector<LinkId> path;
    for (const NodeId source : ends) {
      for (const NodeId target : ends) {
        REQUIRE(routing.route(source, target, 0, path));
        NodeId at = source;
        for (const LinkId hop : path) {
          REQUIRE(cluster.topology.link(hop).source == at);
          at = cluster.topology.link(hop).target;
        }
        REQUIRE(at == target);
      }
    }
  }
}

TEST_CASE("rank r is GPU r mod G of server r / G, also when a server has more GPUs") {
  const Cluster cluster = load("dgx-h100", {.nodes = 3, .gpus_per_node = 2});
  REQUIRE(cluster.nodes == 3);
  REQUIRE(cluster.gpus_per_node == 2);
  REQUIRE(cluster.nics_per_node == 8);
  std::vector<std::string> names;
  for (const NodeId gpu : cluster.gpus) {
    names.push_back(cluster.topology.node(gpu).name);
  }
  REQUIRE(names == std::vector<std::string>{"server0/gpu0", "server0/gpu1", "server1/gpu0",
                                            "server1/gpu1", "server2/gpu0", "server2/gpu1"});
  REQUIRE(count_cluster(cluster.topology, NodeKind::Gpu) == 24);
}

TEST_CASE("latency in a server and across is the sum of the catalogue's parts") {
  const Cluster cluster = load("dgx-h100");
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[1], 0, path));
  // Two NVLinks of 350 ns and the NVSwitch of 100 ns.
  REQUIRE(path.size() == 2);
  REQUIRE(path_latency(cluster.topology, path) == 800_ns);
  REQUIRE(path_bandwidth(cluster.topology, path) == gigabytes_per_second(369));  // 18 x 25 x 0.82.
  // GPU 0 of another server: on each side 275 + 5 ns to the PCIe switch of 115, 5 to the NIC of
  // 125; two links of 10 m with 100 ns FEC each; one leaf of 130.
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[8], 0, path));
  REQUIRE(path.size() == 6);
  REQUIRE(path_latency(cluster.topology, path) == 525_ns * 2 + 150_ns * 2 + 130_ns);
  REQUIRE(path_bandwidth(cluster.topology, path) == gigabits_per_second(384));
  // To another rail: two more links and switches.
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[9], 0, path));
  REQUIRE(path.size() == 8);
  REQUIRE(path_latency(cluster.topology, path) == 525_ns * 2 + 150_ns * 4 + 130_ns * 3);
}

TEST_CASE("memories come after everything else and carry nobody's traffic") {
  const Cluster cluster = load("dgx-h100", {.settings = {"server.cpu=Xeon-SapphireRapids"}});
  const Topology& topology = cluster.topology;
  const int memories = count_cluster(topology, NodeKind::Memory);
  REQUIRE(memories == cluster.nodes * 2);
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    const bool is_last = node + static_cast<std::uint32_t>(memories) >= topology.node_count();
    REQUIRE((topology.node(NodeId(node)).kind == NodeKind::Memory) == is_last);
  }
  Routing routing(topology, cluster.routing);
  std::vector<LinkId> path;
  const NodeId memory = *topology.find("server0/memory1");
  REQUIRE(routing.route(cluster.gpus[0], memory, 0, path));
  std::vector<std::string> names;
  for (const LinkId link : path) {
    names.push_back(topology.node(topology.link(link).target).name);
  }
  REQUIRE(names == std::vector<std::string>{"server0/pcie0", "server0/cpu0", "server0/cpu1",
                                            "server0/memory1"});
}

TEST_CASE("GPUs of a cube mesh without a common NVLink go over PCIe") {
  const Cluster cluster = load("dgx-1", {.nodes = 1});
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[3], 0, path));
  REQUIRE(path.size() == 1);
  REQUIRE(path_bandwidth(cluster.topology, path) == gigabytes_per_second(42));  // 2 x 25 x 0.84.
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[5], 0, path));
  REQUIRE(path.size() == 5);
  for (const LinkId hop : path) {
    REQUIRE(cluster.topology.link(hop).spec.kind != LinkKind::NvLink);
  }
}

TEST_CASE("GPUs on root ports meet in their CPU, across sockets over the socket link") {
  const Cluster cluster = load("rtx4090-pcie");
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[3], 0, path));
  REQUIRE(path_latency(cluster.topology, path) == 280_ns * 2 + 300_ns);
  REQUIRE(path_bandwidth(cluster.topology, path).gigabytes_per_second() ==
          Approx(28.2).epsilon(0.002));
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[4], 0, path));
  REQUIRE(path.size() == 3);
  // One root complex in all: half where the path comes in, half where it goes out.
  REQUIRE(path_latency(cluster.topology, path) == 280_ns * 2 + 300_ns + 70_ns);
  REQUIRE(path_bandwidth(cluster.topology, path).gigabytes_per_second() == 21.5);
}

TEST_CASE("the options --set and --nodes change a file before it is read") {
  const Cluster cluster = load(
      "dgx-h100",
      {.nodes = 2, .settings = {"server.nics=4", "server.pcie_switches=4", "fabric.routing=ecmp"}});
  REQUIRE(cluster.nodes == 2);
  REQUIRE(cluster.nics_per_node == 4);
  REQUIRE(cluster.routing.policy == RoutingPolicy::EcmpHash);
  REQUIRE(count_cluster(cluster.topology, NodeKind::Nic) == 8);
}

TEST_CASE("the number of nodes is said once") {
  REQUIRE_THROWS_WITH(load("dgx-h100", {.nodes = 3, .settings = {"nodes=4"}}),
                      "--set nodes: expected the number of nodes once, found it in --nodes, --gpus "
                      "or a log as well");
  REQUIRE(load("dgx-h100", {.settings = {"nodes=4"}}).nodes == 4);
}

TEST_CASE("the estimates of the catalogue that a cluster uses are listed once each") {
  const Cluster cluster = load("dgx-h100");
  const auto& lines = cluster.estimates;
  REQUIRE(std::set<std::string>(lines.begin(), lines.end()).size() == lines.size());
  const auto has = [&](const std::string& start) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.rfind(start, 0) == 0; });
  };
  REQUIRE(has("NVLink4: latency = 350ns: "));
  REQUIRE(has("ConnectX-7: latency = 125ns: "));
  REQUIRE(has("network link: FEC latency = 100ns: "));
  REQUIRE(!has("NVLink4: bandwidth"));
}

TEST_CASE("each mistake in a cluster file is one line that says what to do") {
  const auto error_of = [](const std::string& text, const ClusterOverrides& overrides = {}) {
    try {
      (void)parse_cluster(text, overrides);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  REQUIRE(error_of(kSmall) == "no error");

  SECTION("more GPUs asked for than a server has") {
    REQUIRE(error_of(kSmall, {.gpus_per_node = 9}) ==
            "my.yaml:7:9: server.gpus: --gpus-per-node: expected 1 to 8, the GPUs of a server, "
            "found 9");
    REQUIRE(error_of(kSmall, {.gpus_per_node = 0}) ==
            "my.yaml:7:9: server.gpus: --gpus-per-node: expected 1 to 8, the GPUs of a server, "
            "found 0");
  }
  SECTION("no servers, or absurdly many") {
    REQUIRE(error_of(replaced("nodes: 2", "nodes: 0")) ==
            "my.yaml:3:8: nodes: expected a whole number from 1 to 1000000, found \"0\"");
    REQUIRE(error_of(replaced("nodes: 2", "nodes: 2000000")) ==
            "my.yaml:3:8: nodes: expected a whole number from 1 to 1000000, found \"2000000\"");
  }
  SECTION("a GPU without NVLink in an NVSwitch server") {
    REQUIRE(error_of(replaced("  gpu: H100-SXM", "  gpu: RTX-4090")) ==
            "my.yaml:6:8: server.gpu: RTX-4090 has no link to other GPUs, which the template "
            "nvswitch needs; use the template pcie");
  }
  SECTION("a GPU with xGMI in an NVSwitch server") {
    REQUIRE(error_of(replaced("  gpu: H100-SXM", "  gpu: MI300X")) ==
            "my.yaml:6:8: server.gpu: MI300X has no NVLink, which the template nvswitch needs; use "
            "the template full-mesh");
  }
  SECTION("a cube mesh of other than 8 GPUs") {
    std::string text = replaced("  template: nvswitch", "  template: cube-mesh");
    text.replace(text.find("gpus: 8"), 7, "gpus: 4");
    REQUIRE(error_of(text) ==
            "my.yaml:7:9: server.gpus: expected 8 GPUs for the template cube-mesh, found \"4\"");
  }
  SECTION("a cube mesh of GPUs with other than 6 links") {
    REQUIRE(error_of(replaced("  template: nvswitch", "  template: cube-mesh")) ==
            "my.yaml:6:8: server.gpu: the template cube-mesh takes 6 links of each GPU, and "
            "H100-SXM has 18");
  }
  SECTION("a full mesh of more GPUs than a GPU has links") {
    std::string text = replaced("  template: nvswitch", "  template: full-mesh");
    text.replace(text.find("gpus: 8"), 7, "gpus: 20");
    REQUIRE(error_of(text) ==
            "my.yaml:7:9: server.gpus: expected at most 19 GPUs for the template full-mesh, as "
            "H100-SXM has 18 links, found \"20\"");
  }
  SECTION("servers that cannot reach each other") {
    REQUIRE(error_of(replaced("  nics: 4", "  nics: 0")) ==
            "my.yaml:3:8: nodes: 2 servers cannot reach each other: server.nics is 0");
    const std::string no_fabric = kSmall.substr(0, kSmall.find("fabric:"));
    REQUIRE(error_of(no_fabric) ==
            "my.yaml:3:8: nodes: 2 servers cannot reach each other: there is no fabric");
    REQUIRE(error_of(no_fabric, {.nodes = 1}) == "no error");
    REQUIRE(error_of(replaced("fabric:", "fabrik:")) ==
            "my.yaml:11:1: unknown key \"fabrik\"; did you mean \"fabric\"?");
  }
  SECTION("a fabric with nothing to connect") {
    const std::string error = error_of(replaced("  nics: 4", "  nics: 0"), {.nodes = 1});
    REQUIRE(error == "my.yaml:12:3: fabric: there is nothing to connect: server.nics is 0");
  }
  SECTION("an unknown part") {
    REQUIRE(error_of(replaced("  gpu: H100-SXM", "  gpu: H100-SMX")) ==
            "my.yaml:6:8: server.gpu: expected the name of a GPU in the catalogue, found "
            "\"H100-SMX\"; did you mean \"H100-SXM\"?");
    REQUIRE(error_of(replaced("  leaf: Quantum2-QM9700", "  leaf: Quantum2-QM970")) ==
            "my.yaml:13:9: fabric.leaf: expected the name of a switch in the catalogue, found "
            "\"Quantum2-QM970\"; did you mean \"Quantum2-QM9700\"?");
  }
  SECTION("a fabric that is too small") {
    REQUIRE(error_of(kSmall, {.nodes = 17}) ==
            "--nodes 17: nodes: at most 16 servers of 4 NICs fit one Quantum2-QM9700 of 64 ports, "
            "found 17: lower nodes or take switches with more ports");
  }
  SECTION("a key that nobody reads") {
    REQUIRE(error_of(kSmall + "colour: red\n") ==
            "my.yaml:15:1: unknown key \"colour\"; known keys: server, servers, name, source, "
            "parts, nodes, "
            "fabric, faults");
  }
  SECTION("a cable without a unit") {
    REQUIRE(
        error_of(replaced("  cable: 2 m", "  cable: 2")) ==
        "my.yaml:14:10: fabric.cable: expected a length such as \"10 m\", at most 100 km, found "
        "\"2\"");
  }
  SECTION("an unknown CPU") {
    REQUIRE(error_of(replaced("  pcie_switches: 4", "  cpu: EPYC-Gena")) ==
            "my.yaml:10:8: server.cpu: expected the name of a CPU in the catalogue, found "
            "\"EPYC-Gena\"; did you mean \"EPYC-Genoa\"?");
  }
  SECTION("two sockets without a link") {
    REQUIRE(error_of(replaced("  pcie_switches: 4", "  sockets: 2")).find("socket_link") !=
            std::string::npos);
    REQUIRE(error_of(replaced("  pcie_switches: 4", "  sockets: 2\n  socket_link: PCIe4")) ==
            "my.yaml:11:16: server.socket_link: expected a link between CPU sockets, found "
            "\"PCIe4\"");
  }
  SECTION("PCIe that is none") {
    REQUIRE(error_of(replaced("  pcie_switches: 4", "  pcie_uplink: NVLink4")) ==
            "my.yaml:10:16: server.pcie_uplink: expected a PCIe link such as PCIe4, found "
            "\"NVLink4\"");
    REQUIRE(
        error_of(replaced("  pcie_switches: 4", "  pcie_uplink_lanes: 8")) ==
        "my.yaml:10:22: server.pcie_uplink_lanes: pcie_uplink_lanes needs pcie_uplink, the name "
        "of the link");
    REQUIRE(error_of(replaced("  pcie_switches: 4", "  pcie_payload: 8 B")) ==
            "my.yaml:10:17: server.pcie_payload: expected 64 B to 4096 B, found \"8 B\"");
  }
  SECTION("a setting without a value") {
    REQUIRE(error_of(kSmall, {.settings = {"nodes"}}) ==
            "--set: expected key.path=value, found \"nodes\"");
  }
}

TEST_CASE("equal servers are one number, others runs as SLURM writes them") {
  REQUIRE(server_runs_text({8}) == "8");
  REQUIRE(server_runs_text({8, 8, 8}) == "8");
  REQUIRE(server_runs_text({4, 6}) == "4,6");
  REQUIRE(server_runs_text({8, 8, 8, 8, 6}) == "8(x4),6");
  REQUIRE(server_runs_text({1, 2, 2, 1}) == "1,2(x2),1");
  REQUIRE(server_runs_text({}).empty());
}

TEST_CASE("runs have all servers, in order") {
  const auto runs = server_runs({5, 5, 3, 5});
  REQUIRE(runs.size() == 3);
  REQUIRE(runs[0].servers == 2);
  REQUIRE(runs[0].gpus == 5);
  REQUIRE(runs[1].servers == 1);
  REQUIRE(runs[1].gpus == 3);
  REQUIRE(runs[2].servers == 1);
  REQUIRE(runs[2].gpus == 5);
}

}  // namespace
}  // namespace trainyard
