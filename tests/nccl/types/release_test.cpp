// SPDX-License-Identifier: Apache-2.0
// Expected figures are those of src/graph/topo.h, src/graph/search.cc and src/include/devcomm.h of
// NVIDIA/nccl at the tag of each release.
#include "nccl/types/release.h"

#include "support/catch.h"

namespace trainyard::nccl {
namespace {

TEST_CASE("links have the rates that each release believes", "[nccl]") {
  const GpuGeneration& volta = gpu_generation(70);
  REQUIRE(nvlink_bandwidth(Version::V2_5, volta) == 21.0F);
  REQUIRE(nvlink_bandwidth(Version::V2_10, volta) == 22.0F);
  REQUIRE(nvlink_bandwidth(Version::V2_18, volta) == 20.0F);
  const GpuGeneration& hopper = gpu_generation(90);
  REQUIRE(nvlink_bandwidth(Version::V2_17, hopper) == 22.0F);
  REQUIRE(nvlink_bandwidth(Version::V2_20, hopper) == 20.0F);
  REQUIRE(nvlink_bandwidth(Version::V2_21, hopper) == 20.6F);
  REQUIRE(nvlink_bandwidth(Version::V2_26, gpu_generation(100)) == 40.0F);
  REQUIRE(nvlink_bandwidth(Version::V2_27, gpu_generation(100)) == 40.1F);
  REQUIRE(nvlink_bandwidth(Version::V2_16, gpu_generation(86)) == 12.0F);
  REQUIRE(release(Version::V2_5).skylake_sockets == 12.0F);
  REQUIRE(release(Version::V2_17).skylake_sockets == 9.0F);
  REQUIRE(release(Version::V2_18).skylake_sockets == 10.0F);
}

TEST_CASE("the search tries the speeds of its release", "[nccl]") {
  const auto first = [](Version version, int capability, bool several) {
    return search_speeds(version, gpu_generation(capability), several).front();
  };
  REQUIRE(first(Version::V2_6, 70, false) == 24.0F);
  REQUIRE(first(Version::V2_7, 80, true) == 42.0F);
  REQUIRE(first(Version::V2_12, 80, false) == 44.0F);
  REQUIRE(first(Version::V2_12, 80, true) == 48.0F);
  REQUIRE(first(Version::V2_18, 80, false) == 40.0F);
  REQUIRE(first(Version::V2_15, 90, false) == 44.0F);  // Hopper's own list came with 2.16.
  REQUIRE(first(Version::V2_16, 90, false) == 66.0F);
  REQUIRE(first(Version::V2_18, 90, false) == 60.0F);
  REQUIRE(first(Version::V2_24, 100, true) == 48.0F);
  REQUIRE(first(Version::V2_25, 100, false) == 90.0F);
  REQUIRE(first(Version::V2_27, 100, true) == 96.0F);
  REQUIRE(search_speeds(Version::V2_28, gpu_generation(100), false)[5] == 40.0F);
  REQUIRE(search_speeds(Version::V2_29, gpu_generation(100), false)[5] == 45.0F);
  REQUIRE(search_speeds(Version::V2_29, gpu_generation(100), true)[1] == 80.0F);
  REQUIRE(search_speeds(Version::V2_30, gpu_generation(100), true)[1] == 86.0F);
}

TEST_CASE("every list of speeds falls", "[nccl]") {
  for (int version = 0; version <= static_cast<int>(kNewestVersion); ++version) {
    for (const int capability : {70, 80, 89, 90, 100}) {
      for (const bool several : {false, true}) {
        const auto speeds =
            search_speeds(static_cast<Version>(version), gpu_generation(capability), several);
        for (std::size_t i = 1; i < speeds.size(); ++i) {
          REQUIRE(speeds[i] < speeds[i - 1]);
        }
      }
    }
  }
}

TEST_CASE("a communicator has 16, 32, then 64 channels at most", "[nccl]") {
  REQUIRE(release(Version::V2_4).max_channels == 16);
  REQUIRE(release(Version::V2_5).max_channels == 32);
  REQUIRE(release(Version::V2_24).max_channels == 32);
  REQUIRE(release(Version::V2_25).max_channels == 64);
  REQUIRE(release(Version::V2_19).tree_chunks == TreeChunks::ByNodes);
  REQUIRE(release(Version::V2_20).tree_chunks == TreeChunks::Whole);
}

TEST_CASE("AMD's GPUs have the row of RCCL, whatever the release", "[nccl][rccl]") {
  for (int version = 0; version <= static_cast<int>(kNewestVersion); ++version) {
    const Release& rules = release(static_cast<Version>(version), 942);
    REQUIRE(&rules == &release(kNewestVersion, 910));
    REQUIRE(rules.runtime == "RCCL");
    REQUIRE(rules.threads == 256);
    REQUIRE(&release(static_cast<Version>(version), 90) == &release(static_cast<Version>(version)));
    REQUIRE(release(static_cast<Version>(version)).runtime.empty());
  }
}

TEST_CASE("each release searches within its own bounds", "[nccl]") {
  REQUIRE(release(Version::V2_17).search_budget == 262'144);
  REQUIRE(release(Version::V2_18).search_budget == 327'680);
  REQUIRE(release(Version::V2_19).search_budget == 524'288);
  REQUIRE_FALSE(release(Version::V2_17).trees_are_as_many_as_rings);
  REQUIRE(release(Version::V2_18).trees_are_as_many_as_rings);
  REQUIRE(release(Version::V2_18).next_gpus == NextGpus::ByScore);
  REQUIRE(release(Version::V2_20).next_gpus == NextGpus::NeighboursFirst);
  REQUIRE(release(Version::V2_21).next_gpus == NextGpus::Neighbours);
  REQUIRE(release(Version::V2_26).first_gpus == FirstGpus::FromTurn);
  REQUIRE(release(Version::V2_27).first_gpus == FirstGpus::OwnFirst);
  REQUIRE_FALSE(release(Version::V2_24).bounds_types);
  REQUIRE(release(Version::V2_25).bounds_types);
  REQUIRE_FALSE(release(Version::V2_25).rings_need_two);
  REQUIRE(release(Version::V2_26).rings_need_two);
}

}  // namespace
}  // namespace trainyard::nccl
