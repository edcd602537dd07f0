// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/html/html_links.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "parallelism/run/resources.h"
#include "support/built_clusters.h"

namespace trainyard {

TEST_CASE("servers and switches are units, with their own links inside", "[html-links]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  const Topology& topology = cluster.topology;
  const LinkResources resources(topology);
  const SimTime time = milliseconds(100);
  std::vector<LinkTraffic> traffic;
  double busiest = 0.0;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const LinkId link(index);
    const std::string& key = resources.of(link).key;
    if (key == "nic" || key == "nvlink") {
      const Bytes bytes = mib(1 + index % 7);
      traffic.push_back({.link = link, .parts = {{.purpose = "data", .bytes = bytes}}});
      busiest = std::max(busiest, transfer_time(bytes, topology.link(link).spec.bandwidth) / time);
    }
  }
  const HtmlLinks made = html_links(topology, traffic, time);
  double max = 0.0;
  int servers = 0;
  for (const nlohmann::ordered_json& unit : made.units) {
    const bool is_server = unit["level"] == 0;
    servers += is_server ? 1 : 0;
    REQUIRE(unit["inside"].size() == (is_server ? 1U : 0U));
    for (const nlohmann::ordered_json& inside : unit["inside"]) {
      REQUIRE(inside[0] == "NVLink");
      REQUIRE(inside[2].get<double>() <= inside[1].get<double>());
      max = std::max(max, inside[1].get<double>());
    }
  }
  REQUIRE(servers == 4);
  REQUIRE(made.units.front()["name"] == "server 0");
  // Each of eight rails has a leaf.
  REQUIRE(made.edges.size() == 4 * 8);
  for (const nlohmann::ordered_json& edge : made.edges) {
    REQUIRE(edge[4] == 1);
    REQUIRE(made.units[edge[0].get<std::size_t>()]["level"] !=
            made.units[edge[1].get<std::size_t>()]["level"]);
    max = std::max({max, edge[2].get<double>(), edge[3].get<double>()});
  }
  REQUIRE(max == Approx(busiest).margin(5e-5));  // Rounded to four digits.
}

}  // namespace trainyard
