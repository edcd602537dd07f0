// SPDX-License-Identifier: Apache-2.0
// The size of grids by formula, chips that route themselves, and what mistakes say.
#include "support/catch.h"

#include "topology/fabric/grid.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/clusters.h"

namespace trainyard {
namespace {

using namespace literals;

std::string text(const std::string& layout, const std::vector<int>& shape) {
  std::string list;
  for (const int length : shape) {
    list += (list.empty() ? "" : ", ") + std::to_string(length);
  }
  return "template: " + layout + ", shape: [" + list + "]";
}

const std::string kSwitch = ", switch: QuantumX800-Q3400, cable: 1 m";

// Links between neighbours in one row of k: a ring has k, but a pair has one, a line k - 1, a full
// mesh k (k - 1) / 2.
int row_links(const std::string& layout, int length) {
  if (layout == "hyperx") {
    return length * (length - 1) / 2;
  }
  return layout == "torus" && length > 2 ? length : length - 1;
}

TEST_CASE("a grid has the links that its shape says, and its halves are joined by the formula") {
  const std::vector<std::vector<int>> shapes = {{4},       {2, 2},    {6, 3},
                                                {4, 4, 4}, {2, 3, 4}, {8, 1, 2}};
  for (const std::string layout : {"torus", "mesh", "hyperx"}) {
    for (const auto& shape : shapes) {
      for (const int parallel : {1, 2}) {
        INFO(text(layout, shape) << ", " << parallel << " links");
        int switches = 1;
        for (const int length : shape) {
          switches *= length;
        }
        const Cluster cluster = cluster_of(
            switches, 1, text(layout, shape) + kSwitch + ", links: " + std::to_string(parallel));
        int links = 0;
        for (const int length : shape) {
          links += switches / length * row_links(layout, length) * parallel;
        }
        REQUIRE(switch_count(cluster.topology) == static_cast<std::uint32_t>(switches));
        REQUIRE(trunk_count(cluster.topology) == static_cast<std::uint32_t>(2 * links));
        // Cut the last dimension in half: of each row a line has one link there, a ring two, a
        // full mesh one for each pair.
        const int last = shape.back();
        const int low = last / 2;
        const int of_row = layout == "hyperx"              ? low * (last - low)
                           : layout == "torus" && last > 2 ? 2
                                                           : 1;
        int cut = 0;
        const std::uint32_t first = cluster.routing.fabric.first_switch.value();
        const std::uint32_t middle = first + static_cast<std::uint32_t>(switches / last * low);
        for (std::uint32_t index = 0; index < cluster.topology.link_count(); ++index) {
          const Link& link = cluster.topology.link(LinkId(index));
          cut += link.source.value() >= first && link.source.value() < middle &&
                         link.target.value() >= middle
                     ? 1
                     : 0;
        }
        REQUIRE(cut == switches / last * of_row * parallel);
      }
    }
  }
}

TEST_CASE("ring and full are a torus and a HyperX of one dimension") {
  for (const int length : {1, 2, 3, 6}) {
    const auto links = [&](const std::string& layout) {
      return trunk_count(cluster_of(length, 1, text(layout, {length}) + kSwitch).topology);
    };
    REQUIRE(links("ring") == links("torus"));
    REQUIRE(links("full") == links("hyperx"));
  }
}

TEST_CASE("endpoints are dealt to switches in order of servers") {
  const Cluster cluster = cluster_of(6, 4, text("mesh", {2, 3}) + kSwitch);
  for (std::uint32_t server = 0; server < 6; ++server) {
    for (std::uint32_t nic = 0; nic < 4; ++nic) {
      const auto node =
          cluster.topology.find("server" + std::to_string(server) + "/nic" + std::to_string(nic));
      const auto up = std::ranges::find_if(cluster.topology.links_from(*node), [&](LinkId link) {
        return cluster.topology.link(link).spec.kind == LinkKind::Network;
      });
      REQUIRE(cluster.topology.link(*up).target.value() ==
              cluster.routing.fabric.first_switch.value() + server);
    }
  }
}

TEST_CASE("a chip reaches its own router at the rate of all its links and without latency") {
  const Cluster cluster =
      cluster_of(64, 0, text("torus", {4, 4, 4}) + ", link: ICI-v4, attach: gpu");
  REQUIRE(cluster.nics_per_node == 0);
  REQUIRE(cluster.topology.find("chip3,0,2"));
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[3], 0, path));  // Once over the wrap.
  REQUIRE(path.size() == 3);
  REQUIRE(cluster.topology.link(path[0]).spec.bandwidth == gigabytes_per_second(6 * 45));
  REQUIRE(path_bandwidth(cluster.topology, path) == gigabytes_per_second(45));
  REQUIRE(path_latency(cluster.topology, path) == 1_us);
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[2 + 4 * 2 + 16 * 2], 0, path));
  REQUIRE(path_latency(cluster.topology, path) == 6_us);
}

