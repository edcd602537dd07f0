// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <cstdint>

#include "nccl/tuning/chunking.h"
#include "sim/random.h"
#include "support/nccl_machines.h"

namespace trainyard::nccl {
namespace {

Bytes chunk_of(const TunedMachine& machine, Function function, Algorithm algorithm,
               Protocol protocol, Bytes bytes, int channels = 1) {
  return chunk_bytes(function, algorithm, protocol, bytes, channels, communicator_of(machine), {});
}

TEST_CASE("steps hold data, not flags", "[nccl][chunking]") {
  const Communicator communicator = communicator_of(h100_node());
  REQUIRE(step_bytes(Algorithm::Ring, Protocol::LL, communicator, {}) == Bytes(32'768));
  REQUIRE(step_bytes(Algorithm::Ring, Protocol::LL128, communicator, {}) == Bytes(576'000));
  REQUIRE(step_bytes(Algorithm::Ring, Protocol::Simple, communicator, {}) == kib(512));
  REQUIRE(step_bytes(Algorithm::Nvls, Protocol::Simple, communicator, {}) == kib(128));
}

TEST_CASE("rings with Simple take four steps in two slices, all others one", "[nccl][chunking]") {
  for (const Function function : kFunctions) {
    const bool whole = function != Function::Broadcast && function != Function::Reduce;
    REQUIRE(chunk_shape(function, Algorithm::Ring, Protocol::Simple).steps == (whole ? 4 : 1));
    REQUIRE(chunk_shape(function, Algorithm::Ring, Protocol::Simple).slices == (whole ? 2 : 1));
    REQUIRE(chunk_shape(function, Algorithm::Ring, Protocol::LL).steps == 1);
    REQUIRE(chunk_shape(function, Algorithm::Tree, Protocol::Simple).slices == 1);
  }
}

TEST_CASE("chunks of rings do not depend on the size", "[nccl][chunking]") {
  for (const Bytes bytes : {Bytes(1), mib(1), gib(1)}) {
    REQUIRE(chunk_of(h100_node(), Function::AllReduce, Algorithm::Ring, Protocol::Simple, bytes) ==
            mib(2));
    REQUIRE(chunk_of(h100_node(), Function::Broadcast, Algorithm::Ring, Protocol::Simple, bytes) ==
            kib(512));
    REQUIRE(chunk_of(h100_node(), Function::AllReduce, Algorithm::Ring, Protocol::LL, bytes) ==
            kib(32));
    REQUIRE(chunk_of(h100_node(), Function::AllReduce, Algorithm::Ring, Protocol::LL128, bytes) ==
            Bytes(576'000));
  }
}

TEST_CASE("chunks of NVLS grow with the bytes of a channel", "[nccl][chunking]") {
  const auto chunk = [](Bytes bytes) {
    return chunk_of(h100_node(), Function::AllReduce, Algorithm::Nvls, Protocol::Simple, bytes);
  };
  // 64, 8 and 2 loops of eight heads; chunks of 128, 64 and 32 KiB.
  REQUIRE(chunk(mib(64)) == kib(128));
  REQUIRE(chunk(mib(64) - Bytes(1)) == kib(64));
  REQUIRE(chunk(mib(4)) == kib(64));
  REQUIRE(chunk(mib(4) - Bytes(1)) == kib(32));
  REQUIRE(chunk(kib(512)) == kib(32));
  REQUIRE(chunk(kib(512) - Bytes(1)) == kib(16));
}

TEST_CASE("chunks of NVLSTree are small from four nodes on", "[nccl][chunking]") {
  const auto chunk = [](int nodes, Bytes bytes) {
    return chunk_of(h100_400g(nodes), Function::AllReduce, Algorithm::NvlsTree, Protocol::Simple,
                    bytes);
  };
  REQUIRE(chunk(2, gib(1)) == kib(128));
  REQUIRE(chunk(4, gib(1)) == kib(64));
  REQUIRE(chunk(2, mib(4) - Bytes(1)) == kib(64));
  REQUIRE(chunk(2, kib(512) - Bytes(1)) == kib(32));
}

TEST_CASE("chunks of trees with LL128 and of PAT halve for small calls", "[nccl][chunking]") {
  // 2.8 steps: 22.4 chunks of 576,000 bytes above 128 KiB, then 5.6 above 32 KiB.
  const auto tree = [](Bytes bytes) {
    return chunk_of(h100_400g(2), Function::AllReduce, Algorithm::Tree, Protocol::LL128, bytes);
  };
  REQUIRE(tree(Bytes(23 * 576'000)) == Bytes(576'000));
  REQUIRE(tree(Bytes(22 * 576'000)) == Bytes(288'000));
  REQUIRE(tree(Bytes(1)) == Bytes(17'280));  // 18,000 in whole grains.
  const auto pat = [](Function function, Bytes bytes) {
    return chunk_of(h100_1gpu(4), function, Algorithm::Pat, Protocol::Simple, bytes);
  };
  REQUIRE(pat(Function::AllGather, mib(4)) == kib(512));
  REQUIRE(pat(Function::AllGather, mib(2)) == kib(256));
  REQUIRE(pat(Function::ReduceScatter, mib(2)) == kib(512));
  REQUIRE(pat(Function::AllGather, Bytes(1)) == kib(64));
}

TEST_CASE("chunks of CollNet follow the ranks of a node", "[nccl][chunking]") {
  const auto direct = [](Bytes bytes) {
    return chunk_of(h100_400g(2), Function::AllReduce, Algorithm::CollNetDirect, Protocol::Simple,
                    bytes, 16);
  };
  REQUIRE(direct(gib(64)) == kib(512));
  REQUIRE(direct(Bytes(1)) == kib(32));
  const auto chain = [](Bytes bytes) {
    return chunk_of(h100_400g(2), Function::AllReduce, Algorithm::CollNetChain, Protocol::Simple,
                    bytes, 16);
  };
  REQUIRE(chain(gib(64)) == kib(256));
  REQUIRE(chain(gib(1)) == kib(128));
  REQUIRE(chain(Bytes(1)) == kib(32));
}

TEST_CASE("cells are shares of the traffic that the release asks of a channel",
          "[nccl][chunking]") {
  Communicator communicator = communicator_of(h100_node());
  const auto first = [&](Function function, Protocol protocol) {
    return split_over_channels(function, protocol, mib(1), 64, communicator).front().bytes;
  };
  REQUIRE(first(Function::AllReduce, Protocol::Simple) == kib(16));
  REQUIRE(first(Function::AllReduce, Protocol::LL).count() % 4096 == 0);
  REQUIRE(first(Function::AllGather, Protocol::Simple).count() % 4096 == 0);
  REQUIRE(first(Function::Broadcast, Protocol::Simple) == kib(32));
  // Ten cells on eight channels: two each on five of them.
  const auto parts =
      split_over_channels(Function::AllReduce, Protocol::Simple, kib(160), 8, communicator);
  REQUIRE(parts.size() == 3);
  REQUIRE(parts[1].channels == 3);
  REQUIRE(parts[2].bytes == kib(32));
  // src/enqueue.cc: 16 KiB up to 2.28, and flags of LL do not count before 2.26; before 2.23 all
  // channels have the same bytes.
  communicator.version = Version::V2_28;
  REQUIRE(first(Function::Broadcast, Protocol::Simple) == kib(16));
  REQUIRE(first(Function::Broadcast, Protocol::LL) == kib(16));
  communicator.version = Version::V2_25;
  REQUIRE(split_over_channels(Function::Broadcast, Protocol::LL, kib(32), 8, communicator).size() ==
          2);
  communicator.version = Version::V2_21;
  REQUIRE(split_over_channels(Function::AllReduce, Protocol::Simple, kib(160), 8, communicator)
              .front()
              .bytes == kib(20));
}

TEST_CASE("chunks are whole grains for any size, and never grow when bytes shrink",
          "[nccl][chunking]") {
  const std::vector<TunedMachine> machines{h100_node(), h100_400g(2), b200_800g(4), a100_200g(8),
                                           h100_1gpu(16)};
  for (const TunedMachine& machine : machines) {
    const Communicator communicator = communicator_of(machine);
    for (const Function function : kFunctions) {
      for (const Algorithm algorithm : kAlgorithms) {
        for (const Protocol protocol : kProtocols) {
          Bytes before;
          for (std::int64_t bytes = 1; bytes < std::int64_t{1} << 36; bytes = bytes * 3 + 1) {
            const Bytes chunk =
                chunk_bytes(function, algorithm, protocol, Bytes(bytes), 1, communicator, {});
            REQUIRE(chunk.count() % grain(protocol).count() == 0);
            REQUIRE(chunk >= before);
            before = chunk;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace trainyard::nccl
