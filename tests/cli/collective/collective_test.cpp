// SPDX-License-Identifier: Apache-2.0
// The command from arguments to output, in this process.
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

using CollectiveJson = nlohmann::json;

std::string run_collective(std::vector<std::string> arguments) {
  std::ostringstream out;
  const int status = run_command(collective_command(), arguments, out);
  REQUIRE(status == 0);
  return out.str();
}

std::string run_on_dgx_h100(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.begin(), {operation, "--cluster", "dgx-h100"});
  if (std::ranges::find(more, "--runtime") == more.end()) {
    more.insert(more.end(), {"--runtime", "plain"});
  }
  return run_collective(more);
}

CollectiveJson json_of_collective(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  return CollectiveJson::parse(run_on_dgx_h100(operation, more));
}

bool has_note_collective(const CollectiveJson& report, const std::string& start) {
  return std::ranges::any_of(report["notes"], [&](const CollectiveJson& note) {
    return note.get<std::string>().rfind(start, 0) == 0;
  });
}

const std::string kMeasured =
    source_dir().string() + "/validation/nccl/h100-1x8-nvswitch-allreduce.yaml";

}  // namespace

TEST_CASE("the help of collective shows every option and an example") {
  const std::string help = run_collective({"--help"});
  for (const std::string part :
       {"--cluster NAME|FILE", "--against FILE", "--log-level LEVEL", "-b [ --minbytes ] SIZE",
        "trainyard collective all_reduce --cluster dgx-h100 -b 8 -e 8G"}) {
    INFO(part);
    REQUIRE(help.find(part) != std::string::npos);
  }
}

TEST_CASE("an algorithm of a file runs beside the others, and alone if none is named") {
  const std::string file = source_dir().string() + "/configs/algorithms/allreduce_ring_8.xml";
  const std::vector<std::string> common{"--ranks", "8",   "-b",          "64M",
                                        "-e",      "64M", "--algo-file", file};
  const CollectiveJson alone = json_of_collective("all_reduce", common);
  REQUIRE(alone["rows"].size() == 1);
  REQUIRE(alone["rows"][0]["algorithm"] == "ring");
  std::vector<std::string> both = common;
  both.insert(both.end(), {"--algo", "ring", "--channels", "1"});
  const CollectiveJson rows = json_of_collective("all_reduce", both)["rows"];
  REQUIRE(rows.size() == 2);
  // The same ring, so the same time.
  REQUIRE(rows[0]["time_us"] == rows[1]["time_us"]);
  REQUIRE_THROWS_WITH(
      json_of_collective("all_gather", common),
      "--algo-file: expected an algorithm for all_gather, found " + file + " for all_reduce");
  REQUIRE_THROWS_WITH(json_of_collective("all_reduce", {"--ranks", "4", "--algo-file", file}),
                      "--algo-file: expected an algorithm for 4 ranks, found " + file + " for 8");
}

TEST_CASE("a list of messages runs as an algorithm, and names its message where it is none") {
  const ScratchFolder folder;
  const std::string file = source_dir() / "configs/algorithms/messages/all_reduce_ring_8.yaml";
  const auto row = [](const std::vector<std::string>& chosen) {
    std::vector<std::string> arguments{"--ranks", "8", "-b", "1M", "-e", "1M"};
    arguments.insert(arguments.end(), chosen.begin(), chosen.end());
    return json_of_collective("all_reduce", arguments)["rows"][0];
  };
  for (const char* const fidelity : {"flow", "packet"}) {
    const CollectiveJson messages = row({"--algo-file", file, "--fidelity", fidelity});
    REQUIRE(messages["algorithm"] == "ring of messages");
    REQUIRE(messages["time_us"] ==
            row({"--algo", "ring", "--channels", "1", "--fidelity", fidelity})["time_us"]);
  }
  std::string text = read_text_file(file);
  const std::string last = "- {step: 13, from: 7, to: 0, chunks: 2}\n";
  REQUIRE(text.ends_with(last));
  text.resize(text.size() - last.size());
  const std::string cut = folder.write("cut.yaml", text).string();
  REQUIRE_THROWS_WITH(
      row({"--algo-file", cut}),
      cut +
          ":56:3: messages[47]: step 5, from 7 to 0: the last message that brings it: rank 0 "
          "ends with {0, 2, 3, 4, 5, 6, 7} in chunk 2 instead of {0, 1, 2, 3, 4, 5, 6, 7}");
  REQUIRE_THROWS_WITH(
      json_of_collective("all_gather", {"--ranks", "8", "--algo-file", file}),
      "--algo-file: expected an algorithm for all_gather, found " + file + " for all_reduce");
}

