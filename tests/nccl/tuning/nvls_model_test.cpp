// SPDX-License-Identifier: Apache-2.0
// Expected figures follow by hand from src/graph/tuning.cc of NVIDIA/nccl at the tag of each
// release, for eight H100 (40 GB/s a channel inside, 60 on one node and 48 on several between).
#include "nccl/tuning/nvls_model.h"

#include "support/catch.h"

namespace trainyard::nccl {
namespace {

Communicator made(Version version, int nodes) {
  Communicator communicator;
  communicator.version = version;
  communicator.nodes = nodes;
  communicator.ranks = 8 * nodes;
  communicator.min_compute_capability = communicator.max_compute_capability = 90;
  communicator.aligned.nvls = {.pattern = GraphPattern::Nvls,
                               .channel_count = 8,
                               .bw_intra = 40.0,
                               .bw_inter = nodes == 1 ? 60.0 : 48.0};
  return communicator;
}

// The bandwidth of the payload.
double payload(Version version, int nodes, Algorithm algorithm,
               Function function = Function::AllReduce) {
  const Communicator communicator = made(version, nodes);
  if (!has_nvls(communicator, function, algorithm)) {
    return 0.0;
  }
  return static_cast<double>(
      nvls_bandwidth(communicator, function, algorithm, communicator.aligned.nvls) *
      nvls_ratio(communicator, function, algorithm, 2 * (communicator.ranks - 1)));
}

TEST_CASE("NVLS comes with 2.17 and NVLSTree with 2.18", "[nccl][tuning]") {
  REQUIRE(payload(Version::V2_16, 1, Algorithm::Nvls) == 0.0);
  REQUIRE(payload(Version::V2_17, 1, Algorithm::Nvls) == Approx(0.75 * 320));
  REQUIRE(payload(Version::V2_17, 1, Algorithm::Nvls, Function::AllGather) > 0.0);
  REQUIRE(payload(Version::V2_17, 2, Algorithm::NvlsTree) == 0.0);
  REQUIRE(payload(Version::V2_18, 1, Algorithm::Nvls) == Approx(320 * 5.0 / 6.0));
  REQUIRE(payload(Version::V2_18, 1, Algorithm::Nvls, Function::AllGather) == 0.0);
  REQUIRE(payload(Version::V2_18, 2, Algorithm::NvlsTree) == Approx(0.7 * 320));
  REQUIRE(payload(Version::V2_18, 8, Algorithm::NvlsTree) == Approx(0.7 * 8 / 14.0 * 384));
}

TEST_CASE("NVLSTree joins nodes of up to 32 GPUs, or where NVLS is forced", "[nccl][tuning]") {
  for (const int ranks : {8, 32, 36, 72}) {
    Communicator communicator;
    communicator.ranks = 2 * ranks;
    communicator.nodes = 2;
    communicator.first_rank = {0, ranks, 2 * ranks};
    Environment environment;
    REQUIRE(joins_by_nvls_tree(communicator, environment) == (ranks <= 32));
    environment.nvls_enable = 1;
    REQUIRE(joins_by_nvls_tree(communicator, environment));
  }
}

TEST_CASE("from 2.19 to 2.27 NVLSTree gets half of the NICs from three nodes on",
          "[nccl][tuning]") {
  for (const Version version : {Version::V2_19, Version::V2_23, Version::V2_27}) {
    REQUIRE(payload(version, 2, Algorithm::NvlsTree) == Approx(320 * 5.0 / 6.0));
    REQUIRE(payload(version, 8, Algorithm::NvlsTree) == Approx(8 * 24 * 5.0 / 6.0));
  }
  REQUIRE(payload(Version::V2_19, 1, Algorithm::Nvls, Function::AllGather) ==
          Approx(320 * 5.0 / 6.0));
  REQUIRE(payload(Version::V2_23, 1, Algorithm::Nvls, Function::AllGather) == Approx(320));
  REQUIRE(payload(Version::V2_27, 1, Algorithm::Nvls, Function::AllGather) ==
          Approx(320 * 7 / 8.0));
}

TEST_CASE("from 2.28 on NVLS has an efficiency and NVLSTree a limit", "[nccl][tuning]") {
  const double one = 2 * 40.0 * 0.85 * 7 / 8;
  REQUIRE(payload(Version::V2_28, 1, Algorithm::Nvls) == Approx(8 * one * 8 / 14).margin(0.01));
  REQUIRE(payload(Version::V2_28, 8, Algorithm::NvlsTree) == Approx(8 * 45.5 * 64 / 126));
}

}  // namespace
}  // namespace trainyard::nccl
