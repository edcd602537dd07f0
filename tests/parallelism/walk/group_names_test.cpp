// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/walk/group_names.h"

#include "parallelism/walk/step_traffic.h"

namespace trainyard {
namespace {

TEST_CASE("the name of a communicator says what its calls are for") {
  for (int index = 0; index <= static_cast<int>(RankGroupKind::Ends); ++index) {
    const auto kind = static_cast<RankGroupKind>(index);
    REQUIRE(purpose_of_communicator(communicator_name(kind, 128)) == purpose_of(kind));
  }
  REQUIRE(communicator_name(RankGroupKind::ExpertTensor, 4) == "expert tensor 4");
  REQUIRE(purpose_of_communicator("expert gradient 0") == "data");
  REQUIRE(purpose_of_communicator("indices") == "indices");
  REQUIRE(purpose_of_communicator("TP 16") == "TP");
  REQUIRE(purpose_of_communicator("group of 8 ranks") == "group of 8 ranks");
  REQUIRE(purpose_of_communicator("").empty());
}

}  // namespace
}  // namespace trainyard
