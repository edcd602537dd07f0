// SPDX-License-Identifier: Apache-2.0
// Times of small traces are computed by hand for a network on which a message takes 1 us and 1 ns
// for each byte: a sum of 2000 bytes over a ring of two takes two rounds of 2 us.
#include "support/catch.h"

#include "parallelism/trace_import/chakra_trace.h"

#include <string>
#include <vector>

#include "support/chakra_writer.h"
#include "support/effort.h"
#include "support/golden_errors.h"
#include "support/imported_workloads.h"

namespace trainyard {
namespace {

using namespace literals;

ImportedWorkload chakra(const std::vector<std::string>& texts, int gpus = 2) {
  return imported_workload(ImportedFormat::Chakra, imported_files(texts), gpus);
}

std::string chakra_error(const std::vector<std::string>& texts) {
  return imported_error(ImportedFormat::Chakra, imported_files(texts), 2);
}

// A message of 1000 bytes with tag 5.
ChakraNodeText message(std::uint64_t id, bool sends, std::uint64_t peer,
                       std::vector<std::uint64_t> dependencies = {}) {
  return {.id = id,
          .type = sends ? 5U : 6U,
          .dependencies = std::move(dependencies),
          .more = chakra_number(sends ? "comm_dst" : "comm_src", peer) +
                  chakra_number("comm_size", 1'000) + chakra_number("comm_tag", 5)};
}

// 5 us of work, a sum, 3 us of work after it.
std::string three_nodes(std::uint64_t bytes, std::uint64_t work = 5) {
  return chakra_file({{.id = 1, .duration_micros = work},
                      chakra_call(2, 0, bytes, {1}),
                      {.id = 3, .dependencies = {2}, .duration_micros = 3}});
}

}  // namespace

TEST_CASE("nodes take their durations and what they wait for", "[chakra]") {
  const ImportedWorkload workload = chakra({three_nodes(2'000), three_nodes(2'000, 7)});
  for (const bool shares_network : {false, true}) {
    const GraphedRun run = run_round(workload, {}, shares_network);
    REQUIRE(run.result.finish == 14_us);
    REQUIRE(run.ranks[0][StepPart::Linear] == 8_us);
    REQUIRE(run.ranks[0][StepPart::Data] == 4_us);
    REQUIRE(run.ranks[0][StepPart::Bubble] == 2_us);
  }
  REQUIRE(run_round(workload, {.compute_ppm = {2'000'000, 2'000'000}}).result.finish == 24_us);
}

TEST_CASE("work of a GPU runs one at a time as it becomes ready, that of streams at once",
          "[chakra]") {
  const auto time = [](const std::string& first, const std::string& second) {
    const std::string text = chakra_file({{.id = 1, .duration_micros = 5, .more = first},
                                          {.id = 2, .duration_micros = 4, .more = second},
                                          message(3, true, 1)});
    return run_round(chakra({text, chakra_file({message(1, false, 0)})})).result.finish;
  };
  REQUIRE(time("", "") == 9_us);
  REQUIRE(time(chakra_number("stream", 7), chakra_number("stream", 7)) == 9_us);
  REQUIRE(time(chakra_number("stream", 7), chakra_number("stream", 20)) == 5_us);
  REQUIRE(time(chakra_number("is_cpu_op", 1), "") == 5_us);
  REQUIRE(time(chakra_number("is_cpu_op", 1), chakra_number("is_cpu_op", 1)) == 9_us);
}

TEST_CASE("attributes that have no effect are named", "[chakra]") {
  const std::string text = chakra_file(
      {{.id = 1,
        .duration_micros = 5,
        .more = chakra_number("tensor_size", 8) + chakra_text("op_schema", "aten::mm")}});
  REQUIRE(imported_workload(ImportedFormat::Chakra, imported_files({text}), 1).left_out ==
          std::vector<std::string>{"attributes without an effect: op_schema, tensor_size"});
}

TEST_CASE("messages and what is gathered have their bytes", "[chakra]") {
  REQUIRE(
      run_round(chakra({chakra_file({{.id = 0, .duration_micros = 2}, message(1, true, 1, {0})}),
                        chakra_file({message(9, false, 0)})}))
          .result.finish == 4_us);
  // A rank puts in 2000 bytes, which go to the other one.
  const std::string gather = chakra_file({chakra_call(1, 2, 2'000)});
  REQUIRE(run_round(chakra({gather, gather})).result.finish == 3_us);
}

TEST_CASE("calls of a group come in the order of dependencies, not of the file", "[chakra]") {
  const std::string listed = chakra_file({chakra_call(1, 0, 2'000), chakra_call(2, 0, 4'000, {1})});
  const std::string reversed =
      chakra_file({chakra_call(2, 0, 4'000, {1}), chakra_call(1, 0, 2'000)});
  REQUIRE(run_round(chakra({listed, reversed})).result.finish == 4_us + 6_us);
}

TEST_CASE("process groups are those of the trace or of a file beside it", "[chakra]") {
  const std::string call = chakra_text("pg_name", "7");
  const ChakraNodeText metadata{
      .id = 9,
      .type = 1,
      .more = wire_field(2, "## process_group:init ##") +
              wire_field(8, wire_field(1, "['[{\"pg_name\": \"7\", \"ranks\": [0, 1]}]']"))};
  const auto text = [&](bool has_metadata) {
    std::vector<ChakraNodeText> nodes{chakra_call(1, 0, 2'000, {}, call)};
    if (has_metadata) {
      nodes.push_back(metadata);
    }
    return chakra_file(nodes);
  };
  const ImportedWorkload workload = chakra({text(true), text(true)});
  REQUIRE(run_round(workload).result.finish == 4_us);
  REQUIRE(workload.left_out ==
          std::vector<std::string>{"2 nodes of metadata: only what waits for them counts"});
  REQUIRE(chakra_error({text(false), text(false)}) ==
          "0.file: node 1 (n1): pg_name: expected a group of --comm-groups or of a "
          "process_group:init node, found \"7\"");
  const std::vector<int> servers{0, 0, 0};
  const ImportedTarget target{
      .server_of_gpu = servers,
      .groups = read_comm_groups({.name = "g.json", .rank = {}, .text = R"({"7": [0, 2]})"})};
  const ImportedWorkload one =
      read_imported(imported_files({text(false)}), ImportedFormat::Chakra, target);
  REQUIRE(one.graph.ranks() == 3);
  REQUIRE(one.notes.front() ==
          "1 of 3 ranks have a trace: the others are taken to come to every call in time");
  REQUIRE(run_round(one, {}, false).result.finish == 4_us);
}

TEST_CASE("what a trace gets wrong is named with its node and field", "[chakra]") {
  const auto node = [](const ChakraNodeText& each) { return chakra_error({chakra_file({each})}); };
  REQUIRE(node({.id = 4, .type = 0}) ==
          "0.file: node 4 (n4): type: expected a type of node, found INVALID_NODE");
  REQUIRE(node({.id = 4, .dependencies = {9}}) ==
          "0.file: node 4 (n4): dependencies: expected a node of the file, found 9");
  REQUIRE(node({.id = 4, .more = chakra_number("num_ops", 1'000)}) ==
          "0.file: node 4 (n4): duration_micros: expected a recorded time: the work alone does not "
          "say what it takes, found 0");
  REQUIRE(node(chakra_call(4, 4, 8)) ==
          "0.file: node 4 (n4): comm_type: expected a collective that is modelled, not gather or "
          "scatter, found 4");
  REQUIRE(node({.id = 4, .type = 7, .more = chakra_number("comm_type", 0)}) ==
          "0.file: node 4 (n4): comm_size: expected a whole number from 0 to 549755813888, found "
          "none");
  REQUIRE(node(message(4, true, 0)) ==
          "0.file: node 4 (n4): comm_dst: expected another rank, from 0 to 1, found 0");
  REQUIRE(node(chakra_call(
              4, 0, 8, {},
              wire_field(10, wire_field(1, "involved_dim") +
                                 wire_field(28, wire_field(1, "\x01" + std::string(1, '\0')))))) ==
          "0.file: node 4 (n4): involved_dim: expected all dimensions or a pg_name: the file does "
          "not say which ranks lie along one, found some dimensions");
  REQUIRE(chakra_error({chakra_file({{.id = 1}, {.id = 1}})}) ==
          "0.file: node 1 (n1): id: expected a number of its own, found 1");
  REQUIRE(chakra_error({chakra_file({})}) == "0.file: expected nodes, found none");
}

TEST_CASE("cycles and ranks that disagree are found before the run", "[chakra]") {
  REQUIRE(
      chakra_error({chakra_file({{.id = 1, .dependencies = {2}}, {.id = 2, .dependencies = {1}}})})
          .find("0.file: expected operations that can all run, found a cycle of 2: rank 0, gpu: "
                "n") == 0);
  REQUIRE(
      chakra_error({three_nodes(2'000), three_nodes(1'000)}) ==
      "0.file and 1 more: communicator all ranks: call 0: expected all_reduce of 2KB as rank 0, "
      "all ranks: n2, node 2, found all_reduce of 1KB: rank 1, all ranks: n2, node 2");
  REQUIRE(chakra_error({chakra_file({message(1, true, 1)}), chakra_file({{.id = 1}})}) ==
          "0.file and 1 more: rank 0, send: n1, node 1: expected a receive of rank 1 with tag 5, "
          "number 0, found none");
}

TEST_CASE("truncated and damaged traces are read or refused in one line", "[chakra]") {
  const std::string text = three_nodes(2'000);
  int taken = 0;
  for (std::size_t size = 0; size < text.size(); ++size) {
    const std::string error = chakra_error({text.substr(0, size), text});
    REQUIRE(error.find('\n') == std::string::npos);
    taken += error == "no error" ? 1 : 0;
  }
  REQUIRE(taken == 1);  // Without its last node.
  const auto refused = refused_damage(
      text, std::string("\x01\x08\x10\x80\xff", 5), cases(2000),
      [&](const std::string& changed, const std::string&) { return chakra_error({changed}); });
  REQUIRE(refused > static_cast<int>(cases(2000) / 4));
}

TEST_CASE("groups of ASTRA-sim are an object of lists", "[chakra]") {
  const auto error_of = [](const std::string& text) {
    try {
      (void)read_comm_groups({.name = "g.json", .rank = {}, .text = text});
    } catch (const ConfigError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  REQUIRE(error_of(R"({"0": [0, 1], "1": []})") == "no error");
  REQUIRE(error_of("[]") ==
          "g.json: expected an object with a list of ranks for each group, found something else");
  REQUIRE(error_of(R"({"0": [-1]})") ==
          "g.json: 0: ranks: expected a list of ranks, found something else");
  REQUIRE(error_of("{") == "g.json:1:2: expected JSON, found the end of the text");
}

TEST_CASE("the shipped traces run", "[chakra]") {
  const auto folder = kConfigsFolder / "workloads/imported/chakra-2";
  REQUIRE(recognise_imported(folder) == ImportedFormat::Chakra);
  const ImportedWorkload workload =
      imported_workload(ImportedFormat::Chakra,
                        read_imported_files(folder / "trace.{rank}.et", ImportedFormat::Chakra));
  REQUIRE(workload.graph.present().size() == 2);
  REQUIRE(workload.left_out.empty());
  REQUIRE(run_round(workload).result.finish > SimTime());
}

}  // namespace trainyard
