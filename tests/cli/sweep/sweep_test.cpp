// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/sweep/sweep.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "report/formats/csv.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

// A sweep of all-reduces on so many servers.
class SweepFolder {
 public:
  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text).string();
  }
  [[nodiscard]] std::string sweep(const std::string& nodes,
                                  const std::string& more = "algo: ring") const {
    return folder_
        .write("sweep.yaml",
               "title: t\ncommand: collective\noptions:\n  operation: all_reduce\n  runtime: "
               "plain\n  cluster: " +
                   (kConfigsFolder / "clusters/dgx-h100.yaml").string() +
                   "\n  minbytes: 1M\n  maxbytes: 4M\n  " + more + "\nvary:\n  nodes: " + nodes +
                   "\n  channels: [1, 2]\n")
        .string();
  }

 private:
  ScratchFolder folder_;
};

// As CSV, unless they say another format.
int run(std::vector<std::string> arguments, std::string& text) {
  if (std::ranges::find(arguments, "--format") == arguments.end()) {
    arguments.insert(arguments.end(), {"--format", "csv"});
  }
  std::ostringstream out;
  const int status = run_command(sweep_command(), arguments, out);
  text = out.str();
  return status;
}

std::string refusal_sweep(const std::vector<std::string>& arguments) {
  std::string text;
  try {
    (void)run(arguments, text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a sweep has the rows of every point in order, whatever the threads", "[sweep]") {
  const SweepFolder folder;
  const std::string file = folder.sweep("[1, 2]");
  std::string one;
  std::string four;
  REQUIRE(run({file, "--threads", "1"}, one) == 0);
  REQUIRE(run({file, "--threads", "4"}, four) == 0);
  REQUIRE(one == four);
  const auto records = parse_csv(one);
  REQUIRE(records.size() == 1 + 4 * 3);
  REQUIRE(records[0][0] == "nodes");
  REQUIRE(records[0][1] == "channels");
  REQUIRE(records[0][2] == "size_bytes");
  REQUIRE(records[0].back() == "error");
  REQUIRE(records[4][0] == "1");
  REQUIRE(records[4][1] == "2");
  REQUIRE(records[12][0] == "2");
  std::string json;
  REQUIRE(run({file, "--format", "json"}, json) == 0);
  REQUIRE(nlohmann::json::parse(json)[11]["size_bytes"] == 4194304);
}

TEST_CASE("a point that fails has its error, and the others go on", "[sweep]") {
  const SweepFolder folder;
  std::string text;
  REQUIRE(run({folder.sweep("[0, 2]")}, text) == 1);
  const auto records = parse_csv(text);
  REQUIRE(records.size() == 1 + 2 + 2 * 3);
  REQUIRE(records[1].back() == "--nodes: expected a whole number from 1 to 1000000, found \"0\"");
  REQUIRE(records[1].size() == records[0].size());
  REQUIRE(records[3].back().empty());
}

TEST_CASE("a sweep with points that failed says so beside its table", "[sweep]") {
  const SweepFolder folder;
  const std::string file = folder.sweep("[0, 2]");
  const ProgramResult result = run_program(
      {"sweep", file, "--format", "csv", "--output", folder.file("s.csv")}, source_dir());
  REQUIRE(result.status == 1);
  REQUIRE(result.error ==
          "trainyard: warning: 2 of 4 points failed, the first with: --nodes: expected a whole "
          "number from 1 to 1000000, found \"0\"\n");
  REQUIRE(run_program({"sweep", file, "--log-level", "off"}, source_dir()).error.empty());
  REQUIRE(refusal_sweep({file, "--log-level", "loud"}).find("--log-level: expected") == 0);
}

TEST_CASE("a sweep that was cut off continues with what it has", "[sweep]") {
  const SweepFolder folder;
  const std::string file = folder.sweep("[1, 2]");
  const std::string output = folder.file("out.csv");
  std::string whole;
  REQUIRE(run({file}, whole) == 0);
  std::string none;
  REQUIRE(run({file, "--output", output}, none) == 0);
  REQUIRE(read_text_file(output) == whole);
  REQUIRE_FALSE(std::filesystem::exists(output + ".partial"));

  // What was kept is not simulated again: a result that no run would give shows it.
  std::ofstream(output + ".partial") << "x\n";
  REQUIRE(refusal_sweep({file, "--output", output}).find("--resume continues with them") !=
          std::string::npos);
  REQUIRE(refusal_sweep({file, "--output", output, "--resume"})
              .find("expected results of this sweep") != std::string::npos);
  REQUIRE(read_text_file(output) == whole);
}

TEST_CASE("mistakes in a sweep are found before it begins", "[sweep]") {
  const SweepFolder folder;
  const std::string file = folder.sweep("[1]", "nodse: 3");
  REQUIRE(refusal_sweep({file}) ==
          file +
              ": nodse: expected an option of trainyard collective that is no "
              "file of results, found \"nodse\"; did you mean \"nodes\"?");
  REQUIRE(refusal_sweep({folder.sweep("[1]", "output: x")}).find("output: expected an option") !=
          std::string::npos);
  REQUIRE(refusal_sweep({}) ==
          "sweep: expected a file of a sweep, found none; see trainyard sweep --help");
  const std::string read = folder.file("sweep.yaml");
  REQUIRE(refusal_sweep({folder.sweep("[1]"), "--output", read})
              .starts_with("--output: expected another file than one that is read, found "));
  const std::string cluster = folder.write("mine.yaml", "a: 1\n");
  REQUIRE(refusal_sweep({folder.sweep("[1]", "profile: " + cluster), "--output", cluster})
              .starts_with("--output: expected another file than that of --profile, found "));
  REQUIRE(refusal_sweep({file, "--resume"}) ==
          "--resume: expected --output FILE beside it, found none");
}

TEST_CASE("the commands of a sweep can be listed", "[sweep]") {
  const SweepFolder folder;
  std::string text;
  REQUIRE(run({folder.sweep("[1]"), "--list"}, text) == 0);
  REQUIRE(text.find("--algo ring --nodes 1 --channels 2\n") != std::string::npos);
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 2);
}

TEST_CASE("a sweep of steps has energy and cost as columns", "[sweep]") {
  const ScratchFolder folder;
  const std::string prices = folder.write("p.yaml", "currency: EUR\nkwh: 0.2\n").string();
  const std::string file =
      folder
          .write("sweep.yaml",
                 "title: t\ncommand: step\noptions:\n  cluster: dgx-h100\n  nodes: 1\n"
                 "  workload: llama-3-8b\n  prices: " +
                     prices + "\nvary:\n  set.batch.global: [16, 32]\n")
          .string();
  std::string text;
  REQUIRE(run({file, "--format", "json"}, text) == 0);
  const auto rows = nlohmann::json::parse(text);
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) {
    const double joules = row["energy_of_token_j"];
    REQUIRE(row["price_of_million_tokens"] == Approx(0.2 * joules * 1e6 / 3.6e6));
    REQUIRE(row["currency"] == "EUR");
  }
}

