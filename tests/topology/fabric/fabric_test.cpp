// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "support/shipped.h"
#include "topology/fabric/fabric.h"

#include <string>

namespace trainyard {
namespace {

TEST_CASE("an unknown template or routing is refused with the known ones") {
  const auto read = [](const std::string& fabric) {
    ConfigDocument document =
        ConfigDocument::parse("nodes: 1\nfabric: {" + fabric + "}\n", "fabric.yaml");
    FabricKeys keys{.catalogue = &open_catalogue()};
    read_fields(document.root().required("fabric"), keys, fabric_fields);
  };
  REQUIRE_THROWS_WITH(read("template: close"),
                      Catch::Contains("fabric.yaml:2:20: fabric.template: expected one of") &&
                          Catch::Contains("did you mean \"clos\"?"));
  REQUIRE_THROWS_WITH(read("template: clos, routing: hashed"),
                      Catch::Contains("fabric.routing: expected one of"));
}

}  // namespace
}  // namespace trainyard
