// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>

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
  REQUIRE(oldest.base_latency[6] == newest.base_latency[6]);
  REQUIRE(oldest.net_latency[5][2] == 14.0);
  REQUIRE(newest.net_latency[5][2] == 20.9);
}

// Figures of src/graph/tuning.cc at the tag of each release, two or three of each.
TEST_CASE("older releases have the numbers of their sources", "[nccl][tuning]") {
  constexpr auto kTree = static_cast<std::size_t>(Algorithm::Tree);
  constexpr auto kRing = static_cast<std::size_t>(Algorithm::Ring);
  const auto of = [](Version version) { return tuning_constants(version); };
  REQUIRE(of(Version::V2_5).tree_total == ByScale{90.0, 70.0, 70.0});
  REQUIRE(of(Version::V2_5).base_latency[kRing] == ByProtocol{3.6, 3.6, 8.4});
  REQUIRE(of(Version::V2_6).ring_ll128_total == ByFunction{113.0, 72.0, 110.0, 91.0, 100.0});
  REQUIRE(of(Version::V2_6).net_latency[kRing] == ByProtocol{0.9, 2.5, 6.6});
  REQUIRE(of(Version::V2_7).net_latency[kTree] == ByProtocol{5.0, 8.5, 50.0});
  REQUIRE(of(Version::V2_7).ring_ll128_channel == ByFunction{18.8, 12.0, 18.3, 15.2, 16.7});
  REQUIRE(of(Version::V2_8).tree_simple_max[1] == ByScale{24.0, 22.5, 16.0});
  REQUIRE(of(Version::V2_8).ll_max[0] == ByScale{39.0, 39.0, 20.4});
  REQUIRE(of(Version::V2_10).ring_ll128_max[0] == ByScale{20.0, 20.0, 20.0});
  REQUIRE(of(Version::V2_12).net_latency[kRing] == ByProtocol{2.7, 4.0, 28.0});
  REQUIRE(of(Version::V2_14).net_latency[kRing] == ByProtocol{2.7, 4.0, 9.6});
  REQUIRE(of(Version::V2_16).ll_max[2] == ByScale{87.7, 22.5, 19.0});
  REQUIRE(of(Version::V2_17).bus_max == ByGeneration{kNoLimit, 235.0, 370.0, 370.0});
  REQUIRE(of(Version::V2_17).tree_simple_max[2] == ByScale{38.7, 41.4, 33.0});
  REQUIRE(of(Version::V2_18).nvlink_latency[kTree] == ByProtocol{0.6, 1.25, 4.0});
  REQUIRE(of(Version::V2_18).pci_latency[kTree] == ByProtocol{1.0, 1.9, 6.0});
  REQUIRE(of(Version::V2_19).nvlink_latency[kTree] == ByProtocol{0.6, 1.25, 28.0});
  REQUIRE(of(Version::V2_20).ll_max[2] == ByScale{87.7, 22.5, 19.0});
  REQUIRE(of(Version::V2_21).ll_max[2] == ByScale{141.0, 45.0, 35.0});
  REQUIRE(of(Version::V2_21).base_latency[kTree] == ByProtocol{6.8, 14.0, 0.0});
  REQUIRE(of(Version::V2_23).pat_share == 0.85);
  REQUIRE(of(Version::V2_24).tree_simple_max[3] == ByScale{38.7, 41.4, 36.0});
  REQUIRE(of(Version::V2_26).tree_simple_max[3] == ByScale{77.4, 82.8, 72.0});
}

TEST_CASE("LL128 comes to more GPUs release by release", "[nccl][tuning]") {
  const auto knows = [](Version version, int capability) {
    const auto known = tuning_constants(version).ll128.compute_capabilities;
    return known.empty() || std::find(known.begin(), known.end(), capability) != known.end();
  };
  REQUIRE(knows(Version::V2_5, 70));
  REQUIRE_FALSE(knows(Version::V2_6, 80));
  REQUIRE(knows(Version::V2_7, 80));
  REQUIRE_FALSE(knows(Version::V2_14, 90));
  REQUIRE(knows(Version::V2_15, 90));
  REQUIRE_FALSE(knows(Version::V2_24, 100));
  REQUIRE(knows(Version::V2_25, 100));
  REQUIRE_FALSE(knows(Version::V2_26, 89));
  REQUIRE(knows(Version::V2_27, 89));
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
  REQUIRE(tree_correction(Protocol::Simple, Version::V2_5)[12] == 1.0F);
  REQUIRE(tree_correction(Protocol::LL, Version::V2_6)[12] == 0.5F);
  REQUIRE(tree_correction(Protocol::LL128, Version::V2_7)[13] == 0.5F);
  REQUIRE(tree_correction(Protocol::LL128, Version::V2_8)[21] == 0.92F);
}

}  // namespace
}  // namespace trainyard::nccl
