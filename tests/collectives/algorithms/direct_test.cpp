// SPDX-License-Identifier: Apache-2.0
// Closed forms of the direct operations on an idle switch, to the picosecond.
//
// With path latency a, t(s) = transfer_time(s, B), S in the sense of nccl-tests:
// - alltoall, pairwise: N-1 rounds of one message each way, (N-1) (a + t(S/N));
// - alltoall, direct: all N-1 messages of a rank at once, each with 1/(N-1) of its links:
//   a + t((N-1) S/N). In the analytical engine the messages alone are faster, but a link carries
//   the same bytes, and the bound from its load is the same time;
// - scatter and gather: the same, of the root's links;
// - sendrecv: one message each way, a + t(S).
#include "support/catch.h"

#include <array>
#include <vector>

#include "support/collective_run.h"
#include "support/proof.h"

namespace trainyard {
namespace {

constexpr std::array kEngines{Fidelity::Analytical, Fidelity::Flow};

SimTime message_time_direct(std::int64_t size) {
  return transfer_time(Bytes(size), kIdleBandwidth) + kIdleLatency;
}

TEST_CASE("alltoall, scatter and gather take what the busiest link takes, pairwise its rounds") {
  for (const int ranks : {2, 3, 4, 5, 8, 13, 16}) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      const Bytes size(block * ranks);
      for (const Fidelity fidelity : kEngines) {
        INFO(ranks << " ranks, blocks of " << block << ", " << to_string(fidelity));
        const auto time = [&](Algorithm algorithm, Operation operation) {
          return idle_time({.algorithm = algorithm,
                            .operation = operation,
                            .ranks = ranks,
                            .root = static_cast<std::uint32_t>(ranks - 1)},
                           size, fidelity);
        };
        REQUIRE(time(&kPairwise, Operation::AllToAll) == message_time_direct(block) * (ranks - 1));
        const SimTime all_at_once = message_time_direct(block * (ranks - 1));
        REQUIRE(time(&kDirect, Operation::AllToAll) == all_at_once);
        REQUIRE(time(&kDirect, Operation::Scatter) == all_at_once);
        REQUIRE(time(&kDirect, Operation::Gather) == all_at_once);
      }
    }
  }
}

TEST_CASE("sendrecv takes one message") {
  for (const int ranks : {2, 3, 8}) {
    for (const std::int64_t size : {0, 1, 1'000'003}) {
      for (const Fidelity fidelity : kEngines) {
        INFO(ranks << " ranks, " << size << " bytes, " << to_string(fidelity));
        REQUIRE(
            idle_time({.algorithm = &kDirect, .operation = Operation::SendReceive, .ranks = ranks},
                      Bytes(size), fidelity) == message_time_direct(size));
      }
    }
  }
}

TrafficMatrix matrix_of(int ranks, std::vector<std::int64_t> bytes) {
  return {.ranks = ranks, .bytes = std::move(bytes)};
}

CollectiveRun exchange(Algorithm algorithm, const TrafficMatrix& matrix, int channels = 1) {
  const auto schedule = make_schedule(
      algorithm, Operation::AllToAllV,
      {.layout = flat_layout(matrix.ranks, channels), .root = RankId(0), .matrix = &matrix});
  REQUIRE(verify(*schedule).value_or("proved") == "proved");
  return run_schedule(idle_switch(matrix.ranks), *schedule, matrix.largest(), Fidelity::Flow);
}

TEST_CASE("alltoallv takes what the rank with most to send or receive takes, and skips zeros") {
  // Rank 2 receives three microseconds' worth in all.
  const TrafficMatrix skewed = matrix_of(3, {7, 0, 90'090, 0, 0, 180'180, 0, 0, 0});
  const CollectiveRun run = exchange(&kDirect, skewed);
  REQUIRE_FALSE(run.violation.has_value());
  REQUIRE(run.stats.messages == 2);
  REQUIRE(run.finish == message_time_direct(270'270));
  // In rounds: 1 sends to 2 in the first, 0 to 2 in the second.
  REQUIRE(exchange(&kPairwise, skewed).finish ==
          message_time_direct(180'180) + message_time_direct(90'090));
  REQUIRE(exchange(&kDirect, skewed, 3).stats.messages == 6);
  REQUIRE(exchange(&kDirect, matrix_of(2, {5, 0, 0, 5})).stats.messages == 0);
}

TEST_CASE("an even matrix takes the time of alltoall") {
  for (const Algorithm algorithm : {&kPairwise, &kDirect}) {
    const TrafficMatrix even = matrix_of(5, std::vector<std::int64_t>(25, 4096));
    REQUIRE(exchange(algorithm, even).finish ==
            idle_time({.algorithm = algorithm, .operation = Operation::AllToAll, .ranks = 5},
                      Bytes(5 * 4096), Fidelity::Flow));
  }
}

TEST_CASE("a single rank has nothing to move") {
  for (const Fidelity fidelity : kEngines) {
    for (const Operation operation :
         {Operation::AllToAll, Operation::SendReceive, Operation::Scatter, Operation::Gather}) {
      INFO(to_string(operation) << ", " << to_string(fidelity));
      REQUIRE(idle_time({.algorithm = &kDirect, .operation = operation, .ranks = 1}, mib(64),
                        fidelity) == SimTime());
    }
  }
}

}  // namespace
}  // namespace trainyard
