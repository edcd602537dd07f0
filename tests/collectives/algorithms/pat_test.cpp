// SPDX-License-Identifier: Apache-2.0
// The order of PAT, and bounds of its time: it has no closed form, since ranks send several blocks
// at a time.
#include "support/catch.h"

#include "collectives/algorithms/pat.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "support/collective_run.h"

namespace trainyard {
namespace {

std::string text_of(const std::vector<PatEvent>& events) {
  std::string text;
  for (const PatEvent& event : events) {
    text += (text.empty() ? "" : " ") + std::to_string(event.child) +
            (event.is_leaf ? "" : ">" + std::to_string(event.parent)) +
            (event.completes ? "!" : "");
  }
  return text;
}

TEST_CASE("the order of eight ranks: leaves, then each level from the far end") {
  REQUIRE(text_of(pat_events(8, 4)) == "7! 3! 5! 1! 7>6! 3>2! 6>4 2>0 5>4! 4>0 1>0!");
  REQUIRE(text_of(pat_events(8, 1)) == "7! 7>6! 6>4 5! 5>4! 4>0 3! 3>2! 2>0 1! 1>0!");
  // Offset 5 does not exist: the sum for 4 is the own block alone.
  REQUIRE(text_of(pat_events(5, 4)) == "3! 1! 3>2! 2>0 5>4! 4>0 1>0!");
  REQUIRE(text_of(pat_events(2, 1)) == "1! 1>0!");
  REQUIRE(pat_events(1, 1).empty());
}

TEST_CASE("every offset receives each child once, that of dimension 0 last") {
  for (std::uint32_t ranks = 2; ranks <= 128; ++ranks) {
    for (std::uint32_t trees = 1; trees <= max_pat_aggregation(ranks); trees *= 2) {
      INFO(ranks << " ranks, aggregation " << trees);
      std::vector<int> received(ranks, 0);
      std::vector<int> completed(ranks, 0);
      for (const PatEvent& event : pat_events(ranks, trees)) {
        REQUIRE(completed[event.parent] == 0);
        if (event.child < ranks && !event.is_leaf) {
          REQUIRE(event.child - event.parent == 1U << pat_dimension(event.child));
          ++received[event.child];
        }
        completed[event.parent] += event.completes ? 1 : 0;
      }
      REQUIRE(std::all_of(received.begin() + 1, received.end(), [](int n) { return n == 1; }));
      REQUIRE(std::all_of(completed.begin(), completed.end(), [](int n) { return n == 1; }));
    }
  }
}

TEST_CASE(
    "short blocks take a latency for each doubling of the ranks, long ones what a port carries") {
  for (const int ranks : {2, 3, 4, 5, 8, 13, 16, 32}) {
    // Bits set in an offset at most; one more where a rank waits for another tree's message first.
    const SimTime depth = kIdleLatency * (std::bit_width(static_cast<unsigned>(ranks)) - 1);
    const SimTime rounds = kIdleLatency * std::bit_width(static_cast<unsigned>(ranks - 1));
    for (const Operation operation : {Operation::AllGather, Operation::ReduceScatter}) {
      const auto time = [&](std::int64_t block) {
        return idle_time({.algorithm = &kPat, .operation = operation, .ranks = ranks},
                         Bytes(block * ranks), Fidelity::Flow);
      };
      INFO(ranks << " ranks, " << to_string(operation));
      REQUIRE(time(0) >= depth);
      REQUIRE(time(0) <= rounds);
      const std::int64_t block = 90'090'000;  // 1 ms.
      REQUIRE(time(block) >= milliseconds(ranks - 1) + kIdleLatency);
      REQUIRE(time(block) <= milliseconds(ranks - 1) * 2 + rounds);
    }
  }
}

}  // namespace
}  // namespace trainyard
