// SPDX-License-Identifier: Apache-2.0
// The runtime hccl from arguments to output, in this process.
#include "support/catch.h"

#include "cli/collective/collective_hccl.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

using Catch::Matchers::Equals;
using Json = nlohmann::json;

Json hccl_json(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.begin(),
              {operation, "--cluster", "ascend-910b", "--runtime", "hccl", "--format", "json"});
  std::ostringstream out;
  const int status = run_command(collective_command(), more, out);
  REQUIRE(status == 0);
  return Json::parse(out.str());
}

}  // namespace

TEST_CASE("HCCL's choices are columns of the table", "[cli][hccl]") {
  const Json one = hccl_json("all_reduce", {"--nodes", "1", "-b", "8K", "-e", "8M", "-f", "1024"});
  REQUIRE(one["runtime"] == "hccl");
  REQUIRE(one["rows"][0]["algorithm"] == "star");
  REQUIRE(one["rows"][1]["algorithm"] == "mesh");
  const Json four = hccl_json("all_reduce", {"-b", "1M", "-e", "64M", "-f", "64"});
  REQUIRE(four["rows"][0]["algorithm"] == "mesh+NHR-tree");
  REQUIRE(four["rows"][1]["algorithm"] == "mesh+pipeline");
  REQUIRE(four["rows"][1]["time_us"] > 0.0);
  const Json told = hccl_json(
      "all_reduce", {"-b", "64M", "-e", "64M", "--env", "HCCL_ALGO=level0:NA;level1:H-D_R"});
  REQUIRE(told["rows"][0]["algorithm"] == "mesh+H-D_R");
  REQUIRE(told["rows"][0]["time_us"] > four["rows"][1]["time_us"]);
  for (const std::string operation : {"all_gather", "reduce_scatter", "alltoall", "sendrecv"}) {
    REQUIRE(hccl_json(operation, {"-b", "16M", "-e", "16M"})["rows"].size() == 1);
  }
}

TEST_CASE("the runtime hccl refuses what it does not have", "[cli][hccl]") {
  REQUIRE_THROWS_WITH(hccl_json("all_reduce", {"--algo", "ring"}),
                      Equals("--algo: expected without --runtime hccl, found both; --env "
                             "HCCL_ALGO=... chooses"));
  REQUIRE_THROWS_WITH(hccl_json("all_reduce", {"--env", "NCCL_ALGO=Ring"}),
                      Catch::Matchers::StartsWith("--env: expected HCCL_ALGO or HCCL_BUFFSIZE"));
  REQUIRE_THROWS_AS(hccl_json("broadcast", {"-b", "1M", "-e", "1M"}), ConfigError);
}

}  // namespace trainyard
