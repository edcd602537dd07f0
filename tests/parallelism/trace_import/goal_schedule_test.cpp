// SPDX-License-Identifier: Apache-2.0
// Times of small schedules are computed by hand for a network on which a message takes 1 us and
// 1 ns for each byte.
#include "support/catch.h"

#include "parallelism/trace_import/goal_schedule.h"

#include <malloc.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/effort.h"
#include "support/golden_errors.h"
#include "support/imported_workloads.h"
#include "support/program.h"

namespace trainyard {
namespace {

using namespace literals;

ImportedWorkload goal(const std::string& text) {
  return imported_workload(ImportedFormat::Goal, imported_files({text}));
}

std::string goal_error(const std::string& text) {
  return imported_error(ImportedFormat::Goal, imported_files({text}));
}

// Of the operation that the file calls so.
GraphTiming timing_of(const ImportedWorkload& workload, const GraphedRun& run,
                      const std::string& name) {
  for (std::uint32_t id = 0; id < workload.graph.operations().size(); ++id) {
    if (workload.graph.describe(OperationId(id)).find(name) != std::string::npos) {
      return run.result.timings[id];
    }
  }
  FAIL("no operation " + name);
  return {};
}

// A ring all_reduce, as one rank after the other passes on what it got.
std::string ring(int ranks) {
  std::string text = fmt::format("num_ranks {}\n", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format("rank {} {{\n", rank);
    for (int round = 0; round < 2 * (ranks - 1); ++round) {
      text += fmt::format("s{0}: send 8b to {1} tag {0}\nr{0}: recv 8b from {2} tag {0}\n", round,
                          (rank + 1) % ranks, (rank + ranks - 1) % ranks);
      if (round > 0) {
        text += fmt::format("s{0} requires r{1}\nr{0} requires r{1}\n", round, round - 1);
      }
    }
    text += "}\n";
  }
  return text;
}

ImportedWorkload goal_of(const std::string& text, int gpus) {
  return imported_workload(ImportedFormat::Goal, imported_files({text}), gpus);
}

// Bytes on the heap; nothing is known of them under sanitizers.
std::size_t heap_in_use() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// Messages of 1 us each, and how much was on the heap when one began.
struct WatchedTraffic final : GraphTraffic {
  std::optional<SimTime> call_time(const GraphCommunicator& /*communicator*/,
                                   const GraphCall& /*call*/) override {
    return SimTime();
  }
  std::optional<SimTime> message_time(int /*from*/, int /*to*/, Bytes /*size*/) override {
    most_in_use = std::max(most_in_use, heap_in_use());
    return 1_us;
  }
  void start_call(const GraphCommunicator& /*communicator*/, const GraphCall& /*call*/,
                  EventHandler& /*done*/, std::uint64_t /*token*/) override {}
  void start_message(int /*from*/, int /*to*/, Bytes /*size*/, EventHandler& /*done*/,
                     std::uint64_t /*token*/) override {}

