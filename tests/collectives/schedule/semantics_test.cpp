// SPDX-License-Identifier: Apache-2.0
// The prover accepts all our schedules, for every number of ranks up to 33, and finds each of a
// list of planted mistakes: without the second half the first one would prove nothing.
#include "support/catch.h"

#include "collectives/schedule/semantics.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "sim/random.h"
#include "support/copied_schedule.h"
#include "support/effort.h"
#include "support/proof.h"

namespace trainyard {
namespace {

bool has_root(Operation operation) {
  return operation == Operation::Broadcast || operation == Operation::Reduce ||
         operation == Operation::Scatter || operation == Operation::Gather;
}

// All roots of groups up to nine ranks, otherwise the ends and the middle.
std::vector<int> roots_for(Operation operation, int ranks) {
  if (!has_root(operation) || ranks == 1) {
    return {0};
  }
  if (ranks > 9) {
    return {0, ranks / 2, ranks - 1};
  }
  std::vector<int> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Returns what is wrong with the first schedule that is not proved; empty: all are.
std::string first_mistake(const RankLayout& layout) {
  const int ranks = layout.ranks();
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      for (const int pieces : {1, 3}) {
        if (pieces > 1 && algorithm->stages == nullptr) {
          continue;
        }
        for (const int root : roots_for(operation, ranks)) {
          const auto schedule = make_schedule(algorithm, operation,
                                              {.layout = layout,
                                               .root = RankId(static_cast<std::uint32_t>(root)),
                                               .pieces = pieces});
          if (const auto mistake = verify(*schedule)) {
            return fmt::format("{} {}, root {}, {} pieces: {}", to_string(algorithm),
                               to_string(operation), root, pieces, *mistake);
          }
        }
      }
    }
  }
  return "";
}

TEST_CASE("every algorithm does every operation it claims, for 1 to 33 ranks in a row") {
  for (int ranks = 1; ranks <= 33; ++ranks) {
    for (const int channels : {1, 2, 3}) {
      if (kIsSanitized && channels != 1 + ranks % 3) {
        continue;
      }
      INFO(ranks << " ranks, " << channels << " channels");
      REQUIRE(first_mistake(flat_layout(ranks, channels)) == "");
    }
  }
}

TEST_CASE("every algorithm does every operation it claims on nodes of several ranks") {
  for (const auto& [nodes, per_node] : {std::pair{1, 4},
                                        {1, 8},
                                        {2, 1},
                                        {2, 2},
                                        {2, 3},
                                        {3, 1},
                                        {3, 2},
                                        {3, 3},
                                        {4, 2},
                                        {5, 3},
                                        {2, 8},
                                        {4, 8},
                                        {7, 4}}) {
    for (const bool alternate : {false, true}) {
      LocalOrders orders;
      for (int channel = 0; channel < std::min(per_node, 3); ++channel) {
        std::vector<int> order(static_cast<std::size_t>(per_node));
        std::iota(order.begin(), order.end(), 0);
        std::rotate(order.begin(), order.begin() + channel, order.end());
        if (channel == 2) {
          std::ranges::reverse(order);
        }
        orders.push_back(order);
      }
      RankLayout layout = even_layout(nodes, orders);
      layout.alternate = alternate;
      layout.chain_in_single_node = nodes == 1;
      INFO(nodes << " x " << per_node << (alternate ? ", alternating" : ""));
      REQUIRE(first_mistake(layout) == "");
    }
  }
}

// A random order of each node's ranks on each channel.
RankLayout uneven_layout(const std::vector<int>& node_ranks, int channels, RandomStream& random) {
  RankLayout layout;
  for (const int ranks : node_ranks) {
    LocalOrders orders;
    for (int channel = 0; channel < channels; ++channel) {
      std::vector<int> order(static_cast<std::size_t>(ranks));
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t i = order.size(); i-- > 1;) {
        std::swap(order[i], order[random.below(i + 1)]);
      }
      orders.push_back(order);
    }
    layout.node_kinds.push_back(static_cast<std::uint32_t>(layout.kinds.size()));
    layout.kinds.push_back(orders);
  }
  layout.alternate = random.below(2) == 1;
  layout.chain_in_single_node = random.below(2) == 1;
  return layout;
}

