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

Communicator set_up(Communicator communicator, const Environment& environment) {
  set_up_nvls(communicator, environment);
  return communicator;
}

Communicator hopper(int nodes) {
  return with_nvls(90, nodes, 8);
}

Communicator blackwell(int nodes, int ppn, double nic, PathType path = PathType::Pix) {
  return with_nvls(100, nodes, ppn, nic, path);
}

TEST_CASE("NVLS has 16 channels on Hopper, 24 and 32 on Blackwell", "[nccl][nvls]") {
  REQUIRE(set_up(hopper(1), {}).nvls_channels == 16);
  REQUIRE(set_up(hopper(16), {}).nvls_channels == 16);
  REQUIRE(set_up(blackwell(1, 8, 0), {}).nvls_channels == 24);
  REQUIRE(set_up(blackwell(4, 8, 24), {}).nvls_channels == 32);
  REQUIRE(set_up(blackwell(2, 8, 48), {}).nvls_channels == 32);
  REQUIRE(set_up(blackwell(4, 8, 48), {}).nvls_channels == 24);
  REQUIRE(set_up(blackwell(4, 8, 96), {}).nvls_channels == 24);
  REQUIRE(set_up(blackwell(4, 36, 96), {}).nvls_channels == 32);
}

TEST_CASE("older releases do not look at the NIC", "[nccl][nvls]") {
  Communicator input = blackwell(4, 8, 96);
  input.version = Version::V2_28;
  REQUIRE(set_up(input, {}).nvls_channels == 32);
  REQUIRE(set_up(input, {}).nvls_chunk == kib(128));
  REQUIRE(set_up(input, {}).nvls_tree_chunk == kib(64));
}

TEST_CASE("chunks of NVLSTree follow nodes, NICs and ranks per node", "[nccl][nvls]") {
  REQUIRE(set_up(hopper(3), {}).nvls_tree_chunk == kib(128));
  REQUIRE(set_up(hopper(4), {}).nvls_tree_chunk == kib(64));
  REQUIRE(set_up(blackwell(2, 4, 48), {}).nvls_chunk == kib(256));
  REQUIRE(set_up(blackwell(2, 8, 48), {}).nvls_tree_chunk == kib(64));
  REQUIRE(set_up(blackwell(2, 8, 48, PathType::Pxn), {}).nvls_tree_chunk == kib(128));
  REQUIRE(set_up(blackwell(2, 8, 96), {}).nvls_tree_chunk == kib(128));
  REQUIRE(set_up(blackwell(2, 72, 96), {}).nvls_tree_chunk == kib(64));
  REQUIRE(set_up(blackwell(4, 8, 96), {}).nvls_tree_chunk == kib(256));
  REQUIRE(set_up(blackwell(4, 16, 96), {}).nvls_tree_chunk == kib(128));
  REQUIRE(set_up(blackwell(4, 72, 96), {}).nvls_tree_chunk == kib(64));
}

TEST_CASE("variables win over the rules of NVLS, and the limits of CTAs over them",
          "[nccl][nvls][environment]") {
  Environment environment;
  environment.nvls_channels = 20;
  environment.nvls_chunk = kib(512);
  REQUIRE(set_up(hopper(1), environment).nvls_channels == 20);
  REQUIRE(set_up(hopper(1), environment).nvls_tree_chunk == kib(512));
  environment.max_ctas = 8;
  environment.nvls_tree_max_chunk = kib(32);
  REQUIRE(set_up(hopper(1), environment).nvls_channels == 8);
  REQUIRE(set_up(hopper(1), environment).nvls_tree_chunk == kib(32));
}

}  // namespace
}  // namespace trainyard::nccl
