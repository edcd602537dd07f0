// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/foreign_workload.h"

namespace trainyard {

TEST_CASE("times of a format have names", "[foreign]") {
  for (const ForeignFormat format : kForeignFormats) {
    REQUIRE(foreign_part_name(format, StepPart::Linear) == "compute");
    REQUIRE(foreign_part_name(format, StepPart::Bubble) == "wait");
    REQUIRE(foreign_part_name(format, StepPart::Jitter).empty());
  }
}

}  // namespace trainyard