TEST_CASE("every algorithm does every operation it claims on nodes of different numbers of ranks") {
  std::vector<std::vector<int>> splits{{4, 6},    {6, 4},       {1, 8, 3},       {2, 2, 5},
                                       {1, 1, 7}, {8, 8, 8, 1}, {3, 1, 4, 1, 5}, {2, 16}};
  RandomStream random(1, "uneven nodes");
  for (int count = 0; count < 30; ++count) {
    std::vector<int>& split = splits.emplace_back(1 + random.below(6));
    for (int& ranks : split) {
      ranks = 1 + static_cast<int>(random.below(5));
    }
  }
  for (const std::vector<int>& split : splits) {
    INFO("nodes of " << fmt::format("{}", fmt::join(split, " ")));
    const int channels = 1 + static_cast<int>(random.below(3));
    REQUIRE(first_mistake(uneven_layout(split, channels, random)) == "");
  }
}

TEST_CASE("64 ranks can be proved") {
  REQUIRE(verify(*make_schedule(&kRing, Operation::AllReduce,
                                {.layout = flat_layout(64, 1), .root = {}, .pieces = 1}))
              .value_or("proved") == "proved");
}

// Four ranks. Lane r of a ring sends on connection r, to r + 1, in its even steps and receives on
// connection r - 1 in its odd ones; all_reduce has chunks 0 ... 3 and 6 rounds, of which 3 reduce.
CopiedSchedule four_ranks(Algorithm algorithm, Operation operation) {
  return CopiedSchedule(*make_schedule(
      algorithm, operation, {.layout = flat_layout(4, 1), .root = RankId(0), .pieces = 1}));
}

std::string error_after(Algorithm algorithm, Operation operation,
                        const std::function<void(CopiedSchedule&)>& change) {
  CopiedSchedule schedule = four_ranks(algorithm, operation);
  REQUIRE_FALSE(verify(schedule).has_value());
  change(schedule);
  return verify(schedule).value_or("no error was found");
}

std::string ring_error(const std::function<void(CopiedSchedule&)>& change) {
  return error_after(&kRing, Operation::AllReduce, change);
}

TEST_CASE("the prover finds messages to and from wrong ranks") {
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[0].steps[0].connection = 1; }) ==
          "rank 0, lane 0, step 0: sends on connection 1, which leads from rank 1 to rank 2");
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[0].steps[1].connection = 1; }) ==
          "rank 0, lane 0, step 1: receives from connection 1, which leads from rank 1 to rank 2");
  REQUIRE(ring_error([](CopiedSchedule& s) { s.connections()[2].target = RankId(0); }) ==
          "rank 3, lane 3, step 1: receives from connection 2, which leads from rank 2 to rank 0");
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[2].rank = RankId(1); }) ==
          "rank 1, lane 2, step 0: sends on connection 2, which leads from rank 2 to rank 3");
}

TEST_CASE("the prover finds names out of range") {
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[3].steps[4].connection = 4; }) ==
          "rank 3, lane 3, step 4: connection 4 does not exist");
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[1].steps[2].chunks.first = 4; }) ==
          "rank 1, lane 1, step 2: chunks 4 to 5 of 4");
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[1].steps[2].chunks.count = 0; }) ==
          "rank 2, lane 2, step 3: expects chunks 0+1, but chunks 0+0 were sent");
  REQUIRE(ring_error([](CopiedSchedule& s) {
            s.lanes()[0].steps[0].chunks = {.first = 2, .count = 0xffff'ffff};
          }) == "rank 0, lane 0, step 0: chunks 2 to 4294967297 of 4");
}

TEST_CASE("the prover finds messages that are missing at either end") {
  REQUIRE(ring_error([](CopiedSchedule& s) {
            s.lanes()[0].steps.erase(s.lanes()[0].steps.begin() + 10);
          }) == "rank 1, lane 1, step 11: waits for ever for rank 0");
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[0].steps.pop_back(); }) ==
          "rank 3 sends 1 message(s) to rank 0 that it never receives");
}

TEST_CASE("the prover finds wrong and wrongly ordered chunks") {
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[0].steps[0].chunks.first = 1; }) ==
          "rank 1, lane 1, step 1: expects chunks 0+1, but chunks 1+1 were sent");
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[0].steps[0].chunks.count = 2; }) ==
          "rank 1, lane 1, step 1: expects chunks 0+1, but chunks 0+2 were sent");
  // Two sends of a lane in the wrong order.
  REQUIRE(ring_error([](CopiedSchedule& s) {
            std::swap(s.lanes()[0].steps[0], s.lanes()[0].steps[2]);
          }) == "rank 1, lane 1, step 1: expects chunks 0+1, but chunks 3+1 were sent");
  // A send before the reduction that it depends on: the contribution of rank 0 is all that is sent.
  REQUIRE(ring_error([](CopiedSchedule& s) {
            std::swap(s.lanes()[0].steps[1], s.lanes()[0].steps[2]);
          }) == "rank 0 ends with {0, 1, 2} in chunk 3 instead of {0, 1, 2, 3}");
}

