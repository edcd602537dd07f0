// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/cluster/cluster_keys.h"

#include <string>

#include "support/shipped.h"

namespace trainyard {
namespace {

const std::string kServer = "{template: pcie, gpu: L40S, gpus: 2, nic: ConnectX-7, nics: 1}";

ClusterKeys keys_of(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse("name: x\nsource: y\n" + text, "my.yaml");
  ClusterKeys keys{.catalogue = &open_catalogue()};
  read_fields(document.root(), keys, cluster_fields);
  document.finish();
  return keys;
}

TEST_CASE("a cluster has one group of servers or several") {
  const ClusterKeys one = keys_of("nodes: 3\nserver: " + kServer + "\n");
  REQUIRE(one.groups.size() == 1);
  REQUIRE(one.groups[0].count == 3);
  REQUIRE(one.groups[0].server.gpus == 2);
  REQUIRE(!one.fabric);
  const ClusterKeys two = keys_of("servers:\n  - {nodes: 1, server: " + kServer +
                                  "}\n  - {nodes: 2, server: " + kServer + "}\n");
  REQUIRE(two.groups.size() == 2);
  REQUIRE(two.size->path() == "servers");
}

TEST_CASE("a fabric has the keys of its template, and no others") {
  const std::string server = "nodes: 3\nserver: " + kServer + "\nfabric: ";
  const ClusterKeys torus =
      keys_of(server + "{template: torus, shape: [4, 2], switch: Rosetta, cable: 2 m}\n");
  REQUIRE(torus.fabric->shape == std::vector{4, 2});
  REQUIRE(torus.fabric->links == std::vector{1, 1});
  REQUIRE(torus.fabric->wraps == std::vector{true, true});
  REQUIRE(torus.fabric->part->name == "Rosetta");
  REQUIRE_THROWS_WITH(
      keys_of(server + "{template: torus, shape: [4, 2], swich: Rosetta, cable: 2 m}\n"),
      "my.yaml:5:42: fabric: missing key \"switch\"; is \"swich\" a misspelling of it?");
  REQUIRE_THROWS_WITH(
      keys_of(server + "{template: mesh, shape: [4, 2], switch: Rosetta, cable: 2 m, spines: 2}\n"),
      Catch::Contains("my.yaml:5:70: fabric: unknown key \"spines\""));
}

TEST_CASE("a fault is a node, two nodes or a mapping") {
  const ClusterKeys keys = keys_of("nodes: 1\nserver: " + kServer +
                                   "\nfaults: [leaf3, [a, b], {between: [a, c], lanes: 2}]\n");
  REQUIRE(keys.faults.size() == 3);
  REQUIRE(keys.faults[0].ends == std::vector<std::string>{"leaf3"});
  REQUIRE(keys.faults[1].ends == std::vector<std::string>{"a", "b"});
  REQUIRE(keys.faults[2].lanes == 2);
}

}  // namespace
}  // namespace trainyard
