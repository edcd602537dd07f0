// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/precision.h"

#include <cstddef>
#include <set>
#include <string_view>

#include "parallelism/workload/gpu_rates.h"
#include "support/catch.h"

namespace trainyard {
namespace {

TEST_CASE("every precision has a row with a name of its own, bytes and a peak", "[workload]") {
  std::set<std::string_view> names;
  for (std::size_t index = 0; index < kPrecisionCount; ++index) {
    const PrecisionRow& row = row_of(static_cast<Precision>(index));
    REQUIRE(row.name == precision_names().at(index));
    REQUIRE(names.insert(row.name).second);
    REQUIRE((row.element_bytes == 2 || row.element_bytes == 4));
    REQUIRE_FALSE(row.peak.empty());
  }
  REQUIRE(to_string(Precision::Nvfp4) == "nvfp4");
  REQUIRE(row_of(Precision::Fp32).element_bytes == 4);
}

TEST_CASE("MXFP8 has a rate of its own, of the peak of FP8", "[workload]") {
  const PrecisionRow& fine = row_of(Precision::Mxfp8);
  const PrecisionRow& coarse = row_of(Precision::Fp8);
  REQUIRE(fine.linear_share != coarse.linear_share);
  REQUIRE(fine.linear_peak == coarse.linear_peak);
  REQUIRE(fine.cast == coarse.cast);
  REQUIRE(row_of(Precision::Bf16).linear_share == nullptr);
}

}  // namespace
}  // namespace trainyard
