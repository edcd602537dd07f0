// SPDX-License-Identifier: Apache-2.0
// The public header, from outside: only it and helpers of tests are included here.
#include "support/catch.h"

#include <trainyard/trainyard.h>
#include <atomic>
#include <chrono>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) {
    words.push_back(word);
  }
  return words;
}

// Command lines that print quickly, of all commands that have forms.
const std::vector<std::string> kLines{
    "collective all_reduce --cluster dgx-h100 --nodes 2 --minbytes 1M --maxbytes 64M",
    "collective alltoall --cluster dgx-h100 --nodes 2 --runtime plain --algo pairwise --minbytes "
    "1M "
    "--maxbytes 1M --fingerprint",
    "collective all_reduce --cluster dgx-h100 --nodes 2 --set server.nics=4 --minbytes 64M "
    "--maxbytes 64M --fidelity flow",
    "step --cluster dgx-h100 --nodes 2 --model llama-3-8b",
    "search --cluster dgx-h100 --nodes 1 --model llama-3-8b --tp 4,8 --pp 1 --cp 1",
    "explain step --cluster dgx-h100 --nodes 1 --model llama-3-8b",
    "explain collective all_reduce --cluster dgx-h100 --nodes 2 --minbytes 1M --maxbytes 1M",
    "cost --cluster dgx-h100 --nodes 1 --model llama-3-8b",
    "topology --cluster dgx-h100 --nodes 2",
    "parts",
    "transfer --cluster dgx-h100 --nodes 2 --from server0/gpu0 --to server1/gpu0"};

// The same in another form.
std::string in_form(const std::string& line, const std::string& form) {
  const ProgramResult result = run_program(words_of(line + " --format " + form), source_dir());
  INFO(line << "\n" << result.error);
  REQUIRE(result.status == 0);
  return result.output;
}

// Returns the error that the library throws for a command line.
Error error_of(const std::string& line) {
  try {
    static_cast<void>(run(words_of(line)));
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error("");
}

}  // namespace

TEST_CASE("the library says what the program prints, in each form") {
  for (const std::string& line : kLines) {
    INFO(line);
    const Result result = run(words_of(line));
    const ProgramResult program = run_program(words_of(line), source_dir());
    REQUIRE(result.text() == program.output);
    REQUIRE(result.status() == program.status);
    REQUIRE(result.csv() == in_form(line, "csv"));
    REQUIRE(result.json() == in_form(line, "json"));
    std::string log;
    for (const std::string& each : result.log()) {
      log += "trainyard: " + each + "\n";
    }
    REQUIRE(log == program.error);
  }
}

TEST_CASE("figures are found by their paths, tables by the array they are") {
  const Cluster cluster("dgx-h100", 2, {"server.nics=4"});
  const Result result =
      cluster.collective("all_reduce", {{"minbytes", "1M"}, {"maxbytes", "2M"}, {"threads", 1}});
  REQUIRE(result.number("ranks") == 16);
  REQUIRE(result.number("rows.1.size_bytes") == 2 << 20);
  REQUIRE(std::get<std::string>(result.value("operation")) == "all_reduce");
  const Table rows = result.table("rows");
  REQUIRE(rows.rows.size() == 2);
  REQUIRE(rows.columns.front() == "size_bytes");
  REQUIRE(std::get<std::int64_t>(rows.rows[0][0]) == 1 << 20);
  REQUIRE_THROWS_WITH(result.number("rows.2.time_us"),
                      "rows.2.time_us: expected a path in the result of collective, found none of "
                      "that name");
  REQUIRE_THROWS_WITH(result.number("operation"),
                      "operation: expected a number, found \"all_reduce\"");
  REQUIRE_THROWS_WITH(result.table("ranks"),
                      "ranks: expected an array of objects, found another value");
  REQUIRE_THROWS_WITH(result.table(""),
                      "the result: expected an array of objects, found another value");
}

TEST_CASE("errors are those of the program, with their place") {
  for (const std::string line : {"collective all_reduce --cluster dgx-h100 --nodes 0", "step",
                                 "colective", "topology --cluster dgx-h100 --node 2",
                                 "topology --cluster dgx-h100 --set server.nicks=4"}) {
    INFO(line);
    const ProgramResult program = run_program(words_of(line), source_dir());
    REQUIRE(program.status == 2);
    REQUIRE("trainyard: " + std::string(error_of(line).what()) + "\n" == program.error);
  }
  REQUIRE(error_of("topology --cluster dgx-h100 --nodes 0").place() == "--nodes");
  REQUIRE(error_of("topology --cluster dgx-h100 --node 2").place() == "topology");
  REQUIRE(error_of("colective").place().empty());
  REQUIRE_THROWS_WITH(
      run(words_of("import " + (source_dir() / "tests/golden/dgx-a100.xml").string())).json(),
      "import: expected a command with --format json, found one without");
}

