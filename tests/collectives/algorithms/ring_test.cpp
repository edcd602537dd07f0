// SPDX-License-Identifier: Apache-2.0
// Closed forms of rings and chains on an idle switch, to the picosecond.
//
// With path latency a, t(s) = transfer_time(s, B), N ranks, one channel and P pieces:
// - blocks: b bytes of the S/P of a piece are cut into N blocks of floor or ceil(S/(NP)) bytes. The
//   block that a rank passes on in step k+1 is the one that it received in step k, so each block
//   makes its own way around the ring, R hops in a row (R = 2(N-1) for all_reduce, N-1 for its
//   halves). It never waits for another one as long as a exceeds the sum of the differences, R
//   times t(1 byte), which holds here. The greatest block is therefore the critical path: a piece
//   takes R (a + t(ceil(S/(NP)))), and pieces follow one another (sizes here divide by P).
// - chain: a flow shop of N-1 equal machines with one job a piece, whose length is the sum of all
//   jobs plus N-2 times the longest one: sum of t(p_i) + (N-2) max t(p_i) + (N-1) a.
#include "support/catch.h"

#include <algorithm>
#include <array>

#include "support/collective_run.h"

namespace trainyard {
namespace {

constexpr std::array kRingEngines{Fidelity::Analytical, Fidelity::Flow};
constexpr std::array kSizes{std::int64_t{0},    std::int64_t{1},         std::int64_t{15},
                            std::int64_t{4096}, std::int64_t{1'000'003}, std::int64_t{720'720'000}};

SimTime block_time(std::int64_t size, int blocks) {
  return transfer_time(Bytes((size + blocks - 1) / blocks), kIdleBandwidth) + kIdleLatency;
}

TEST_CASE("ring all_reduce and its halves take as long as the greatest block on its way") {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 13, 16, 24}) {
    for (const std::int64_t size : kSizes) {
      const SimTime hop = block_time(size, ranks);
      for (const Fidelity fidelity : kRingEngines) {
        INFO(ranks << " ranks, " << size << " bytes, " << to_string(fidelity));
        const auto time = [&](Operation operation) {
          return idle_time({.algorithm = &kRing, .operation = operation, .ranks = ranks},
                           Bytes(size), fidelity);
        };
        REQUIRE(time(Operation::AllReduce) == hop * (2 * (ranks - 1)));
        REQUIRE(time(Operation::AllGather) == hop * (ranks - 1));
        REQUIRE(time(Operation::ReduceScatter) == hop * (ranks - 1));
      }
    }
  }
}

TEST_CASE("pieces of a ring follow one another") {
  for (const int ranks : {2, 5, 8}) {
    for (const int pieces : {2, 3, 7}) {
      const std::int64_t size = std::int64_t{1000} * ranks * pieces;
      for (const Fidelity fidelity : kRingEngines) {
        INFO(ranks << " ranks, " << pieces << " pieces, " << to_string(fidelity));
        REQUIRE(idle_time({.algorithm = &kRing,
                           .operation = Operation::AllReduce,
                           .ranks = ranks,
                           .pieces = pieces},
                          Bytes(size), fidelity) ==
                block_time(size, ranks * pieces) * (2 * (ranks - 1) * pieces));
      }
    }
  }
}

TEST_CASE("channels on the same links share them, and together take as long as one") {
  for (const int ranks : {2, 4, 9}) {
    for (const int channels : {2, 3, 4}) {
      const std::int64_t size = std::int64_t{5040} * ranks * channels;
      INFO(ranks << " ranks, " << channels << " channels");
      REQUIRE(idle_time({.algorithm = &kRing,
                         .operation = Operation::AllReduce,
                         .ranks = ranks,
                         .channels = channels},
                        Bytes(size),
                        Fidelity::Flow) == block_time(size, ranks) * (2 * (ranks - 1)));
    }
  }
}

// The flow shop above, with pieces cut as Chunking cuts them.
SimTime chain_time(std::int64_t size, int ranks, int pieces) {
  if (ranks == 1) {
    return SimTime();
  }
  SimTime sum;
  SimTime max;
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    const Bytes bytes(size * (piece + 1) / pieces - size * piece / pieces);
    const SimTime time = transfer_time(bytes, kIdleBandwidth);
    sum += time;
    max = std::max(max, time);
  }
  return sum + max * (ranks - 2) + kIdleLatency * (ranks - 1);
}

TEST_CASE("chain broadcast and reduce are a flow shop") {
  for (const int ranks : {1, 2, 3, 5, 8, 12}) {
    for (const int pieces : {1, 2, 7, 32}) {
      for (const std::int64_t size : kSizes) {
        for (const Fidelity fidelity : kRingEngines) {
          for (const Operation operation : {Operation::Broadcast, Operation::Reduce}) {
            INFO(ranks << " ranks, " << pieces << " pieces, " << size << " bytes, "
                       << to_string(operation) << ", " << to_string(fidelity));
            REQUIRE(idle_time({.algorithm = &kRing,
                               .operation = operation,
                               .ranks = ranks,
                               .pieces = pieces,
                               .root = static_cast<std::uint32_t>(ranks / 2)},
                              Bytes(size), fidelity) == chain_time(size, ranks, pieces));
          }
        }
      }
    }
  }
}

TEST_CASE("a ring all_reduce is 2(N-1)N messages along N connections") {
  const auto schedule = make_flat({.algorithm = &kRing, .ranks = 6});
  const CollectiveRun run = run_schedule(idle_switch(6), *schedule, Bytes(6000), Fidelity::Flow);
  REQUIRE(run.stats.connections == 6);
  REQUIRE(run.stats.messages == 60);
  REQUIRE(run.stats.bytes == Bytes(60'000));
}

}  // namespace
}  // namespace trainyard
