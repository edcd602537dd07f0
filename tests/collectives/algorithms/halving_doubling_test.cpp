// SPDX-License-Identifier: Apache-2.0
// Closed forms of halving and doubling on an idle switch, to the picosecond; and the partners and
// blocks of every step against a naive model.
//
// With path latency a, t(s) = transfer_time(s, B) and N = 2^k ranks, the round between ranks that
// differ in bit r exchanges 2^r blocks of S/N: a + t(2^r S/N). Either half is the sum over r = 0 ..
// k-1, all_reduce twice that. Both engines agree, since no link carries two messages at a time.
//
// Other N have no such form, since the ranges that are exchanged differ in size. N = 3 can be done
// by hand, in units of one block, t = t(S/3). Rank 0 is idle, 1 is its partner (number 0), 2 is
// number 1.
// - Into rank 1: 3 blocks of rank 0, until 3 t + a. Rank 2 waits for rank 1.
// - From then on 1 block from 1 to 2, arrived at 4 t + 2a, and 2 blocks from 2 to 1: 5 t + 2a.
// - Doubling from 5 t + 2a on: 1 block from 2 to 1, arrived at 6 t + 3a, and 2 blocks from 1 to 2,
//   gone at 7 t + 2a.
// - Rank 1 to 0: 3 blocks from 6 t + 3a on. For a >= t the 2 blocks to rank 2 have left by then: 9
//   t + 4a in all. For a < t they share the egress, which is busy with 5 blocks from 5 t + 2a on:
//   10 t + 3a in all.
// In the analytical engine nothing is shared: 9 t + 4a. Its link bound is less: 6 blocks leave rank
// 1 from 3 t + a on, 9 t + 2a.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "support/collective_run.h"

namespace trainyard {
namespace {

constexpr std::array kDoublingEngines{Fidelity::Analytical, Fidelity::Flow};

// The blocks that a rank sends in a step of channel 0.
std::set<std::uint32_t> halving_blocks(const Schedule& schedule, const Step& sent) {
  std::set<std::uint32_t> blocks;
  for (std::uint32_t i = 0; i < sent.chunks.count; ++i) {
    const std::uint32_t entry = sent.chunks.first + i;
    blocks.insert(schedule.shape().entries == 0 ? entry : schedule.chunk_at(entry));
  }
  return blocks;
}

// In round k of reduce_scatter, a rank sends its partner the blocks of all ranks that agree with
// the partner in the bits that were exchanged so far: the lowest, or the highest.
TEST_CASE("halving begins with the nearest partner or the farthest, and half of the data") {
  for (const std::uint32_t ranks : {2U, 4U, 8U, 32U}) {
    for (const bool is_near : {true, false}) {
      const auto schedule =
          make_flat({.algorithm = is_near ? &kHalvingDoubling : &kHalvingDoublingFar,
                     .ranks = static_cast<int>(ranks)});
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        std::uint32_t met = 0;
        for (std::uint32_t round = 0; (2U << round) <= ranks; ++round) {
          const std::uint32_t mask = is_near ? 1U << round : ranks >> (round + 1);
          met |= mask;
          std::set<std::uint32_t> blocks;
          for (std::uint32_t block = 0; block < ranks; ++block) {
            if (((block ^ rank ^ mask) & met) == 0) {
              blocks.insert(block);
            }
          }
          const Step sent = schedule->step(LaneId(rank), std::uint64_t{2} * round);
          INFO(ranks << " ranks, rank " << rank << ", round " << round << ", near " << is_near);
          REQUIRE(sent.kind == StepKind::Send);
          REQUIRE(schedule->connection(sent.connection).target == RankId(rank ^ mask));
          REQUIRE(blocks.size() == ranks >> (round + 1));
          REQUIRE(halving_blocks(*schedule, sent) == blocks);
        }
      }
    }
  }
}

// Two servers of four: what crosses between them is the last round there and the first one back,
// one block each, against half of the data each.
TEST_CASE("halving from the nearest partner on keeps the large messages inside a server") {
  const auto crossing = [](Algorithm algorithm) {
    const auto schedule = make_flat({.algorithm = algorithm, .ranks = 8});
    std::uint32_t blocks = 0;
    for (std::uint32_t rank = 0; rank < 8; ++rank) {
      for (std::uint64_t index = 0; index < schedule->step_count(LaneId(rank)); ++index) {
        const Step step = schedule->step(LaneId(rank), index);
        const ScheduleConnection ends = schedule->connection(step.connection);
        if (step.kind == StepKind::Send && ends.source.value() / 4 != ends.target.value() / 4) {
          blocks += step.chunks.count;
        }
      }
    }
    return blocks;
  };
  REQUIRE(crossing(&kHalvingDoubling) == 8 * 2);
  REQUIRE(crossing(&kHalvingDoublingFar) == 8 * 2 * 4);
}

SimTime time_of(Operation operation, int ranks, std::int64_t size, Fidelity fidelity) {
  return idle_time({.algorithm = &kHalvingDoubling, .operation = operation, .ranks = ranks},
                   Bytes(size), fidelity);
}

TEST_CASE("halving and doubling of a power of two take the sum of their rounds") {
  for (const int ranks : {1, 2, 4, 8, 16, 32}) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      SimTime half;
      for (int blocks = 1; blocks < ranks; blocks *= 2) {
        half += transfer_time(Bytes(block * blocks), kIdleBandwidth) + kIdleLatency;
      }
      for (const Fidelity fidelity : kDoublingEngines) {
        INFO(ranks << " ranks, blocks of " << block << ", " << to_string(fidelity));
        REQUIRE(time_of(Operation::AllReduce, ranks, block * ranks, fidelity) == half * 2);
        REQUIRE(time_of(Operation::AllGather, ranks, block * ranks, fidelity) == half);
        REQUIRE(time_of(Operation::ReduceScatter, ranks, block * ranks, fidelity) == half);
      }
    }
  }
}