TEST_CASE("the prover finds contributions that are counted twice or lost") {
  // The same chunk sent and reduced once more.
  REQUIRE(ring_error([](CopiedSchedule& s) {
            std::vector<Step>& sender = s.lanes()[0].steps;
            std::vector<Step>& receiver = s.lanes()[1].steps;
            sender.insert(sender.begin(), sender.front());
            receiver.insert(receiver.begin() + 1, receiver[1]);
          }) == "rank 1, lane 1, step 2: adds contributions {0} to chunk 0 a second time");
  // Reduce instead of receive, in the gathering half.
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[1].steps[7].kind = StepKind::Reduce; }) ==
          "rank 1, lane 1, step 7: adds contributions {1} to chunk 1 a second time");
  // Receive instead of reduce: what rank 1 held itself is overwritten.
  REQUIRE(ring_error([](CopiedSchedule& s) { s.lanes()[1].steps[1].kind = StepKind::Receive; }) ==
          "rank 0 ends with {0, 2, 3} in chunk 0 instead of {0, 1, 2, 3}");
}

TEST_CASE("the prover finds a cycle of ranks that all wait first") {
  REQUIRE(ring_error([](CopiedSchedule& s) {
            for (CopiedSchedule::Lane& lane : s.lanes()) {
              std::swap(lane.steps[0], lane.steps[1]);
            }
          }) == "rank 0, lane 0, step 0: waits for ever for rank 3");
}

TEST_CASE("the prover finds data that a rank does not hold") {
  const auto gather_error = [](const std::function<void(CopiedSchedule&)>& change) {
    return error_after(&kRing, Operation::AllGather, change);
  };
  REQUIRE(gather_error([](CopiedSchedule& s) { s.lanes()[0].steps[0].chunks.first = 2; }) ==
          "rank 0, lane 0, step 0: sends chunk 2, which it does not hold");
  REQUIRE(gather_error([](CopiedSchedule& s) { s.lanes()[2].steps[1].kind = StepKind::Reduce; }) ==
          "rank 2, lane 2, step 1: reduces into chunk 1, which it does not hold");
}

TEST_CASE("the prover finds results at the wrong place, and programs that do nothing") {
  const auto without_steps = [](CopiedSchedule& s) {
    for (CopiedSchedule::Lane& lane : s.lanes()) {
      lane.steps.clear();
    }
  };
  REQUIRE(ring_error(without_steps) == "rank 0 ends with {0} in chunk 0 instead of {0, 1, 2, 3}");
  REQUIRE(error_after(&kDirect, Operation::AllToAll, without_steps) ==
          "rank 0 ends with {} in chunk 4 instead of {1}");
  // What scatter does for root 0 is not what root 1 asks for.
  const CopiedSchedule scatter = four_ranks(&kDirect, Operation::Scatter);
  ScheduleShape shape = scatter.shape();
  shape.root = RankId(1);
  CopiedSchedule copy = four_ranks(&kDirect, Operation::Scatter);
  REQUIRE(verify(StoredSchedule(shape, copy.lanes(), copy.connections())) ==
          "rank 0, lane 0, step 0: sends chunk 1, which it does not hold");
}

TEST_CASE("the prover finds two lanes of a rank that race for a chunk") {
  // Rank 0 sends its value in one lane and reduces the other's into it in a second one. First to
  // last this works; last to first it sends the sum, which rank 1 then adds to itself.
  const auto chunk = ChunkRange{.first = 0, .count = 1};
  const Step send_to_1{.kind = StepKind::Send, .connection = 0, .chunks = chunk};
  const Step reduce_from_1{.kind = StepKind::Reduce, .connection = 1, .chunks = chunk};
  const Step send_to_0{.kind = StepKind::Send, .connection = 1, .chunks = chunk};
  const Step reduce_from_0{.kind = StepKind::Reduce, .connection = 0, .chunks = chunk};
  const StoredSchedule race(
      {.operation = Operation::AllReduce,
       .algorithm = "race",
       .ranks = 2,
       .channels = 1,
       .root = RankId(0),
       .chunk_count = 1,
       .lanes = 3,
       .connections = 2},
      {{.rank = RankId(0), .steps = {send_to_1}},
       {.rank = RankId(0), .steps = {reduce_from_1}},
       {.rank = RankId(1), .steps = {send_to_0, reduce_from_0}}},
      {{.source = RankId(0), .target = RankId(1)}, {.source = RankId(1), .target = RankId(0)}});
  REQUIRE(verify(race) ==
          "rank 1, lane 2, step 1: adds contributions {1} to chunk 0 a second time");
}