TEST_CASE("the page of a sweep goes beside its table", "[sweep]") {
  if (!std::filesystem::exists("/usr/share/javascript/d3/d3.min.js")) {
    WARN("no libjs-d3: no page is made");
    return;
  }
  const SweepFolder folder;
  const std::string page = folder.file("out.html");
  std::string text;
  REQUIRE(run({folder.sweep("[0, 2]"), "--report", page, "--output", folder.file("out.csv")},
              text) == 1);
  REQUIRE(read_text_file(page).find("\"points that failed\",\"2\"") != std::string::npos);
  REQUIRE(
      refusal_sweep({folder.sweep("[1]"), "--report", page, "--output", page}).find("--report") ==
      0);
}

TEST_CASE("shipped sweeps name options that there are", "[sweep]") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigsFolder / "sweeps")) {
    std::string text;
    REQUIRE(run({entry.path().string(), "--list"}, text) == 0);
    REQUIRE_FALSE(text.empty());
    ++files;
  }
  REQUIRE(files >= 2);
}

TEST_CASE("axes whose values change no row are named", "[sweep][effects]") {
  const SweepSpec spec{
      .title = "t",
      .command = "step",
      .options = {},
      .groups = {{{.key = "a", .values = {"1", "2"}}},
                 {{.key = "b", .values = {"1", "2", "3"}}, {.key = "c", .values = {"4", "5", "6"}}},
                 {{.key = "d", .values = {"1"}}}}};
  SweepResults results;
  for (std::size_t point = 0; point < spec.points(); ++point) {
    results[point] = {.csv = point < 3 ? "x\n1\n" : "x\n2\n", .error = ""};
  }
  REQUIRE(idle_axes(spec, results) == std::vector<std::string>{"b, c"});
  results[4].csv = "x\n3\n";
  REQUIRE(idle_axes(spec, results).empty());
}

}  // namespace trainyard
