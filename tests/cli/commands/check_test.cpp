// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kConfigs = source_dir().string() + "/configs/";

struct Result {
  int status = 0;
  std::string text;
};

Result check(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  const int status = run_command(check_command(), arguments, out);
  return {.status = status, .text = out.str()};
}

std::string error_of(const std::vector<std::string>& arguments) {
  try {
    (void)check(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("the help of check shows an example") {
  REQUIRE(check({"--help"}).text.find("trainyard check my-cluster.yaml --strict") !=
          std::string::npos);
}

TEST_CASE("check looks at clusters and the catalogue, each by its place") {
  const std::string file = kConfigs + "clusters/rtx4090-pcie.yaml";
  const Result clean = check({file, kConfigs + "hardware/gpus.yaml"});
  REQUIRE(clean.status == 0);
  REQUIRE(clean.text == "2 files checked: 0 errors, 0 warnings, 0 notes\n");
  const std::string other = kConfigs + "clusters/dgx-1.yaml";
  const Result noted = check({other, "--strict"});
  REQUIRE(noted.status == 0);
  REQUIRE(noted.text.find(other + ": note: pcie-uplink: ") == 0);
}

TEST_CASE("a broken cable is a warning, which fails only where asked for") {
  const std::string file = kConfigs + "clusters/dgx-h100.yaml";
  const Result lenient = check({file, "--pull", "server0/nic0,leaf0"});
  REQUIRE(lenient.status == 0);
  REQUIRE(lenient.text.find(file + ": warning: fault: server0/nic0 - leaf0 pulled: ") == 0);
  REQUIRE(check({file, "--pull", "server0/nic0,leaf0", "--strict"}).status == 1);
}

TEST_CASE("findings are rows for programs") {
  const Result noted = check(
      {kConfigs + "clusters/dgx-h100.yaml", "--pull", "server0/nic0,leaf0", "--format", "json"});
  const nlohmann::json found = nlohmann::json::parse(noted.text);
  REQUIRE(found["files"] == 1);
  REQUIRE(found["errors"] == 0);
  REQUIRE(found["warnings"] > 0);
  REQUIRE(found["findings"].size() ==
          found["warnings"].get<std::size_t>() + found["notes_found"].get<std::size_t>());
  REQUIRE(std::ranges::any_of(found["findings"], [](const nlohmann::json& row) {
    return row["severity"] == "warning" && row["code"] == "fault";
  }));
  REQUIRE(check({kConfigs + "hardware/gpus.yaml", "--format", "csv"}).text ==
          "place,severity,code,message\n");
}

TEST_CASE("a mistake in a file is an error with its place, and the others are still checked") {
  const ScratchFolder scratch;
  const std::string mine = scratch.write("mine.yaml", "nodes: 2\nserver: {}\n").string();
  const Result result = check({mine, kConfigs + "clusters/rtx4090-pcie.yaml"});
  REQUIRE(result.status == 1);
  REQUIRE(result.text == mine +
                             ":1:1: error: config: missing key \"name\"\n"
                             "2 files checked: 1 error, 0 warnings, 0 notes\n");
}

TEST_CASE("a file of another kind is an error, one that cannot be read ends the run") {
  const ScratchFolder scratch;
  const std::string other = scratch.write("other.yaml", "a: 1\n").string();
  const Result result = check({other});
  REQUIRE(result.status == 1);
  REQUIRE(result.text.find(other + ": error: config: expected a cluster ") == 0);
  REQUIRE(error_of({scratch.path().string() + "/none.yaml"}) ==
          scratch.path().string() + "/none.yaml: cannot be read");
  REQUIRE(error_of({scratch.path().string() + "/"}) ==
          scratch.path().string() + "/: expected a file, found a directory");
}

TEST_CASE("a pair that cannot be reached is an error") {
  const std::string file = kConfigs + "clusters/h100-1gpu-400g.yaml";
  const Result result = check({file, "--pull", "server4/nic0,leaf0"});
  REQUIRE(result.status == 1);
  REQUIRE(result.text.find("server0/gpu0 and server4/gpu0 cannot reach each other: server4/gpu0 "
                           "reaches no NIC with a cable\n") != std::string::npos);
}

TEST_CASE("without files check looks at all of configs") {
  const ScratchFolder scratch;
  const ProgramResult result = run_program({"check"}, scratch.path());
  REQUIRE(result.status == 0);
  REQUIRE(result.error.empty());
  REQUIRE(result.output.find("dgx-1.yaml") != std::string::npos);
  REQUIRE(result.output.find(" checked: 0 errors, ") != std::string::npos);
}

}  // namespace trainyard
