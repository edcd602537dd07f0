// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/collective_groups.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "report/formats/csv.h"
#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

using GroupsJson = nlohmann::json;

std::string text_of_groups(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.begin(), {operation, "--cluster", "dgx-h100", "--nodes", "2"});
  std::ostringstream out;
  const int status = run_command(collective_command(), more, out);  // Its errors pass through.
  REQUIRE(status == 0);
  return out.str();
}

GroupsJson json_of_groups(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.end(), {"--runtime", "plain", "--format", "json"});
  return GroupsJson::parse(text_of_groups(operation, more));
}

const std::vector<std::string> kOneSize{"-b", "16M", "-e", "16M"};

std::vector<std::string> at_one_size(std::vector<std::string> more) {
  more.insert(more.end(), kOneSize.begin(), kOneSize.end());
  return more;
}

}  // namespace

TEST_CASE("one communicator of all ranks is the plain collective to the last digit", "[groups]") {
  for (const std::string operation : {"all_reduce", "all_gather", "broadcast"}) {
    INFO(operation);
    const GroupsJson plain = json_of_groups(operation, at_one_size({"--algo", "ring"}))["rows"][0];
    const GroupsJson groups = json_of_groups(operation, at_one_size({"--groups", "16"}));
    REQUIRE(groups["rows"].size() == 1);
    const GroupsJson& row = groups["rows"][0];
    for (const char* const key : {"time_us", "busbw_gb_per_s", "algbw_gb_per_s", "channels"}) {
      INFO(key);
      REQUIRE(row[key] == plain[key]);
    }
    REQUIRE(row["slowdown"] == 1.0);
    REQUIRE(row["alone_us"] == row["time_us"]);
    REQUIRE(groups["runs"][0]["makespan_us"] == row["time_us"]);
    REQUIRE(groups["runs"][0]["transfers"] == plain["transfers"]);
  }
}

TEST_CASE("groups within servers and along rails are alone on their links", "[groups]") {
  for (const std::string groups : {"8", ":8"}) {
    const GroupsJson report =
        json_of_groups("all_reduce", {"--groups", groups, "-b", "1M", "-e", "4M"});
    REQUIRE(report["rows"].size() == (groups == "8" ? 6 : 24));
    REQUIRE(report["runs"].size() == 3);
    for (const GroupsJson& row : report["rows"]) {
      REQUIRE(row["slowdown"] == 1.0);
    }
  }
}

TEST_CASE("groups of a file have starts, sizes and operations of their own", "[groups]") {
  const ScratchFolder folder;
  const std::string file = folder.write("groups.yaml", R"(groups:
  - {name: first, ranks: "0,8", operation: sendrecv, size: 64 MiB}
  - {name: second, ranks: "0,8", operation: sendrecv, size: 64 MiB}
  - {name: late, ranks: 0-7, size: 1 MiB, start: 100 ms}
)");
  const GroupsJson report = json_of_groups("all_reduce", {"--groups", file});
  REQUIRE(report["rows"].size() == 3);
  // Both have half the rate of their NICs, and the same latency as alone.
  REQUIRE(report["rows"][0]["slowdown"].get<double>() == Approx(2.0).epsilon(0.01));
  REQUIRE(report["rows"][0]["end_us"] == report["rows"][1]["end_us"]);
  REQUIRE(report["rows"][2]["operation"] == "all_reduce");
  REQUIRE(report["rows"][2]["start_us"] == 100'000.0);
  REQUIRE(report["rows"][2]["slowdown"] == 1.0);
  REQUIRE(report["runs"][0]["makespan_us"] == report["rows"][2]["end_us"]);
  REQUIRE(report["runs"][0]["size_bytes"].is_null());
  const std::string notes = report["notes"].dump();
  REQUIRE(notes.find("gpus 0-7,8 are in several groups") == std::string::npos);
  REQUIRE(notes.find("gpus 0,8 are in several groups") != std::string::npos);
  const auto csv = parse_csv(
      text_of_groups("all_reduce", {"--runtime", "plain", "--groups", file, "--format", "csv"}));
  REQUIRE(csv.size() == 4);
  REQUIRE_THROWS_WITH(json_of_groups("all_reduce", {"--groups", file, "-b", "1M"}),
                      Catch::Matchers::StartsWith("--groups: expected no sizes beside it"));
}

// Two pairs put 2 x 64 MiB on each NIC that both use: the bound of the flow engine's makespan.
TEST_CASE("analytical groups take their time alone, and add up in the makespan", "[groups]") {
  const ScratchFolder folder;
  const std::string file = folder.write("groups.yaml", R"(groups:
  - {ranks: "0,8", size: 64 MiB}
  - {ranks: "0,8", size: 64 MiB, start: 10 us}
)");
  const auto run = [&](const std::string& fidelity) {
    return json_of_groups("sendrecv", {"--groups", file, "--fidelity", fidelity});
  };
  const GroupsJson bound = run("analytical");
  const GroupsJson flow = run("flow");
  for (const std::size_t row : {0U, 1U}) {
    REQUIRE(bound["rows"][row]["slowdown"] == 1.0);
    REQUIRE(bound["rows"][row]["end_us"] <= flow["rows"][row]["end_us"]);
  }
  const double makespan = bound["runs"][0]["makespan_us"].get<double>();
  REQUIRE(makespan <= flow["runs"][0]["makespan_us"].get<double>());
  REQUIRE(makespan > 1.9 * bound["rows"][0]["time_us"].get<double>());
}

TEST_CASE("a note names the one GPU that is in several groups", "[groups]") {
  const ScratchFolder folder;
  const std::string file = folder.write("one.yaml", "groups: [{ranks: 0-3}, {ranks: \"0,8\"}]");
  const std::string notes = json_of_groups("all_reduce", at_one_size({"--groups", file})).dump();
  REQUIRE(notes.find("gpu 0 is in several groups") != std::string::npos);
}

TEST_CASE("what groups cannot do is refused", "[groups]") {
  using Catch::Matchers::Contains;
  REQUIRE_THROWS_WITH(json_of_groups("all_reduce", {"--groups", "8", "--ranks", "8"}),
                      "--groups: expected without --ranks, found both");
  REQUIRE_THROWS_WITH(json_of_groups("all_reduce", {"--groups", "8", "--algo", "ring,tree"}),
                      "--algo: expected one algorithm with --groups, found \"ring,tree\"");
  const ScratchFolder folder;
  const std::string file =
      folder.write("groups.yaml", "groups: [{ranks: 0-7, operation: all_gather, algorithm: tree}]");
  REQUIRE_THROWS_WITH(json_of_groups("all_reduce", at_one_size({"--groups", file})),
                      "group 0: expected an algorithm that can do all_gather, found tree");
  REQUIRE_THROWS_WITH(json_of_groups("all_reduce", {"--groups", file}),
                      "group 0: expected at least 128 bytes (-b), 16 for each rank, found 8B");
  REQUIRE(json_of_groups("barrier", {"--groups", "8"})["rows"][0]["algorithm"] == "dissemination");
  const std::string nvls = folder.write("nvls.yaml", "groups: [{ranks: 0-15, algorithm: nvls}]");
  REQUIRE_THROWS_WITH(
      json_of_groups("all_reduce", at_one_size({"--groups", nvls})),
      Contains("group 0: expected an algorithm that its ranks can run, found nvls: "));
}

}  // namespace trainyard
