// SPDX-License-Identifier: Apache-2.0
// Lists of messages against the algorithms that they write out, and each mistake by its message.
#include "support/catch.h"

#include "collectives/schedule/message_file.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "sim/config_error.h"
#include "support/collective_run.h"

namespace trainyard {
namespace {

// Writes out a schedule whose lanes send and receive by turns, the n-th of all in one step.
std::string text_of(const Schedule& schedule) {
  const ScheduleShape& shape = schedule.shape();
  const auto ranks = static_cast<std::uint32_t>(shape.ranks);
  const std::uint32_t flows =
      shape.connections / static_cast<std::uint32_t>(shape.channels) / ranks;
  std::string text = fmt::format(
      "operation: {}\nname: written\nranks: {}\nchunks: {}\nrendezvous: {}\nmessages:\n",
      to_string(shape.operation), ranks, shape.chunk_count, shape.rendezvous);
  for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
    const std::uint32_t channel = lane / ranks;
    for (std::uint64_t index = 0; index < schedule.step_count(LaneId(lane)); index += 2) {
      const Step step = schedule.step(LaneId(lane), index);
      REQUIRE(step.kind == StepKind::Send);
      const ScheduleConnection ends = schedule.connection(step.connection);
      const Step taken = schedule.step(LaneId(channel * ranks + ends.target.value()), index + 1);
      REQUIRE(taken.connection == step.connection);
      std::vector<std::uint32_t> chunks;
      for (std::uint32_t i = 0; i < step.chunks.count; ++i) {
        chunks.push_back(schedule.chunk_at(step.chunks.first + i));
      }
      text += fmt::format(
          "- {{step: {}, from: {}, to: {}, chunks: [{}], reduce: {}, channel: {}, flow: {}}}\n",
          index / 2, ends.source.value(), ends.target.value(), fmt::join(chunks, ", "),
          taken.kind == StepKind::Reduce, channel, step.connection / ranks % flows);
    }
  }
  return text;
}

const std::string kExchange =
    "operation: all_reduce\n"
    "name: mine\n"
    "ranks: 2\n"
    "chunks: 2\n"
    "messages:\n"
    "- {step: 0, from: 0, to: 1, chunks: 1, reduce: true}\n"
    "- {step: 0, from: 1, to: 0, chunks: 0, reduce: true}\n"
    "- {step: 1, from: 0, to: 1, chunks: 0}\n"
    "- {step: 1, from: 1, to: 0, chunks: [1]}\n";

// A part of the exchange, what takes its place, and the end of the error.
using Mistake = std::pair<std::pair<std::string, std::string>, std::string>;

// The error of the exchange in which the first `part` is another.
std::string refusal(const std::string& part, const std::string& other) {
  std::string text = kExchange;
  REQUIRE(text.find(part) != std::string::npos);
  text.replace(text.find(part), part.size(), other);
  INFO(text);
  try {
    static_cast<void>(read_message_file(text, "my.yaml"));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an algorithm as a list of messages takes the time of the algorithm", "[collectives]") {
  const auto swing = make_schedule(&kSwing, Operation::AllReduce,
                                   {.layout = flat_layout(16, 4),
                                    .root = RankId(0),
                                    .dimensions = {4, 4},
                                    .rotate_dimensions = true});
  const auto ring = make_flat({.algorithm = &kRing, .ranks = 5, .channels = 2});
  const auto gather =
      make_flat({.algorithm = &kRing, .operation = Operation::AllGather, .ranks = 4});
  const auto halving = make_flat({.algorithm = &kHalvingDoubling, .ranks = 8, .channels = 2});
  for (const Schedule* const schedule : {swing.get(), ring.get(), gather.get(), halving.get()}) {
    INFO(schedule->shape().algorithm);
    const auto read = read_message_file(text_of(*schedule), "my.yaml");
    const TestFabric fabric = idle_switch(schedule->shape().ranks);
    for (const Fidelity fidelity : {Fidelity::Flow, Fidelity::Packet}) {
      const CollectiveRun own = run_schedule(fabric, *read, kib(640), fidelity);
      const CollectiveRun known = run_schedule(fabric, *schedule, kib(640), fidelity);
      REQUIRE_FALSE(own.violation.has_value());
      REQUIRE(own.finish == known.finish);
    }
  }
}

TEST_CASE("the messages of a list may stand in any order", "[collectives]") {
  std::string turned;
  const std::size_t first = kExchange.find("- {");
  for (std::size_t line = kExchange.size(); line > first;) {
    const std::size_t begin = kExchange.rfind("- {", line - 1);
    turned += kExchange.substr(begin, line - begin);
    line = begin;
  }
  const auto read = read_message_file(kExchange.substr(0, first) + turned, "my.yaml");
  REQUIRE(read->shape().algorithm == "mine");
  REQUIRE(read->step_count(LaneId(0)) == 4);
  REQUIRE(read->step(LaneId(0), 0).chunks == ChunkRange{.first = 1, .count = 1});
}

TEST_CASE("a list of messages that is no such operation names step and chunk", "[collectives]") {
  REQUIRE(refusal("name: mine", "name: other") == "");
  const std::string twice = "- {step: 1, from: 1, to: 0, chunks: [1]}\n";
  const std::vector<Mistake> mistakes{
      {{", reduce: true", ""},
       "my.yaml:9:3: messages[3]: step 1, from 1 to 0: the last message that brings it: rank 0 "
       "ends with {0} in chunk 1 instead of {0, 1}"},
      {{twice, twice + "- {step: 1, from: 0, to: 1, chunks: 1, reduce: true}\n"},
       "my.yaml:10:3: messages[4]: step 1, from 0 to 1: rank 1 adds contributions {0} to chunk 1 a "
       "second time"},
      {{"- {step: 1, from: 0, to: 1, chunks: 0}\n", ""},
       "messages: rank 1 ends with {1} in chunk 0 instead of {0, 1}, which no message brings "
       "there"},
      {{"all_reduce", "all_gather"},
       "my.yaml:6:3: messages[0]: step 0, from 0 to 1: rank 0 sends chunk 1, which it does not "
       "hold"}};
  for (const auto& [change, expected] : mistakes) {
    REQUIRE_THAT(refusal(change.first, change.second), Catch::Matchers::EndsWith(expected));
  }
}

TEST_CASE("a list of messages that cannot be run is refused in one line", "[collectives]") {
  const std::vector<Mistake> mistakes{
      {{"to: 1", "to: 0"}, "messages[0].to: expected another rank than 0, found 0"},
      {{"to: 1", "to: 2"}, "messages[0].to: expected a rank from 0 to 1, found 2"},
      {{"chunks: 1", "chunks: 2"}, "messages[0].chunks: expected chunks from 0 to 1, found 2"},
      {{"chunks: 1", "chunks: [1, 1]"},
       "messages[0].chunks: expected chunks, each once, found 1 twice"},
      {{"chunks: 1", "chunks: []"}, "messages[0].chunks: expected chunks, each once, found none"},
      {{"chunks: 2", "chunks: 2\nroot: 2"}, "root: expected a rank from 0 to 1, found 2"},
      {{"all_reduce\nname: mine\nranks: 2\nchunks: 2",
        "reduce_scatter\nname: mine\nranks: 2\nchunks: 3"},
       "chunks: expected a multiple of 2 for reduce_scatter of 2 ranks, found 3"},
      {{"all_reduce", "alltoallv"},
       "operation: expected an operation without a matrix, found \"alltoallv\""},
      {{"ranks: 2", "ranks: 3"},
       "messages[1]: step 0, from 1 to 0: the last message that brings it: rank 0 ends with {0, 1} "
       "in chunk 0 instead of {0, 1, 2}"},
      {{"chunks: 2\nmessages:\n",
        "chunks: 2\nmessages:\n- {step: 0, from: 0, to: 1, chunks: 0, flow: 4095, channel: 1}\n"},
       "messages: expected at most 4096 flows over all channels of a rank, found 2 channels of "
       "4096"},
      {{"ranks: 2\nchunks: 2\nmessages:\n",
        "ranks: 3\nchunks: 2\nmessages:\n- {step: 0, from: 0, to: 2, chunks: 0, flow: 0}\n"},
       "messages[1]: step 0, from 0 to 1: flow 0 of rank 0 on channel 0 leads to rank 2"},
      {{"chunks: 2\nmessages:\n",
        "chunks: 2\nrendezvous: true\nmessages:\n- {step: 0, from: 0, to: 1, chunks: 0}\n"},
       "messages[1]: step 0, from 0 to 1: with rendezvous a rank sends one message in a step of a "
       "channel, and sends messages[0] as well"}};
  for (const auto& [change, expected] : mistakes) {
    REQUIRE_THAT(refusal(change.first, change.second), Catch::Matchers::EndsWith(expected));
  }
}

}  // namespace trainyard
