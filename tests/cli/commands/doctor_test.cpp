// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kRoot = source_dir().string();
const std::string kA100 = kRoot + "/configs/clusters/dgx-a100.yaml";
const std::string kCards = kRoot + "/configs/clusters/rtx4090-pcie.yaml";

// What such a machine would print; it names ranks and nodes as well.
std::string simulated_log(const std::string& cluster, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"all_reduce", "--runtime", "nccl", "--cluster", cluster,
                                     "-b",         "1K",        "-e",   "256M"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ostringstream out;
  REQUIRE(run_command(collective_command(), arguments, out) == 0);
  return out.str();
}

struct Answer {
  int status = -1;
  std::string text;  // Or the error.
};

Answer doctor(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    const int status = run_command(doctor_command(), arguments, out);
    return {.status = status, .text = out.str()};
  } catch (const ConfigError& error) {
    return {.status = 2, .text = error.what()};
  }
}

}  // namespace

TEST_CASE("a doctor calls a healthy log normal and names what was planted") {
  const ScratchFolder folder;
  const std::string well = folder.write("well.log", simulated_log(kCards, {})).string();
  const Answer healthy = doctor({well, "--cluster", kCards});
  REQUIRE(healthy.status == 0);
  REQUIRE(healthy.text.find("\n# Normal: healthy with ") != std::string::npos);

  const std::string ill =
      folder
          .write("ill.log", simulated_log(kCards, {"--env", "NCCL_P2P_DISABLE=1", "--set",
                                                   "server.peer_access=none"}))
          .string();
  const Answer answer = doctor({ill, "--cluster", kCards, "--format", "json", "--threads", "1"});
  REQUIRE(answer.status == 1);
  const auto json = nlohmann::json::parse(answer.text);
  REQUIRE(json["normal"] == false);
  REQUIRE(json["explanations"][0]["faults"][0] == "p2p-off");
  REQUIRE(json["rows"].size() == 19);
  // With what was wrong said of the run it is normal.
  const Answer told = doctor({ill, "--cluster", kCards, "--env", "NCCL_P2P_DISABLE=1", "--set",
                              "server.peer_access=none"});
  REQUIRE(told.status == 0);
  REQUIRE(told.text.find("p2p-off (the machine or the run has it off)") != std::string::npos);
  // Any number of threads gives the same.
  REQUIRE(doctor({ill, "--cluster", kCards, "--format", "json", "--threads", "3"}).text ==
          answer.text);
}

TEST_CASE("a doctor calls no log normal in which results are wrong", "[long]") {
  const std::string text = read_text_file(kRoot + "/tests/calibration/data/all_reduce-1x8.log");
  const ScratchFolder folder;
  const std::string well = folder.write("well.log", text).string();
  REQUIRE(doctor({well, "--cluster", kA100}).status == 0);
  std::string wrong = text;
  const std::size_t row = wrong.find("    16777216 ");
  const std::size_t count = wrong.find("      0 ", row);
  REQUIRE(count < wrong.find('\n', row));
  wrong.replace(count, 8, "     17 ");
  const std::string ill = folder.write("ill.log", wrong).string();
  const Answer answer = doctor({ill, "--cluster", kA100});
  REQUIRE(answer.status == 1);
  const auto line = std::count(wrong.begin(), wrong.begin() + static_cast<long>(row), '\n') + 1;
  REQUIRE(answer.text.find("\n# Wrong results, data is corrupted: " + ill + ":" +
                           std::to_string(line) + ": #wrong is 17 at 16777216 B\n") !=
          std::string::npos);
  REQUIRE(answer.text.find("\n# Not normal: the machine gives wrong results. ") !=
          std::string::npos);
  // What the log says of its processes is no choice.
  REQUIRE(doctor({well, "--cluster", kA100, "--gpus-per-process", "8"}).status == 0);
  REQUIRE(doctor({well, "--cluster", kA100, "--gpus-per-process", "4"}).text ==
          "--gpus-per-process: expected 8, as in " + well + ", found \"4\"");
  REQUIRE(doctor({well, "--cluster", kA100, "--gpus-per-process", "3"}).text ==
          "--gpus-per-process: expected a number that divides the 8 GPUs of a node, found \"3\"");
}

TEST_CASE("a machine from NCCL's topology file is as good as a cluster") {
  const ScratchFolder folder;
  const std::string log =
      folder.write("a.log", simulated_log(kA100, {"--nodes", "1", "-f", "16"})).string();
  const Answer answer = doctor({log, "--topo-file", kRoot + "/tests/golden/dgx-a100.xml"});
  INFO(answer.text);
  REQUIRE(answer.status == 0);
  const std::string two =
      folder.write("b.log", simulated_log(kA100, {"--nodes", "2", "-f", "16"})).string();
  REQUIRE(doctor({two, "--topo-file", kRoot + "/tests/golden/dgx-a100.xml"})
              .text.starts_with("--topo-file: expected a log of one node, found 2: "));
}

TEST_CASE("a validation case is a log that says how it was made") {
  const std::string folder = kRoot + "/validation/cases/nccl/";
  const Answer answer = doctor({"--case", folder + "h100-1x8-nvswitch-alltoall.yaml"});
  REQUIRE(answer.status != 2);
  REQUIRE(doctor({"--case", folder + "h100-1x8-nvswitch-alltoall.yaml", "--nodes", "2"}).text ==
          "--case: expected without --nodes, found both");
}

TEST_CASE("mistakes on the command line of a doctor, and damaged logs, are one line") {
  const ScratchFolder folder;
  const std::string text = simulated_log(kA100, {"--nodes", "2", "-f", "64"});
  const std::string log = folder.write("a.log", text).string();
  const auto error = [&](const std::vector<std::string>& arguments) {
    const Answer answer = doctor(arguments);
    REQUIRE(answer.status == 2);
    REQUIRE(answer.text.find('\n') == std::string::npos);
    return answer.text;
  };
  REQUIRE(error({}).starts_with("doctor: expected a log to read, found none"));
  REQUIRE(error({log}).starts_with("doctor: expected --cluster NAME|FILE or --topo-file FILE"));
  REQUIRE(error({log, "--cluster", kA100, "--nodes", "4"}) ==
          "--nodes: expected 2, as in " + log + ", found \"4\"");
  REQUIRE(error({log, "--cluster", kA100, "--op", "all_gather"})
              .starts_with("--op: expected all_reduce, as in "));
  REQUIRE(error({log, "--cluster", kA100, "--op", "sum"}).starts_with("--op: expected one of "));
  REQUIRE(error({log, "--cluster", kCards}).find("cannot reach each other") != std::string::npos);
  REQUIRE(error({folder.path().string() + "/none.log", "--cluster", kA100}).find("none.log") !=
          std::string::npos);
  // Cut within a row.
  const std::string torn =
      folder.write("torn.log", text.substr(0, text.find("\n# Avg") - 20)).string();
  REQUIRE(error({torn, "--cluster", kA100}).starts_with(torn + ":"));
}

}  // namespace trainyard
