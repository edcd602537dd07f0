// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/mpi/mpi_profile.h"

#include "sim/config_error.h"
#include "support/mpi.h"

namespace trainyard {

TEST_CASE("what messages of MPI cost is read from its file", "[collectives][mpi]") {
  const MpiProfile profile = shipped_mpi_profile();
  REQUIRE(profile.shared.eager == kib(4));
  REQUIRE(profile.tcp.eager == kib(64));
  REQUIRE(profile.shared.copy < profile.shared.read);
  REQUIRE(profile.shared.send < profile.tcp.send);
  REQUIRE_THROWS_AS(MpiProfile::load(source_dir() / "configs" / "hccl" / "profile.yaml"),
                    ConfigError);
}

}  // namespace trainyard
