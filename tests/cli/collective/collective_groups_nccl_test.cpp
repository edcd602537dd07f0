// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/collective_groups_nccl.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "support/program.h"

namespace trainyard {
namespace {

nlohmann::json json_of_nccl(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.begin(), {operation, "--cluster", "dgx-h100", "--nodes", "2"});
  more.insert(more.end(), {"--format", "json"});
  std::ostringstream out;
  const int status = run_command(collective_command(), more, out);  // Its errors pass through.
  REQUIRE(status == 0);
  return nlohmann::json::parse(out.str());
}

}  // namespace

TEST_CASE("one communicator of all ranks is NCCL's collective to the last digit", "[groups]") {
  const std::vector<std::vector<std::string>> cases{
      {"all_reduce"}, {"all_gather", "--fidelity", "flow"}, {"alltoall", "--isolated"}};
  for (const std::vector<std::string>& one : cases) {
    INFO(one.front());
    std::vector<std::string> more(one.begin() + 1, one.end());
    more.insert(more.end(), {"-b", "16M", "-e", "64M", "-f", "4"});
    const nlohmann::json alone = json_of_nccl(one.front(), more);
    more.insert(more.end(), {"--groups", "16"});
    const nlohmann::json groups = json_of_nccl(one.front(), more);
    REQUIRE(groups["runtime"] == "nccl");
    REQUIRE(groups["rows"].size() == 2);
    for (std::size_t row = 0; row < 2; ++row) {
      for (const char* const key :
           {"time_us", "busbw_gb_per_s", "algorithm", "protocol", "channels"}) {
        INFO(key);
        REQUIRE(groups["rows"][row][key] == alone["rows"][row][key]);
      }
      REQUIRE(groups["rows"][row]["slowdown"] == 1.0);
      REQUIRE(groups["runs"][row]["makespan_us"] == groups["rows"][row]["time_us"]);
      REQUIRE(groups["runs"][row]["transfers"].is_null());
    }
  }
}

TEST_CASE("groups of a file have algorithms, operations and starts under NCCL, too", "[groups]") {
  const ScratchFolder folder;
  const std::string file = folder.write("groups.yaml", R"(groups:
  - {name: first, ranks: 0-7, algorithm: ring, size: 256 MiB}
  - {name: second, ranks: 0-7, algorithm: ring, size: 256 MiB}
  - {name: other, ranks: "8,9", operation: sendrecv, size: 64 MiB}
  - {name: late, ranks: "0,8", algorithm: tree, size: 1 MiB, start: 100 ms}
)");
  const nlohmann::json report = json_of_nccl("all_reduce", {"--groups", file});
  const nlohmann::json& rows = report["rows"];
  REQUIRE(rows.size() == 4);
  REQUIRE(rows[0]["algorithm"] == "Ring");
  REQUIRE(rows[0]["slowdown"].get<double>() > 1.3);
  REQUIRE(rows[0]["end_us"] == rows[1]["end_us"]);
  REQUIRE(rows[2]["algorithm"] == "SendRecv");
  REQUIRE(rows[2]["slowdown"] == 1.0);
  REQUIRE(rows[3]["algorithm"] == "Tree");
  REQUIRE(rows[3]["slowdown"] == 1.0);
  REQUIRE(rows[3]["start_us"] == 100'000.0);
  REQUIRE(report["runs"][0]["makespan_us"] == rows[3]["end_us"]);
}

TEST_CASE("what groups cannot do with NCCL is refused", "[groups]") {
  using Catch::Matchers::Contains;
  const ScratchFolder folder;
  const std::string bruck = folder.write("bruck.yaml", "groups: [{ranks: 0-7, algorithm: bruck}]");
  REQUIRE_THROWS_WITH(json_of_nccl("all_gather", {"--groups", bruck, "-b", "1M", "-e", "1M"}),
                      "group 0: expected an algorithm of NCCL, or --runtime plain, found bruck");
  const std::string barrier =
      folder.write("barrier.yaml", "groups: [{ranks: 0-7, operation: barrier}]");
  REQUIRE_THROWS_WITH(json_of_nccl("all_reduce", {"--groups", barrier, "-b", "1M", "-e", "1M"}),
                      "group 0: expected --runtime plain for barrier, found nccl");
  REQUIRE_THROWS_WITH(json_of_nccl("all_reduce", {"--groups", "8", "--algo", "ring,tree"}),
                      "--algo: expected one algorithm with --groups, found \"ring,tree\"");
  REQUIRE_THROWS_WITH(json_of_nccl("all_reduce", {"--groups", "8", "--proto", "ll,simple"}),
                      "--proto: expected one protocol with --groups, found \"ll,simple\"");
}

}  // namespace trainyard
