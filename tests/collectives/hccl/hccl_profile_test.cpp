// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/hccl/hccl_profile.h"

#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {

TEST_CASE("the costs of HCCL's tasks are read from their file", "[collectives][hccl]") {
  const HcclProfile profile = HcclProfile::load(source_dir() / "configs" / "hccl" / "profile.yaml");
  REQUIRE(profile.notify == microseconds(1));
  REQUIRE(profile.copy < profile.long_copy);
  REQUIRE(profile.rdma == microseconds(7));
  REQUIRE(profile.memory > Bandwidth());
  REQUIRE_THROWS_AS(HcclProfile::load(source_dir() / "configs" / "nccl" / "profile.yaml"),
                    ConfigError);
}

}  // namespace trainyard
