// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

TEST_CASE("times of a format have names", "[imported]") {
  for (const ImportedFormat format : kImportedFormats) {
    REQUIRE(imported_part_name(format, StepPart::Linear) == "compute");
    REQUIRE(imported_part_name(format, StepPart::Bubble) == "wait");
    REQUIRE(imported_part_name(format, StepPart::Jitter).empty());
  }
}

}  // namespace trainyard
