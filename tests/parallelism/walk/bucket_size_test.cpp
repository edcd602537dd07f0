// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/walk/bucket_size.h"

namespace trainyard {

TEST_CASE("buckets grow with the ranks that share gradients", "[bucket-size]") {
  REQUIRE(bucket_parameters({.data = 8}) == 40'000'000);
  REQUIRE(bucket_parameters({.context = 2, .data = 64}) == 128'000'000);
}

}  // namespace trainyard
