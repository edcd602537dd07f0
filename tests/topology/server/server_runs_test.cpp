// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/server/server_runs.h"

namespace trainyard {
namespace {

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
