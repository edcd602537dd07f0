// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/calibrate.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/collective.h"
#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kLogs = std::string(TRAINYARD_SOURCE_DIR) + "/tests/golden/calibrate/";

std::string run_calibration(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--log-level", "off"});
  std::ostringstream out;
  REQUIRE(run_calibrate(arguments, out) == 0);
  return out.str();
}

std::string calibration_mistake(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_calibrate(arguments, out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("calibrate writes a profile that collective takes, and says what is beyond it") {
  const ScratchFolder folder;
  const std::string profile = (folder.path() / "mine.yaml").string();
  const auto json = nlohmann::json::parse(
      run_calibration({kLogs + "all_reduce.log", kLogs + "alltoall.log", "--cluster", "dgx-h100",
                       "-o", profile, "--format", "json"}));
  REQUIRE(json["tables"].size() == 2);
  std::ostringstream out;
  REQUIRE(run_collective_command(
              std::vector<std::string>{"all_reduce", "--cluster", "dgx-h100", "--nodes", "1",
                                       "--runtime", "nccl", "-b", "512K", "-e", "8G", "--profile",
                                       profile, "--log-level", "off"},
              out) == 0);
  const std::string text = out.str();
  REQUIRE(text.find("hosts in " + profile) != std::string::npos);
  REQUIRE(text.find("beyond what the profile was fitted to (rows of all_reduce from 1KiB to "
                    "1GiB): sizes 2GiB to 8GiB") != std::string::npos);
}

TEST_CASE("calibrate has one line for what it cannot use, and writes nothing then") {
  const ScratchFolder folder;
  const std::string profile = (folder.path() / "mine.yaml").string();
  const std::string junk = folder.write("junk.log", "no table here\n").string();
  REQUIRE(calibration_mistake({"--cluster", "dgx-h100"}) ==
          "calibrate: expected a file of measurements, found none");
  REQUIRE(calibration_mistake({junk, "--cluster", "dgx-h100", "-o", profile})
              .find(junk + ": expected output of nccl-tests") == 0);
  REQUIRE(calibration_mistake({kLogs + "all_reduce.log"})
              .find("calibrate: expected --cluster, found none") == 0);
  REQUIRE(calibration_mistake({kLogs + "all_reduce.log", "--cluster", "dgx-h100", "--widest", "x"})
              .find("--widest: expected a number from 1.01 to 100, found \"x\"") == 0);
  REQUIRE(calibration_mistake({kLogs + "all_reduce.log", "--cluster", "dgx-h100", "--op", "x"})
              .find("--op: expected all_reduce, ") == 0);
  REQUIRE(!std::filesystem::exists(profile));
}

}  // namespace trainyard
