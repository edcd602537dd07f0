// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/tuning/nvls_channels.h"

namespace trainyard::nccl {
namespace {

Communicator with_nvls(int capability, int nodes, int ppn, double nic = 0.0,
                       PathType path = PathType::Pix) {
  Communicator communicator;
  communicator.ranks = nodes * ppn;
  communicator.nodes = nodes;
  for (int node = 0; node <= nodes; ++node) {
    communicator.first_rank.push_back(node * ppn);
  }
  communicator.min_compute_capability = capability;
  communicator.aligned.nvls = Graph{.bw_inter = nic, .type_inter = path};
  return communicator;
}

Communicator hopper(int nodes) {
  return with_nvls(90, nodes, 8);
}

Communicator blackwell(int nodes, int ppn, double nic, PathType path = PathType::Pix) {
  return with_nvls(100, nodes, ppn, nic, path);
}

TEST_CASE("NVLS has 16 channels on Hopper, 24 and 32 on Blackwell", "[nccl][nvls]") {
  REQUIRE(nvls_setup(hopper(1), {}).channels == 16);
  REQUIRE(nvls_setup(hopper(16), {}).channels == 16);
  REQUIRE(nvls_setup(blackwell(1, 8, 0), {}).channels == 24);
  REQUIRE(nvls_setup(blackwell(4, 8, 24), {}).channels == 32);
  REQUIRE(nvls_setup(blackwell(2, 8, 48), {}).channels == 32);
  REQUIRE(nvls_setup(blackwell(4, 8, 48), {}).channels == 24);
  REQUIRE(nvls_setup(blackwell(4, 8, 96), {}).channels == 24);
  REQUIRE(nvls_setup(blackwell(4, 36, 96), {}).channels == 32);
}

TEST_CASE("older releases do not look at the NIC", "[nccl][nvls]") {
  Communicator input = blackwell(4, 8, 96);
  input.version = Version::V2_28;
  REQUIRE(nvls_setup(input, {}).channels == 32);
  REQUIRE(nvls_setup(input, {}).chunk == kib(128));
  REQUIRE(nvls_setup(input, {}).tree_chunk == kib(64));
}

TEST_CASE("chunks of NVLSTree follow nodes, NICs and ranks per node", "[nccl][nvls]") {
  REQUIRE(nvls_setup(hopper(3), {}).tree_chunk == kib(128));
  REQUIRE(nvls_setup(hopper(4), {}).tree_chunk == kib(64));
  REQUIRE(nvls_setup(blackwell(2, 4, 48), {}).chunk == kib(256));
  REQUIRE(nvls_setup(blackwell(2, 8, 48), {}).tree_chunk == kib(64));
  REQUIRE(nvls_setup(blackwell(2, 8, 48, PathType::Pxn), {}).tree_chunk == kib(128));
  REQUIRE(nvls_setup(blackwell(2, 8, 96), {}).tree_chunk == kib(128));
  REQUIRE(nvls_setup(blackwell(2, 72, 96), {}).tree_chunk == kib(64));
  REQUIRE(nvls_setup(blackwell(4, 8, 96), {}).tree_chunk == kib(256));
  REQUIRE(nvls_setup(blackwell(4, 16, 96), {}).tree_chunk == kib(128));
  REQUIRE(nvls_setup(blackwell(4, 72, 96), {}).tree_chunk == kib(64));
}

TEST_CASE("variables win over the rules of NVLS, and the limits of CTAs over them",
          "[nccl][nvls][environment]") {
  Environment environment;
  environment.nvls_channels = 20;
  environment.nvls_chunk = kib(512);
  REQUIRE(nvls_setup(hopper(1), environment).channels == 20);
  REQUIRE(nvls_setup(hopper(1), environment).tree_chunk == kib(512));
  environment.max_ctas = 8;
  environment.nvls_tree_max_chunk = kib(32);
  REQUIRE(nvls_setup(hopper(1), environment).channels == 8);
  REQUIRE(nvls_setup(hopper(1), environment).tree_chunk == kib(32));
}

}  // namespace
}  // namespace trainyard::nccl
