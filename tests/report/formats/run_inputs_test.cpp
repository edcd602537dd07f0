// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/formats/run_inputs.h"

#include "support/built_clusters.h"

namespace trainyard {

TEST_CASE("what a run was made of are its settings and the rates of its links", "[run-inputs]") {
  const RunInputs inputs = run_inputs(shipped_cluster("dgx-h100", {.nodes = 2}), {"a=b"});
  REQUIRE(inputs.settings == std::vector<std::string>{"a=b"});
  REQUIRE(inputs.resources.front().first == "nvlink");
  REQUIRE(inputs.resources.front().second == "369 GB/s");
}

}  // namespace trainyard
