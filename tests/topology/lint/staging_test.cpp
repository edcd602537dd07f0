// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/lint/staging.h"

#include <string>
#include <vector>

#include "support/built_clusters.h"

namespace trainyard {

TEST_CASE("what is staged is said for each kind of server", "[staging]") {
  using Notes = std::vector<std::string>;
  REQUIRE(staging_notes(shipped_cluster("dgx-h100")).empty());
  REQUIRE(staging_notes(shipped_cluster("a100-pcie-staged")) ==
          Notes{"staged through host memory in server0 and servers like it: 6 of 6 pairs of its "
                "GPUs (beyond peer_access) (docs/models/topology.md)"});
  // GPUs reach each other over NVLink, but not the NICs of the server without its traits.
  REQUIRE(staging_notes(shipped_cluster("dgx-h100", {.settings = {"server.gpudirect=none"}})) ==
          Notes{"staged through host memory in server0 and servers like it: 8 of 8 GPUs on the way "
                "to the NIC (beyond gpudirect) (docs/models/topology.md)"});
  REQUIRE(staging_notes(
              shipped_cluster("dgx-h100", {.nodes = 1, .settings = {"server.gpudirect=none"}}))
              .empty());
  REQUIRE(staging_notes(
              shipped_cluster("mixed-a100", {.settings = {"servers.0.server.gpudirect=none"}}))
              .size() == 1);
}

}  // namespace trainyard