TEST_CASE("options are those of the command line, and so is the version") {
  REQUIRE(Option("fingerprint").word() == "--fingerprint");
  REQUIRE(Option("set", "a=b").word() == "--set=a=b");
  REQUIRE(Option("nodes", 4).word() == "--nodes=4");
  REQUIRE(Option("rate", 0.1).word() == "--rate=0.1");
  REQUIRE(run({"--version"}).text() == "trainyard " TRAINYARD_VERSION_TEXT "\n");
  REQUIRE(TRAINYARD_VERSION_TEXT == std::to_string(TRAINYARD_VERSION_MAJOR) + "." +
                                        std::to_string(TRAINYARD_VERSION_MINOR) + "." +
                                        std::to_string(TRAINYARD_VERSION_PATCH));
  REQUIRE(commands().front().name == "collective");
  REQUIRE(commands().front().options.front().is_argument);
}

TEST_CASE("calls of several threads give what they give one after the other") {
  std::vector<std::string> alone;
  for (const std::string& line : kLines) {
    alone.push_back(run(words_of(line)).text());
  }
  std::vector<std::string> together(kLines.size());
  std::atomic<std::size_t> next{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < kLines.size(); at = next++) {
          together[at] = run(words_of(kLines[at])).text();
        }
      });
    }
  }
  REQUIRE(together == alone);
}

TEST_CASE("a run says how far it is, and ends when its caller wants that") {
  // A run of nine seconds where nobody ends it.
  const std::string line =
      "collective alltoall --cluster dgx-h100 --nodes 16 --runtime plain --fidelity packet --algo "
      "pairwise --minbytes 1G --maxbytes 1G --threads 1";
  std::stop_source stop;
  std::atomic<int> lines{0};
  const auto start = std::chrono::steady_clock::now();
  REQUIRE_THROWS_AS(run(words_of(line), {.stop = stop.get_token(),
                                         .progress =
                                             [&](std::string_view text) {
                                               lines += text.starts_with("collective: ") ? 1 : 0;
                                               stop.request_stop();
                                             }}),
                    Cancelled);
  REQUIRE(lines > 0);
  REQUIRE(std::chrono::steady_clock::now() - start < std::chrono::seconds(60));
  // At once, and the library goes on to work.
  REQUIRE_THROWS_AS(run({"parts"}, {.stop = stop.get_token(), .progress = {}}), Cancelled);
  REQUIRE(run({"parts"}).status() == 0);
}

TEST_CASE("a function of the caller controls flows, on one thread and in one order") {
  const ScratchFolder folder;
  const std::string file = folder.write("mine.yaml", "sources: {}\nalgorithm: callback\n").string();
  const auto incast = [&](const OptionList& more, const Watch& watch) {
    OptionList options{{"cluster", "fat-tree-k8-100g"}, {"fidelity", "packet"}, {"effects", "off"}};
    options.insert(options.end(), more.begin(), more.end());
    return run("traffic", {"incast"}, options, watch);
  };
  std::vector<std::uint64_t> heard;
  std::int64_t window = 0;
  const Watch watch{.control = [&](const FlowSignal& signal) {
    heard.push_back(signal.flow);
    return FlowPace{.window_bytes = window, .bits_per_second = 0};
  }};
  const double without_window = incast({{"control", file}}, watch).number("makespan_us");
  const std::vector<std::uint64_t> order = heard;
  REQUIRE(order.size() > 16);
  heard.clear();
  REQUIRE(incast({{"control", file}, {"threads", 1}}, watch).number("makespan_us") ==
          without_window);
  REQUIRE(heard == order);
  window = 8'000;  // Two packets under way are too few for the round trip.
  REQUIRE(incast({{"control", file}}, watch).number("makespan_us") > without_window);

  REQUIRE_THROWS_WITH(incast({{"control", file}, {"threads", 2}}, watch),
                      "--threads: expected 1 beside a control that is a function of the caller, "
                      "found \"2\"");
  REQUIRE_THROWS_WITH(incast({{"control", "dctcp"}}, watch),
                      "--control: expected a file with \"algorithm: callback\" beside a control "
                      "that is a function, found none");
  REQUIRE_THROWS_WITH(incast({{"control", file}}, {}),
                      file +
                          ":2:12: algorithm: expected a program that calls the library with a "
                          "control of its own, found \"callback\"");
}

}  // namespace trainyard