TEST_CASE("chips of one server meet over their torus, not over PCIe") {
  ConfigDocument document = ConfigDocument::parse(
      "name: test\nsource: a test\nnodes: 4\nserver: {template: pcie, gpu: L40S, gpus: 4}\n"
      "fabric: {template: torus, shape: [4, 4], link: ICI-v4, attach: gpu, links: [2, 1]}\n",
      "my.yaml");
  const Cluster cluster = build_cluster(document, shipped_catalogue(), {});
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  REQUIRE(routing.route(cluster.gpus[0], cluster.gpus[1], 0, path));
  REQUIRE(path.size() == 3);
  REQUIRE(path_bandwidth(cluster.topology, path) == gigabytes_per_second(2 * 45));
}

TEST_CASE("numbers of a grid that do not fit are refused") {
  const auto fails = [](int nodes, int nics, const std::string& fabric, const std::string& error) {
    REQUIRE_THROWS_WITH(cluster_of(nodes, nics, fabric), Catch::Contains(error));
  };
  fails(17, 1, text("torus", {4, 4}) + kSwitch + ", endpoints_per_switch: 1",
        "my.yaml:3:8: nodes: at most 16 NICs fit 16 switches of 1, found 17");
  fails(4, 1, text("hyperx", {40, 40}) + ", switch: Rosetta, cable: 1 m",
        "fabric.switch: Rosetta has 64 ports, and 79 are needed: 1 for endpoints, 78 for other");
  fails(4, 1, text("torus", {4, 4, 4, 4, 4, 4, 4}) + kSwitch, "expected one to six dimensions");
  fails(4, 1, text("ring", {4, 4}) + kSwitch, "expected one dimension, as in [8], found 2");
  fails(4, 1, text("torus", {4, 4}) + kSwitch + ", wraps: [true]",
        "fabric.wraps: expected 2 values, one for each dimension, found 1");
  fails(4, 1, text("mesh", {4, 4}) + kSwitch + ", wraps: [true, true]", "wraps");
  fails(4, 1, text("torus", {4, 4}) + ", link: ICI-v4", "it needs attach: gpu");
  fails(4, 0, text("torus", {4, 4}) + ", link: NVLink4, attach: gpu", "a link of family ici");
  fails(4, 0, text("torus", {4, 4}) + kSwitch + ", link: ICI-v4, attach: gpu",
        "give either this or link");
  fails(4, 0,
        text("torus", {4, 4}) + ", link: ICI-v4, attach: gpu, links: 64, endpoints_per_switch: 2",
        "a chip that routes itself is one endpoint");
  fails(4, 0, text("hyperx", {64, 64}) + ", link: ICI-v5p, attach: gpu, links: 64",
        "fabric.shape: a chip has 8064 links");
  fails(4, 1, text("torus", {4000, 4000}) + kSwitch, "at most 1000000 switches in all");
  fails(4, 0, "template: clos, leaf: Rosetta, cable: 1 m, attach: gpu",
        "fabric.attach: expected nic, as this template joins NICs only");
  fails(4, 1, "template: single-switch, leaf: Rosetta, cable: 1 m, routing: valiant",
        "fabric.routing: expected a policy of this template");
}

}  // namespace
}  // namespace trainyard
