// SPDX-License-Identifier: Apache-2.0
// Schedules are put together here byte by byte, as the header of the reader has the form, beside
// the same ones as text.
#include "support/catch.h"

#include "parallelism/trace_import/goal_binary.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "support/effort.h"
#include "support/golden_errors.h"
#include "support/imported_workloads.h"
#include "support/program.h"

namespace trainyard {
namespace {

struct GoalWritten {
  std::uint8_t kind = 3;
  std::uint32_t peer = 0;
  std::uint64_t amount = 0;
  std::uint32_t tag = 0;
  std::uint8_t cpu = 0;
  std::vector<std::uint32_t> ends_before = {};    // Operations that wait for its end.
  std::vector<std::uint32_t> starts_before = {};  // Operations that wait for its start.
};

void put_bytes(std::string& bytes, std::uint64_t value, int size) {
  for (int byte = 0; byte < size; ++byte) {
    bytes += static_cast<char>(value >> (8 * byte));
  }
}

std::string goal_part(const std::vector<GoalWritten>& operations) {
  std::vector<std::uint32_t> waits(operations.size(), 0);
  std::string lists;
  for (const GoalWritten& each : operations) {
    for (const std::uint32_t after : each.ends_before) {
      ++waits[after];
      put_bytes(lists, after, 4);
    }
    for (const std::uint32_t after : each.starts_before) {
      ++waits[after];
      put_bytes(lists, after, 4);
    }
  }
  std::string part;
  put_bytes(part, operations.size(), 4);
  put_bytes(part, static_cast<std::uint64_t>(std::count(waits.begin(), waits.end(), 0U)), 4);
  for (std::uint32_t at = 0; at < operations.size(); ++at) {
    if (waits[at] == 0) {
      put_bytes(part, at, 4);
    }
  }
  std::uint32_t members = 0;
  for (std::size_t at = 0; at < operations.size(); ++at) {
    const GoalWritten& each = operations[at];
    put_bytes(part, waits[at], 4);
    put_bytes(part, each.kind, 1);
    put_bytes(part, each.peer, 4);
    put_bytes(part, each.amount, 8);
    put_bytes(part, each.tag, 4);
    put_bytes(part, each.cpu, 1);
    put_bytes(part, 0, 1);
    put_bytes(part, each.ends_before.size(), 4);
    put_bytes(part, members, 4);
    members += static_cast<std::uint32_t>(each.ends_before.size());
    put_bytes(part, each.starts_before.size(), 4);
    put_bytes(part, members, 4);
    members += static_cast<std::uint32_t>(each.starts_before.size());
  }
  return part + lists;
}

std::string goal_binary(const std::vector<std::vector<GoalWritten>>& ranks) {
  std::string head;
  std::string parts;
  put_bytes(head, 4223, 8);
  put_bytes(head, ranks.size(), 4);
  put_bytes(head, 0, 2);
  for (const std::vector<GoalWritten>& operations : ranks) {
    const std::uint64_t begin = 6 + 16 * ranks.size() + parts.size();
    parts += goal_part(operations);
    put_bytes(head, begin, 8);
    put_bytes(head, 6 + 16 * ranks.size() + parts.size(), 8);
  }
  return head + parts;
}

ImportedWorkload goal_in_file(const std::string& text) {
  return imported_workload(ImportedFormat::Goal, imported_files({text}));
}

std::string goal_file_error(const std::string& text) {
  return imported_error(ImportedFormat::Goal, imported_files({text}));
}

// All kinds of operations and both kinds of waits, with a computation of another cpu.
const std::string kGoalText =
    "num_ranks 2\n"
    "rank 0 {\nw: calc 300\nr: recv 1000b from 1 tag 4\ns: send 1000b to 1 tag 5\n"
    "c: calc 900 cpu 3\nr requires w\ns irequires r\nc requires s\n}\n"
    "rank 1 {\nr: recv 1000b from 0 tag 5\nc: calc 50\ns: send 1000b to 0 tag 4\n"
    "c requires r\ns requires r\ns requires c\n}\n";

const std::vector<std::vector<GoalWritten>> kGoalWritten{
    {{.amount = 300, .ends_before = {1}},
     {.kind = 2, .peer = 1, .amount = 1000, .tag = 4, .starts_before = {2}},
     {.kind = 1, .peer = 1, .amount = 1000, .tag = 5, .ends_before = {3}},
     {.amount = 900, .cpu = 3}},
    {{.kind = 2, .peer = 0, .amount = 1000, .tag = 5, .ends_before = {1, 2}},
     {.amount = 50, .ends_before = {2}},
     {.kind = 1, .peer = 0, .amount = 1000, .tag = 4}}};

// Changes bytes of the schedule above.
std::string goal_changed(std::size_t at, std::uint64_t value, int size) {
  std::string bytes = goal_binary(kGoalWritten);
  std::string number;
  put_bytes(number, value, size);
  return bytes.replace(at, number.size(), number);
}

// The parts of both ranks begin behind the head and the table. That of rank 0 has one root.
constexpr std::size_t kGoalPart = 8 + 6 + 2 * 16;
constexpr std::size_t kGoalFirst = kGoalPart + 8 + 4;

}  // namespace

TEST_CASE("both forms of a schedule are the same operations, and take as long", "[goal]") {
  const ImportedWorkload text = goal_in_file(kGoalText);
  const ImportedWorkload packed = goal_in_file(goal_binary(kGoalWritten));
  const auto operations = text.graph.operations();
  REQUIRE(packed.graph.operations().size() == operations.size());
  REQUIRE(packed.graph.dependencies().size() == text.graph.dependencies().size());
  for (const bool shares_network : {false, true}) {
    const GraphedRun one = run_round(text, {}, shares_network);
    const GraphedRun other = run_round(packed, {}, shares_network);
    // The send leaves after 300 ns and takes 2 us; then 50 ns, and the same way back.
    REQUIRE(one.result.finish == nanoseconds(4'350));
    for (std::size_t id = 0; id < operations.size(); ++id) {
      REQUIRE(packed.graph.operations()[id].kind == operations[id].kind);
      REQUIRE(other.result.timings[id].start == one.result.timings[id].start);
      REQUIRE(other.result.timings[id].end == one.result.timings[id].end);
    }
  }
  REQUIRE(packed.graph.describe(OperationId(0)) == "rank 0, cpu 0: calc of operation 0");
  REQUIRE(packed.graph.describe(OperationId(2)) == "rank 0, send: send of operation 2");
}

TEST_CASE("a schedule in binary form is known by its first bytes, in a file as in memory",
          "[goal]") {
  const ScratchFolder folder;
  const auto path = folder.write("schedule.bin", goal_binary(kGoalWritten));
  REQUIRE(recognise_imported(path) == ImportedFormat::Goal);
  const auto files = read_imported_files(path, ImportedFormat::Goal);
  REQUIRE(files.front().is_on_disc);
  REQUIRE(run_round(imported_workload(ImportedFormat::Goal, files)).result.finish ==
          nanoseconds(4'350));
  const auto destroyed = folder.write("destroyed.bin", goal_changed(0, 2342, 8));
  REQUIRE(recognise_imported(destroyed) == ImportedFormat::Goal);
  REQUIRE(goal_file_error(goal_changed(0, 2342, 8)) ==
          "0.file: expected a schedule in binary form that is intact, found one that LogGOPSim has "
          "run with --save-mem: write it again with txt2bin");
}

TEST_CASE("what a schedule in binary form gets wrong is named with rank and operation", "[goal]") {
  const std::string whole = goal_binary(kGoalWritten);
  REQUIRE(goal_file_error(whole.substr(0, 10)) ==
          "0.file: expected a head of 14 bytes, found 10 bytes");
  REQUIRE(goal_file_error(goal_changed(8, 9, 4)) ==
          "0.file: expected ranks from 1 to the 8 GPUs of the cluster, found 9");
  REQUIRE(goal_file_error(whole.substr(0, 40)) ==
          "0.file: expected a table of 2 ranks, found the end of the file at byte 40");
  REQUIRE(goal_file_error(whole.substr(0, whole.size() - 1))
              .find("0.file: rank 1: expected a part between bytes 46 and ") == 0);
  REQUIRE(goal_file_error(goal_changed(kGoalPart, 5, 4)) ==
          "0.file: rank 0: expected a part of 207 bytes and whole lists for 5 operations and 1 "
          "roots, found 180 bytes");
  REQUIRE(goal_file_error(goal_changed(kGoalPart + 8, 1, 4)) ==
          "0.file: rank 0: expected a root that waits for no operation, and once, found 1");
  REQUIRE(goal_file_error(goal_changed(kGoalFirst, 1, 4)) ==
          "0.file: rank 0, operation 0: expected to wait for 0 operations, as many as list it, "
          "found 1");
  REQUIRE(goal_file_error(goal_changed(kGoalFirst + 4, 4, 1)) ==
          "0.file: rank 0, operation 0: expected a send (1), a receive (2) or a computation (3), "
          "found 4");
  constexpr std::size_t kReceive = kGoalFirst + 39;
  REQUIRE(goal_file_error(goal_changed(kReceive + 5, 0, 4)) ==
          "0.file: rank 0, operation 1: expected another rank, found rank 0 itself");
  REQUIRE(goal_file_error(goal_changed(kReceive + 5, 2, 4)) ==
          "0.file: rank 0, operation 1: expected a rank, from 0 to 1, found 2");
  REQUIRE(goal_file_error(goal_changed(kReceive + 5, 0xffff'ffff, 4)) ==
          "0.file: rank 0, operation 1: expected a rank, as which messages meet must be known "
          "before the run, found -1, which represents any");
  REQUIRE(goal_file_error(goal_changed(kReceive + 17, 0xffff'ffff, 4))
              .find("0.file: rank 0, operation 1: expected a tag, as which messages") == 0);
  REQUIRE(goal_file_error(goal_changed(kReceive + 9, std::uint64_t{1} << 41, 8)) ==
          "0.file: rank 0, operation 1: expected a size of at most 1 TiB, found 2199023255552");
  REQUIRE(goal_file_error(goal_changed(kGoalFirst + 9, ~std::uint64_t{0}, 8))
              .find("0.file: rank 0, operation 0: expected operations of at most 50 days") == 0);
  REQUIRE(goal_file_error(goal_changed(kGoalFirst + 23, 2, 4)) ==
          "0.file: rank 0: expected lists of 3 members in all, found 4 or more");
  REQUIRE(goal_file_error(goal_changed(kGoalFirst + 27, 3, 4)) ==
          "0.file: rank 0, operation 0: expected a list within 3 members, found 1 from 3 on");
  REQUIRE(goal_file_error(goal_changed(kGoalFirst + 4 * 39, 4, 4)) ==
          "0.file: rank 0, operation 0: expected one of 4 operations that waits for it, found 4");
  REQUIRE(goal_file_error(goal_changed(kReceive + 9, 999, 8)) ==
          "0.file: rank 0, receive: recv of operation 1: expected 1KB as rank 1, send: send of "
          "operation 2 sends, found 999B");
}

TEST_CASE("damaged schedules in binary form are read or refused in one line", "[goal]") {
  const int refused = refused_damage(
      goal_binary(kGoalWritten), std::string("\0\1\2\3\4\x7f\xff", 7), cases(2000),
      [](const std::string& text, const std::string&) { return goal_file_error(text); });
  REQUIRE(refused > static_cast<int>(cases(2000) / 2));
}

}  // namespace trainyard
