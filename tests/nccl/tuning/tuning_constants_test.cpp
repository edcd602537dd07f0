// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <cmath>

#include "nccl/tuning/tuning_constants.h"

namespace trainyard::nccl {
namespace {

TEST_CASE("releases differ in Blackwell, PAT and NVLSTree alone", "[nccl][tuning]") {
  const TuningConstants& newest = tuning_constants(Version::V2_30);
  const TuningConstants& middle = tuning_constants(Version::V2_28);
  const TuningConstants& oldest = tuning_constants(Version::V2_27);
  REQUIRE(newest.ll_max == oldest.ll_max);
  for (std::size_t generation = 0; generation < 3; ++generation) {
    REQUIRE(newest.ring_ll128_max[generation] == oldest.ring_ll128_max[generation]);
    REQUIRE(newest.tree_ll128_max[generation] == oldest.tree_ll128_max[generation]);
    REQUIRE(newest.tree_simple_max[generation] == oldest.tree_simple_max[generation]);
  }
  REQUIRE(middle.ring_ll128_max[3] == ByScale{73.4, 34.6, 73.4});
  REQUIRE(oldest.ring_ll128_max[3] == ByScale{73.4, 73.4, 73.4});
  REQUIRE(middle.nvls_tree_max[3] == ByScale{0.0, 96.0, 43.8});
  REQUIRE(middle.nvls_tree_max[2] == newest.nvls_tree_max[2]);
  REQUIRE(std::isinf(oldest.nvls_tree_max[2][1]));
  REQUIRE(oldest.base_latency[6] == ByProtocol{0.0, 0.0, 0.0});
  REQUIRE(oldest.net_latency[5][2] == 14.0);
  REQUIRE(newest.net_latency[5][2] == 20.9);
}

TEST_CASE("the correction of trees never speeds them up", "[nccl][tuning]") {
  for (const Protocol protocol : kProtocols) {
    for (const float factor : tree_correction(protocol)) {
      REQUIRE(factor >= 0.4F);
      REQUIRE(factor <= 1.0F);
    }
  }
  REQUIRE(tree_correction(Protocol::LL)[12] == 0.4F);
  REQUIRE(tree_correction(Protocol::LL128)[16] == 0.8F);
  REQUIRE(tree_correction(Protocol::Simple)[18] == 0.7F);
}

}  // namespace
}  // namespace trainyard::nccl
