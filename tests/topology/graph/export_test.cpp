// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/graph/export.h"

#include <nlohmann/json.hpp>
#include <string>

namespace trainyard {
namespace {

using namespace literals;

Topology small() {
  TopologyBuilder builder;
  const ServerId server = builder.add_server();
  const NodeId gpu =
      builder.add_node({.kind = NodeKind::Gpu, .name = "server0/gpu0", .server = server});
  const NodeId leaf =
      builder.add_node({.kind = NodeKind::Switch, .name = "leaf \"A\"", .latency = 130_ns});
  const LinkSpec link{.bandwidth = gigabits_per_second(400), .latency = 150_ns};
  builder.add_duplex_link(gpu, leaf, link);
  builder.add_duplex_link(gpu, leaf, link);
  builder.add_link(leaf, gpu, link);
  return std::move(builder).build();
}

TEST_CASE("Graphviz shows servers as boxes and both directions as one line") {
  REQUIRE(to_dot(small()) ==
          "digraph topology {\n"
          "  subgraph cluster_0 {\n"
          "    label=\"server0\";\n"
          "    \"server0/gpu0\" [shape=box];\n"
          "  }\n"
          "  \"leaf \\\"A\\\"\" [shape=ellipse];\n"
          "  \"server0/gpu0\" -> \"leaf \\\"A\\\"\" [dir=none, label=\"2 x network 50 GB/s\"];\n"
          "  \"leaf \\\"A\\\"\" -> \"server0/gpu0\" [dir=forward, label=\"network 50 GB/s\"];\n"
          "}\n");
}

TEST_CASE("JSON holds every node and every directed link") {
  const nlohmann::json root = nlohmann::json::parse(graph_json(small()).dump());
  REQUIRE(root["nodes"].size() == 2);
  REQUIRE(root["nodes"][0]["kind"] == "gpu");
  REQUIRE(root["nodes"][0]["server"] == 0);
  REQUIRE(!root["nodes"][1].contains("server"));
  REQUIRE(root["nodes"][1]["latency_ps"] == 130'000);
  REQUIRE(root["links"].size() == 5);
  REQUIRE(root["links"][4]["source"] == 1);
  REQUIRE(root["links"][4]["target"] == 0);
  REQUIRE(root["links"][4]["bandwidth_bits_per_s"] == 400'000'000'000);
}

}  // namespace
}  // namespace trainyard