  std::size_t most_in_use = 0;
};

const std::string kTwo =
    "num_ranks 2\n"
    "rank 0 {\n"
    "  l1: calc 1000 cpu 0\n"
    "  l2: send 3000b to 1 tag 7\n"
    "  l2 requires l1\n"
    "}\n"
    "rank 1 {\n"
    "  l1: recv 3000b from 0 tag 7\n"
    "  l2: calc 500\n"
    "  l2 requires l1\n"
    "}\n";

}  // namespace

TEST_CASE("a schedule takes what its operations take, to the picosecond", "[goal]") {
  const ImportedWorkload workload = goal(kTwo);
  // 1 us of work, 1 us of latency and 3 us of bytes, 0.5 us of work.
  const GraphedRun run = run_round(workload);
  REQUIRE(run.result.finish == 5'500_ns);
  REQUIRE(run.ranks[0][StepPart::Linear] == 1_us);
  REQUIRE(run.ranks[0][StepPart::Pipeline] == 4_us);
  REQUIRE(run.ranks[0][StepPart::Bubble] == 500_ns);
  REQUIRE(run.ranks[1][StepPart::Linear] == 500_ns);
  REQUIRE(run.ranks[1][StepPart::Pipeline] == 4_us);
  REQUIRE(run.ranks[1][StepPart::Bubble] == 1_us);
  REQUIRE(run_round(workload, {}, false).result.finish == 5'500_ns);
  REQUIRE(run_round(workload, {.compute_ppm = {2'000'000, 500'000}}).result.finish == 6'250_ns);
}

TEST_CASE("blanks, comments and the order of blocks mean nothing", "[goal]") {
  const ImportedWorkload workload = goal(
      "// A comment.\n/* num_ranks 9\n of two lines */ num_ranks 2\r\n"
      "rank 1 {\nl1: recv 3000 b from 0 tag 7 cpu 1 nic 0\n l2 : calc 500 // 900\n l2 requires l1\n"
      "}\n\nrank 0 { l1: calc 1000\nl2: send 3000b to 1 tag 7\nl2 requires l1 }");
  REQUIRE(run_round(workload).result.finish == 5'500_ns);
  REQUIRE(workload.left_out ==
          std::vector<std::string>{
              "cpu or nic of 1 messages: the routing of the cluster chooses NICs"});
}

TEST_CASE("computation of a cpu runs one at a time as it becomes ready", "[goal]") {
  // "late" is listed first and would hold up "early" if the order of the file counted.
  const ImportedWorkload workload = goal(
      "num_ranks 2\nrank 0 {\nr: recv 1000b from 1\nlate: calc 100\nlate requires r\n"
      "early: calc 5000\nother: calc 700 cpu 1\nsend 1b to 1\n}\n"
      "rank 1 {\nsend 1000b to 0\nrecv 1b from 0\n}\n");
  const GraphedRun run = run_round(workload);
  REQUIRE(timing_of(workload, run, "early").start == 0_us);
  REQUIRE(timing_of(workload, run, "late").start == 5_us);
  REQUIRE(timing_of(workload, run, "other").end == 700_ns);
  REQUIRE(run.result.finish == 5'100_ns);
}

TEST_CASE("irequires waits for the start of an operation", "[goal]") {
  const std::string head = "num_ranks 2\nrank 0 {\nw: calc 300\nr: recv 1000b from 1\n";
  const std::string tail =
      "s: send 1000b to 1\ns irequires r\nr requires w\n}\n"
      "rank 1 {\nr: recv 1000b from 0\ns: send 1000b to 0\ns requires r\n}\n";
  // The send leaves when the receive is posted, which gets its message only after that send.
  const ImportedWorkload workload = goal(head + tail);
  const GraphedRun run = run_round(workload);
  REQUIRE(timing_of(workload, run, "rank 0, send: s").start == 300_ns);
  REQUIRE(run.result.finish == 4'300_ns);
  std::string blocking = head + tail;
  blocking.replace(blocking.find("irequires"), 9, "requires");
  const std::string error = goal_error(blocking);
  REQUIRE(error.find("0.file: expected operations that can all run, found a cycle of 4: ") == 0);
  REQUIRE(error.find("rank 0, send: s, line 5") != std::string::npos);
}

TEST_CASE("a message that is there when it is asked for takes no more time", "[goal]") {
  const ImportedWorkload workload = goal(
      "num_ranks 2\nrank 0 {\nsend 1000b to 1\n}\n"
      "rank 1 {\nw: calc 9000\nr: recv 1000b from 0\nr requires w\n}\n");
  REQUIRE(run_round(workload).result.finish == 9_us);
  REQUIRE(run_round(workload, {}, false).result.finish == 9_us);
}

TEST_CASE("a schedule takes few bytes an operation, read and while it runs", "[goal]") {
  constexpr int kRanks = 128;
  const std::string text = ring(kRanks);
  const std::size_t before = heap_in_use();
  const ImportedWorkload workload = goal_of(text, kRanks);
  const auto operations = static_cast<double>(workload.graph.operations().size());
  REQUIRE(operations == 2.0 * 2 * (kRanks - 1) * kRanks);
  const double read = static_cast<double>(heap_in_use() - before) / operations;
  Simulator simulator;
  WatchedTraffic traffic;
  const GraphResult result = run_graph(simulator, workload.graph, traffic);
  REQUIRE(result.finish == 1_us * (2 * (kRanks - 1)));
  const double running = static_cast<double>(traffic.most_in_use - before) / operations;
  INFO(read << " and " << running << " B an operation");
  // A ring of 1,024 ranks has 4.2 million operations, and 400 MB are asked for.
  REQUIRE((kIsSanitized || (read > 40 && read < 50)));
  REQUIRE((kIsSanitized || (running > read && running < 95)));
}

TEST_CASE("what a schedule gets wrong is named with file and line", "[goal]") {
  REQUIRE(goal_error("") == "0.file:0: expected num_ranks, found the end of the file");
  REQUIRE(goal_error("rank 0 {\n}\n") == "0.file:1: expected num_ranks, found \"rank\"");
  REQUIRE(goal_error("num_ranks 9\n") ==
          "0.file:1: expected ranks from 1 to the 8 GPUs of the cluster, found 9");
  REQUIRE(goal_error("num_ranks 2\nrank 0 {\n}\n") ==
          "0.file:3: expected a block for each of 2 ranks, found none for rank 1");
  REQUIRE(goal_error("num_ranks 1\nrank 0 {\n") ==
          "0.file:2: expected \"}\" after rank 0, found the end of the file");
  REQUIRE(goal_error("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n") ==
          "0.file:4: expected one block for each rank, found another one for rank 0");
  REQUIRE(goal_error("num_ranks 1\nrank 1 {\n}\n") ==
          "0.file:2: expected the rank of a block, from 0 to 0, found \"1\"");
  const auto in_rank = [](const std::string& line) {
    return goal_error("num_ranks 2\nrank 0 {\n" + line + "\n}\nrank 1 {\n}\n");
  };
  REQUIRE(in_rank("allreduce 8b") ==
          "0.file:3: expected \":\", requires or irequires, found \"8b\"");
  REQUIRE(in_rank("send 8b from 1") == "0.file:3: expected \"to\", found \"from\"");
  REQUIRE(in_rank("send 8 to 1") == "0.file:3: expected \"b\", found \"to\"");
  REQUIRE(in_rank("send 8b to 2") == "0.file:3: expected a rank, from 0 to 1, found \"2\"");
  REQUIRE(in_rank("send 8b to 0") == "0.file:3: expected another rank, found rank 0 itself");
  REQUIRE(in_rank("recv 8b from -1") ==
          "0.file:3: expected a rank, as which messages meet must be known before the run, found "
          "-1, which represents any");
  REQUIRE(in_rank("a: calc 1\na: calc 2") == "0.file:4: expected a label that is new, found \"a\"");
  REQUIRE(in_rank("a: calc 1\na requires b") ==
          "0.file:4: expected a label of rank 0, found \"b\"");
  REQUIRE(in_rank("calc 99999999999999999999").find("0.file:3: expected nanoseconds") == 0);
  REQUIRE(in_rank("calc 9000000000000000") ==
          "0.file:3: calc: expected operations of at most 50 days in all, found 9000000000000000");
}

TEST_CASE("messages that do not meet and cycles are found before the run", "[goal]") {
  REQUIRE(goal_error("num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 3\n}\nrank 1 {\n}\n") ==
          "0.file: rank 0, send: l1, line 3: expected a receive of rank 1 with tag 3, number 0, "
          "found none");
  REQUIRE(goal_error("num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\nrecv 9b from 0\n}\n") ==
          "0.file: rank 1, receive: recv of line 6: expected 8B as rank 0, send: send of line 3 "
          "sends, found 9B");
  REQUIRE(goal_error("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}")
              .find("0.file: expected operations that can all run, found a cycle of 2: ") == 0);
}

TEST_CASE("damaged schedules are read or refused in one line", "[goal]") {
  const int refused =
      refused_damage(kTwo, " :{}bl0123456789\n", cases(2000),
                     [](const std::string& text, const std::string&) { return goal_error(text); });
  REQUIRE(refused > static_cast<int>(cases(2000) / 2));
}

TEST_CASE("the shipped schedule takes on one switch what its rounds take", "[goal]") {
  const auto path = kConfigsFolder / "workloads/imported/dissemination-8.goal";
  REQUIRE(recognise_imported(path) == ImportedFormat::Goal);
  const ImportedWorkload workload =
      imported_workload(ImportedFormat::Goal, read_imported_files(path, ImportedFormat::Goal));
  REQUIRE(workload.graph.ranks() == 8);
  // The last rank starts after 5.5 us; three rounds of 1 us and 65,536 ns, then 1 us. Messages of
  // ranks that are ahead of it share nothing with those on its way.
  REQUIRE(run_round(workload).result.finish >= 5'500_ns + (1_us + 65'536_ns) * 3 + 1_us);
  REQUIRE(run_round(workload, {}, false).result.finish == 5'500_ns + (1_us + 65'536_ns) * 3 + 1_us);
}

}  // namespace trainyard