TEST_CASE("recursive doubling of a power of two sends everything in every round") {
  for (const int ranks : {1, 2, 4, 8, 16, 32}) {
    const int rounds = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks))) - 1;
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      for (const Fidelity fidelity : kDoublingEngines) {
        INFO(ranks << " ranks, blocks of " << block << ", " << to_string(fidelity));
        const auto time = [&](Algorithm algorithm, Operation operation) {
          return idle_time({.algorithm = algorithm, .operation = operation, .ranks = ranks},
                           Bytes(block * ranks), fidelity);
        };
        REQUIRE(time(&kRecursiveDoubling, Operation::AllReduce) ==
                (transfer_time(Bytes(block * ranks), kIdleBandwidth) + kIdleLatency) * rounds);
        REQUIRE(time(&kRecursiveDoubling, Operation::AllGather) ==
                time(&kHalvingDoubling, Operation::AllGather));
      }
    }
  }
}

TEST_CASE("recursive doubling takes two steps more where ranks are left over") {
  // Rank 0 to 1, 1 and 2 exchange, 1 to 0: nobody shares a link.
  for (const Fidelity fidelity : kDoublingEngines) {
    REQUIRE(idle_time({.algorithm = &kRecursiveDoubling, .ranks = 3}, Bytes(90'090), fidelity) ==
            (microseconds(1) + kIdleLatency) * 3);
  }
}

TEST_CASE("three ranks take what can be computed by hand") {
  // In blocks: 3 from rank 0 to 1; 1 from rank 1 to 2 beside 2 from 2 to 1; 2 and 1 back, for which
  // both wait until they have sent the last; then 3 from rank 1 to 0, when its 2 have arrived.
  const SimTime a = kIdleLatency;
  for (const std::int64_t block : {90'090, 90'090'000}) {  // 1 us, and 1 ms.
    const SimTime t = transfer_time(Bytes(block), kIdleBandwidth);
    for (const Fidelity fidelity : kDoublingEngines) {
      REQUIRE(time_of(Operation::AllReduce, 3, 3 * block, fidelity) == t * 10 + a * 4);
    }
  }
}

TEST_CASE("ranks beyond a power of two cost at least two more steps of the whole message") {
  const std::int64_t block = 1'000'000;
  for (int ranks = 3; ranks <= 33; ++ranks) {
    const auto power = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks)));
    if (power == ranks) {
      continue;
    }
    SimTime min = (transfer_time(Bytes(block * ranks), kIdleBandwidth) + kIdleLatency) * 2;
    for (int blocks = 1; blocks < power; blocks *= 2) {
      min += (transfer_time(Bytes(block * blocks), kIdleBandwidth) + kIdleLatency) * 2;
    }
    for (const Fidelity fidelity : kDoublingEngines) {
      INFO(ranks << " ranks, " << to_string(fidelity));
      REQUIRE(time_of(Operation::AllReduce, ranks, block * ranks, fidelity) >= min);
    }
  }
}

}  // namespace
}  // namespace trainyard
