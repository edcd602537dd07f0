// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/validate/validate_hosts.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string run(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(),
                   {"--cases", (source_dir() / "validation/hosts").string(), "--log-level", "off"});
  std::ostringstream out;
  const int status = run_command(validate_command(), arguments, out);  // May throw.
  REQUIRE(status == 0);
  return out.str();
}

std::string mistake_of(const std::vector<std::string>& arguments) {
  try {
    (void)run(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("validate compares measurements of hosts with a profile", "[cli][validate][mpi]") {
  const std::string all = run({});
  REQUIRE(all.find("epyc.yaml") != std::string::npos);
  REQUIRE(all.find("reduce_scatter, 2 ranks") != std::string::npos);
  REQUIRE(all.find("all collectives") != std::string::npos);
  const auto rows = nlohmann::json::parse(
      run({"--only", "alltoall", "--format", "json", "--threads", "1"}))["rows"];
  REQUIRE(rows.size() == 30);  // Ten sizes in three files.
  REQUIRE(rows[0]["test"] == "alltoall");
  // Another profile predicts other times.
  const ScratchFolder folder;
  std::string text = read_text_file(source_dir() / "configs/mpi/profile.yaml");
  const std::string send = "send: {value: ";
  text.insert(text.find(send) + send.size(), "9");
  folder.write("mpi.yaml", text);
  const std::string own = (folder.path() / "mpi.yaml").string();
  const auto slower = nlohmann::json::parse(
      run({"--only", "alltoall", "--format", "json", "--mpi-profile", own}))["rows"];
  REQUIRE(slower[0]["predicted_us"] > rows[0]["predicted_us"]);
}

TEST_CASE("validate refuses of hosts what it does for cases alone", "[cli][validate][mpi]") {
  REQUIRE(mistake_of({"--refit"}) ==
          "--refit: expected cases of collectives or training steps, found measurements of hosts");
  REQUIRE(mistake_of({"--only", "pong"}).starts_with("--only: expected a test, or part of"));
  std::ostringstream out;
  const std::vector<std::string> cases{"--mpi-profile", "mpi.yaml", "--only", "h100"};
  REQUIRE_THROWS_WITH(run_command(validate_command(), cases, out),
                      "--mpi-profile: expected measurements of hosts, found cases");
  // It has no --cluster, which the line for too many ranks once asked for.
  const ScratchFolder folder;
  const std::string box =
      folder.write("box.yaml", read_text_file(source_dir() / "validation/box/fifth.yaml")).string();
  REQUIRE_THROWS_WITH(
      run_command(validate_command(), std::vector<std::string>{"--cases", folder.path().string()},
                  out),
      box +
          ": expected a cluster with a server for each of the 2 ranks, found DGX A100, "
          "rail-optimised HDR with 1");
}

}  // namespace trainyard