TEST_CASE("the prover finds waits and copies that cannot be") {
  const auto with = [](const Step& step) {
    return ring_error([&](CopiedSchedule& s) {
      s.lanes()[2].steps.insert(s.lanes()[2].steps.begin() + 1, step);
    });
  };
  REQUIRE(with({.kind = StepKind::Wait, .connection = 4, .chunks = {}}) ==
          "rank 2, lane 2, step 1: waits for lane 4, which is none of its rank");
  REQUIRE(with({.kind = StepKind::Wait, .connection = 1, .chunks = {}}) ==
          "rank 2, lane 2, step 1: waits for lane 1, which is none of its rank");
  REQUIRE(with({.kind = StepKind::Wait, .connection = 2, .chunks = {.first = 14, .count = 0}}) ==
          "rank 2, lane 2, step 1: waits for 14 steps of lane 2, which has 13");
  REQUIRE(with({.kind = StepKind::Wait, .connection = 2, .chunks = {.first = 2, .count = 0}}) ==
          "rank 0, lane 0, step 5: waits for ever for rank 3");
  REQUIRE(with({.kind = StepKind::Copy, .connection = 4, .chunks = {.first = 0, .count = 1}}) ==
          "rank 2, lane 2, step 1: reads beyond the 4 chunks");
  REQUIRE(with({.kind = StepKind::Copy, .connection = 1, .chunks = {.first = 0, .count = 1}}) ==
          "rank 2, lane 2, step 4: adds a part of chunk 0 to a part of chunk 1 in chunk 0");
  REQUIRE(with({.kind = StepKind::Add, .connection = 1, .chunks = {.first = 0, .count = 1}}) ==
          "rank 2, lane 2, step 1: adds a part of chunk 1 to a part of chunk 0 in chunk 0");
}

// Four ranks and the switch. Lane 4 is the switch's on the way up: it receives from rank 0, reduces
// from ranks 1 to 3 and sends chunk h to rank h; lane 9 the one on the way down.
std::string nvls_error(const std::function<void(CopiedSchedule&)>& change) {
  return error_after(&kNvls, Operation::AllReduce, change);
}

TEST_CASE("the prover finds what a switch loses, adds twice or never had") {
  REQUIRE(nvls_error([](CopiedSchedule& s) {
            s.lanes()[4].steps.erase(s.lanes()[4].steps.begin() + 3);
          }) == "rank 3 sends 1 message(s) to switch 0 that it never receives");
  REQUIRE(nvls_error([](CopiedSchedule& s) {
            s.lanes()[0].steps.push_back(s.lanes()[0].steps[0]);
            s.lanes()[4].steps.insert(s.lanes()[4].steps.begin() + 1,
                                      {.kind = StepKind::Reduce,
                                       .connection = s.lanes()[4].steps[0].connection,
                                       .chunks = s.lanes()[4].steps[0].chunks});
          }) == "switch 0, lane 4, step 1: adds contributions {0} to chunk 0 a second time");
  REQUIRE(nvls_error([](CopiedSchedule& s) { s.lanes()[4].steps[0].kind = StepKind::Reduce; }) ==
          "switch 0, lane 4, step 0: reduces into chunk 0, which it does not hold");
  REQUIRE(nvls_error([](CopiedSchedule& s) {
            std::vector<Step>& steps = s.lanes()[4].steps;
            std::rotate(steps.begin(), steps.begin() + 4, steps.end());
          }) == "switch 0, lane 4, step 0: sends chunk 0, which it does not hold");
  // The sum is sent on before the last rank is in it.
  REQUIRE(nvls_error([](CopiedSchedule& s) {
            std::swap(s.lanes()[4].steps[3], s.lanes()[4].steps[4]);
          }) == "rank 0 ends with {0, 1, 2} in chunk 0 instead of {0, 1, 2, 3}");
  REQUIRE(nvls_error([](CopiedSchedule& s) { s.lanes()[4].steps[0].connection = 4; }) ==
          "switch 0, lane 4, step 0: receives from connection 4, which leads from switch 0 to "
          "rank 0");
}

TEST_CASE("the prover finds lanes of nobody, and a switch's own data count for nothing") {
  REQUIRE(nvls_error([](CopiedSchedule& s) { s.lanes()[4].rank = RankId(5); }) ==
          "lane 4 is of rank 5, which does not exist");
  // Nobody but the switch is asked: it has nothing to give.
  REQUIRE(nvls_error([](CopiedSchedule& s) {
            s.lanes()[9].steps.erase(s.lanes()[9].steps.begin(), s.lanes()[9].steps.begin() + 4);
            s.lanes()[4].steps.clear();
          }) != "no error was found");
}

}  // namespace
}  // namespace trainyard