TEST_CASE("a custom algorithm of a file is what it is proved to be") {
  const ScratchFolder folder;
  std::string text = read_text_file(source_dir() / "configs/algorithms/allreduce_ring_8.xml");
  const std::string named = "coll=\"allreduce\"";
  text.replace(text.find(named), named.size(), "coll=\"custom\" maxcount=\"1\"");
  const std::string file = folder.write("custom.xml", text).string();
  const std::vector<std::string> common{"--ranks", "8", "-b", "64M", "-e", "64M"};
  const auto time = [&](const std::string& of) {
    std::vector<std::string> arguments = common;
    arguments.insert(arguments.end(), {"--algo-file", of});
    return json_of_collective("all_reduce", arguments)["rows"][0]["time_us"];
  };
  REQUIRE(time(file) == time(source_dir().string() + "/configs/algorithms/allreduce_ring_8.xml"));
  REQUIRE_THROWS_WITH(json_of_collective("alltoall", {"--ranks", "8", "--algo-file", file}),
                      Catch::Matchers::Contains(file));
}

TEST_CASE("a report has a row for each size and algorithm, and marks the best of each size") {
  const CollectiveJson report =
      json_of_collective("all_reduce", {"-b", "1K", "-e", "64M", "-f", "256"});
  REQUIRE(report["ranks"] == 32);
  REQUIRE(report["nodes"] == 4);
  REQUIRE(report["runtime"] == "plain");
  REQUIRE(report["fidelity"] == "flow");
  // All that do all_reduce but nvls, which is of one server.
  constexpr std::size_t kAlgorithmsHere = 9;
  REQUIRE(report["rows"].size() == 3 * kAlgorithmsHere);
  for (std::size_t first = 0; first < report["rows"].size(); first += kAlgorithmsHere) {
    int best = 0;
    double min = 1e300;
    double marked = 0.0;
    for (std::size_t row = first; row < first + kAlgorithmsHere; ++row) {
      const CollectiveJson& entry = report["rows"][row];
      REQUIRE(entry["size_bytes"] == report["rows"][first]["size_bytes"]);
      REQUIRE(entry["time_us"] > 0.0);
      min = std::min(min, entry["time_us"].get<double>());
      best += entry["best"] ? 1 : 0;
      marked = entry["best"] ? entry["time_us"].get<double>() : marked;
    }
    REQUIRE(best == 1);
    REQUIRE(marked == min);
  }
}

TEST_CASE("every operation runs with each algorithm that can do it, at both fidelities") {
  for (const std::string operation : {"all_reduce", "all_gather", "reduce_scatter", "alltoall",
                                      "broadcast", "reduce", "sendrecv", "scatter", "gather"}) {
    for (const std::string fidelity : {"flow", "analytical"}) {
      INFO(operation << " " << fidelity);
      const CollectiveJson report =
          json_of_collective(operation, {"-b", "64K", "-e", "64K", "--fidelity", fidelity});
      REQUIRE(!report["rows"].empty());
      for (const CollectiveJson& row : report["rows"]) {
        REQUIRE(row["time_us"] > 0.0);
      }
    }
  }
}

TEST_CASE("the number of threads does not change a byte of the report") {
  const std::vector<std::string> options{"-b", "8", "-e", "1M", "-f", "16", "--fingerprint"};
  std::vector<std::string> one = options;
  one.insert(one.end(), {"--threads", "1"});
  std::vector<std::string> four = options;
  four.insert(four.end(), {"--threads", "4"});
  REQUIRE(run_on_dgx_h100("all_reduce", one) == run_on_dgx_h100("all_reduce", four));
}

TEST_CASE("a measured table gives the sizes and a measured time for each") {
  const CollectiveJson report =
      json_of_collective("all_reduce", {"--nodes", "1", "--algo", "ring", "--against", kMeasured});
  REQUIRE(report["rows"].size() > 5);
  for (const CollectiveJson& row : report["rows"]) {
    REQUIRE(row["measured_time_us"] > 0.0);
    REQUIRE(row["error_percent"].is_number());
  }
  REQUIRE(report["measured"]["name"] == "h100-1x8-nvswitch-allreduce");
}

TEST_CASE("an algorithm that works in place is compared with in-place times") {
  const ScratchFolder folder;
  const std::string log =
      folder
          .write("in.log",
                 "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
                 " 1048576 262144 float sum -1 100.0 10.49 18.35 0 80.0 13.11 22.94 0\n"
                 " 2097152 524288 float sum -1 200.0 10.49 18.35 0 N/A N/A N/A N/A\n")
          .string();
  const std::string file = source_dir().string() + "/configs/algorithms/allreduce_ring_8.xml";
  const CollectiveJson report =
      json_of_collective("all_reduce", {"--nodes", "1", "--algo-file", file, "--against", log});
  REQUIRE(report["rows"].size() == 2);
  REQUIRE(report["rows"][0]["measured_time_us"] == 80.0);
  REQUIRE(report["rows"][1]["measured_time_us"] == 200.0);
  REQUIRE(has_note_collective(report, "the algorithm works in place: 1 of 2 rows have"));
  REQUIRE(json_of_collective("all_reduce", {"--nodes", "1", "--algo", "ring", "--against",
                                            log})["rows"][0]["measured_time_us"] == 100.0);
  // The rows say that they are of eight ranks.
  REQUIRE_THROWS_WITH(
      json_of_collective("all_reduce", {"--nodes", "2", "--algo", "ring", "--against", log}),
      "--against: expected all_reduce of 16 ranks, found " + log +
          " of all_reduce of 8 ranks (busbw / algbw is 1.75)");
}

