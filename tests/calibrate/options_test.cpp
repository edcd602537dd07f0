// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibrate/options.h"

#include <cstdlib>

#include "sim/config_error.h"

namespace trainyard::calibrate {
namespace {

Options parsed(const std::vector<std::string>& arguments) {
  return parse_arguments(arguments);
}

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    (void)parsed(arguments);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("the harness reads its command line") {
  const Options options = parsed({"-o", "a.json", "--resume", "--only=gpu.*,peer.latency", "--only",
                                  "nccl.*", "--repetitions", "50", "--timeout", "7"});
  REQUIRE(options.action == Action::Measure);
  REQUIRE(options.output == "a.json");
  REQUIRE(options.resume);
  REQUIRE(options.only == std::vector<std::string>{"gpu.*", "peer.latency", "nccl.*"});
  REQUIRE(options.repetitions == 50);
  REQUIRE(options.timeout_seconds == 7);
  REQUIRE(parsed({}).repetitions == 30);
  REQUIRE(parsed({"--help"}).action == Action::Help);
  REQUIRE(parsed({"--list"}).action == Action::List);
  REQUIRE(parsed({"--dry-run"}).action == Action::DryRun);
  REQUIRE(parsed({"--check", "a.json"}).action == Action::Check);
}

TEST_CASE("the harness refuses wrong arguments in one line that says what was expected") {
  REQUIRE(refusal({"--fast"}) ==
          "expected an option, found \"--fast\"; see trainyard-calibrate --help");
  REQUIRE(refusal({"all"}) == "expected an option, found \"all\"; see trainyard-calibrate --help");
  REQUIRE(refusal({"--output"}) == "--output: expected a value, found none");
  REQUIRE(refusal({"--output="}) == "--output: expected a value, found none");
  REQUIRE(refusal({"--output", "--resume"}) == "--output: expected a value, found none");
  REQUIRE(refusal({"--resume=yes"}) == "--resume: expected no value, found \"yes\"");
  REQUIRE(refusal({"--repetitions", "29"}) ==
          "--repetitions: expected a whole number from 30 to 100000, found \"29\"");
  REQUIRE(refusal({"--timeout", "1.5"}) ==
          "--timeout: expected a whole number from 1 to 86400, found \"1.5\"");
  REQUIRE(refusal({"--rank", "4", "--ranks", "4"}) ==
          "--rank: expected less than --ranks 4, found 4");
  REQUIRE(refusal({"--ranks", "2"}) ==
          "--rendezvous: expected a folder that all 2 ranks see, found none");
}

TEST_CASE("a launcher's variables count only with a folder to meet in") {
  REQUIRE(::setenv("SLURM_PROCID", "3", 1) == 0);
  REQUIRE(::setenv("SLURM_NTASKS", "8", 1) == 0);
  REQUIRE(parsed({}).ranks == 1);
  REQUIRE(parsed({"--rendezvous", "meet"}).ranks == 8);
  REQUIRE(parsed({"--rendezvous", "meet"}).rank == 3);
  REQUIRE(parsed({"--rendezvous", "meet", "--rank", "1", "--ranks", "2"}).rank == 1);
  REQUIRE(::setenv("SLURM_NTASKS", "many", 1) == 0);
  REQUIRE(refusal({"--rendezvous", "meet"}) ==
          "SLURM_NTASKS: expected a whole number from 1 to 1048576, found \"many\"");
  REQUIRE(::unsetenv("SLURM_PROCID") == 0);
  REQUIRE(::unsetenv("SLURM_NTASKS") == 0);
}

TEST_CASE("a child of the harness is told all that it needs") {
  const Options options = parsed({"--repetitions", "40", "--warmup", "3", "--nccl", "n.so",
                                  "--rendezvous", "meet", "--rank", "1", "--ranks", "2"});
  const Options child = parsed(child_arguments(options, "gpu.launch", "17"));
  REQUIRE(child.action == Action::Child);
  REQUIRE(child.child == "gpu.launch");
  REQUIRE(child.token == "17");
  REQUIRE(child.repetitions == 40);
  REQUIRE(child.warmup == 3);
  REQUIRE(child.nccl == "n.so");
  REQUIRE(child.rendezvous == "meet");
  REQUIRE(child.rank == 1);
  REQUIRE(child.ranks == 2);
}

TEST_CASE("a pattern's star represents any text") {
  REQUIRE(matches("gpu.*", "gpu.memory"));
  REQUIRE(matches("*", ""));
  REQUIRE(matches("*.c1", "nccl.hosts.Ring.LL.c1"));
  REQUIRE_FALSE(matches("*.c1", "nccl.hosts.Ring.LL.c16"));
  REQUIRE_FALSE(matches("gpu", "gpu.memory"));
  REQUIRE_FALSE(matches("", "gpu.memory"));
  REQUIRE(is_selected(parsed({}), "gpu.memory"));
  REQUIRE_FALSE(is_selected(parsed({"--only", "peer.*"}), "gpu.memory"));
}

}  // namespace
}  // namespace trainyard::calibrate