TEST_CASE("sizes of a sweep that were not measured stay without a measured time") {
  const CollectiveJson report =
      json_of_collective("all_reduce", {"--nodes", "1", "--algo", "ring", "--against", kMeasured,
                                        "-b", "32M", "-e", "96M", "-f", "3"});
  REQUIRE(report["rows"].size() == 2);
  REQUIRE(report["rows"][0]["measured_time_us"].is_number());
  REQUIRE(report["rows"][1]["measured_time_us"].is_null());
}

TEST_CASE("a run that moves nothing, and options that changed nothing, are noted") {
  REQUIRE(has_note_collective(
      json_of_collective("all_reduce", {"--ranks", "1", "-b", "8", "-e", "8"}), "one rank: "));
  const CollectiveJson report = json_of_collective(
      "all_reduce", {"--ranks", "8", "-b", "1M", "-e", "1M", "--chunk", "8K", "--seed", "2"});
  REQUIRE(has_note_collective(report, "--chunk did not influence halving-doubling"));
  REQUIRE(!has_note_collective(report, "--chunk did not influence ring"));
  REQUIRE(has_note_collective(report, "--seed did not influence the result"));
  REQUIRE(has_note_collective(report, "plain runtime: "));
  REQUIRE(has_note_collective(report, "10 estimates "));
  REQUIRE(has_note_collective(
      json_of_collective("all_reduce", {"-b", "8", "-e", "8", "--fidelity", "analytical"}),
      "analytical: "));
}

TEST_CASE("one rank does every operation in no time") {
  for (const std::string operation : {"all_reduce", "all_gather", "reduce_scatter", "alltoall",
                                      "broadcast", "reduce", "sendrecv", "scatter", "gather"}) {
    INFO(operation);
    const CollectiveJson report =
        json_of_collective(operation, {"--ranks", "1", "-b", "1K", "-e", "1K"});
    for (const CollectiveJson& row : report["rows"]) {
      REQUIRE(row["time_us"] == 0.0);
    }
  }
}

TEST_CASE("a collective over packets says how they fared, and counts at every port") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "counters.csv").string();
  const std::vector<std::string> options{"--nodes",    "2",      "--algo",     "ring",  "-b",
                                         "1M",         "-e",     "1M",         "--pfc", "off",
                                         "--fidelity", "packet", "--counters", file};
  const CollectiveJson report = json_of_collective("all_gather", options);
  REQUIRE(report["fidelity"] == "packet");
  REQUIRE(has_note_collective(report, "packets: congestion control dcqcn-nic, ECN hpcc, PFC off"));
  REQUIRE(has_note_collective(report, "ring at 1MiB: packets: "));
  REQUIRE(read_text_file(file).find("\nserver0/nic0,leaf0,") != std::string::npos);
  REQUIRE_THROWS_WITH(json_of_collective("all_gather", {"--pfc", "off"}),
                      "--pfc: expected --fidelity packet or mixed beside it, found flow");
}

TEST_CASE("the output file holds what standard output would, and nothing is left on a mistake") {
  const ScratchFolder folder;
  const std::string file = folder.path() / "report.csv";
  const std::vector<std::string> options{"-b", "1K", "-e", "1K", "--format", "csv"};
  std::vector<std::string> to_file = options;
  to_file.insert(to_file.end(), {"--output", file});
  REQUIRE(run_on_dgx_h100("all_reduce", to_file).empty());
  const std::string text = run_on_dgx_h100("all_reduce", options);
  REQUIRE(read_text_file(file) == text);
  to_file.insert(to_file.end(), {"--ranks", "5000"});
  REQUIRE_THROWS_AS(run_on_dgx_h100("all_reduce", to_file), ConfigError);
  REQUIRE(read_text_file(file) == text);
  REQUIRE(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("the trace is JSON with spans of the first algorithm within the time of its row") {
  const ScratchFolder folder;
  const std::string file = folder.path() / "trace.json";
  const CollectiveJson report =
      json_of_collective("all_reduce", {"--ranks", "4", "-b", "1K", "-e", "1M", "-f", "1024",
                                        "--algo", "tree,ring", "--trace", file});
  const CollectiveJson trace = CollectiveJson::parse(read_text_file(file));
  std::size_t spans = 0;
  double last_us = 0.0;
  for (const CollectiveJson& event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      ++spans;
      last_us = std::max(last_us, event["ts"].get<double>() + event["dur"].get<double>());
    }
  }
  REQUIRE(spans > 0);
  REQUIRE(last_us == Approx(report["rows"][2]["time_us"].get<double>()));
}

}  // namespace trainyard
