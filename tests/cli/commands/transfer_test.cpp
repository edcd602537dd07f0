// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kRtx4090 = source_dir().string() + "/configs/clusters/rtx4090-pcie.yaml";

std::string run_transfer(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", kRtx4090});
  std::ostringstream out;
  REQUIRE(run_command(transfer_command(), arguments, out) == 0);
  return out.str();
}

nlohmann::json run_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  return nlohmann::json::parse(run_transfer(std::move(arguments)));
}

std::string error_transfer(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", kRtx4090});
  std::ostringstream out;
  try {
    (void)run_command(transfer_command(), arguments, out);
  } catch (const ConfigError& error_transfer) {
    return error_transfer.what();
  }
  return "no error";
}

const std::vector<std::string> kPair = {"--from", "server0/gpu0", "--to", "server0/gpu1"};

std::vector<std::string> pair_and(const std::vector<std::string>& more) {
  std::vector<std::string> all = kPair;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("transfer prints one pair as table, CSV and JSON") {
  const std::string table = run_transfer(kPair);
  REQUIRE(table.rfind("# Simulated by Trainyard: cluster 8x RTX 4090, PCIe gen4, 256MiB each\n",
                      0) == 0);
  REQUIRE(table.find("server0/gpu0  server0/gpu1  direct") != std::string::npos);
  REQUIRE(run_transfer(pair_and({"--format", "csv"}))
              .rfind("from,to,way,rate_gb_per_s,latency_us\nserver0/gpu0,server0/gpu1,direct,",
                     0) == 0);
  const auto json = run_json(kPair);
  REQUIRE(json["size_bytes"] == 268435456);
  REQUIRE(json["rows"].size() == 1);
  REQUIRE(!json.contains("total_gb_per_s"));
}

TEST_CASE("both ways is twice one way where nothing is shared") {
  const double one = run_json(kPair)["rows"][0]["rate_gb_per_s"];
  const double both = run_json(pair_and({"--both-ways"}))["rows"][0]["rate_gb_per_s"];
  REQUIRE(both == Approx(2 * one).epsilon(1e-9));
}

TEST_CASE("a matrix has a row a pair, and all at once has a total") {
  const auto peers = run_json({"--matrix", "p2p", "--size", "64K"});
  REQUIRE(peers["rows"].size() == 56);
  const auto halves = run_json({"--matrix", "p2p", "--size", "64K", "--both-ways"});
  REQUIRE(halves["rows"].size() == 28);
  const auto host = run_json({"--matrix", "h2d", "--all-at-once"});
  REQUIRE(host["rows"].size() == 8);
  const double rate = host["rows"][0]["rate_gb_per_s"];
  REQUIRE(host["total_gb_per_s"].get<double>() == Approx(8 * rate).epsilon(0.001));
  REQUIRE(run_json({"--matrix", "d2h"})["rows"][7]["to"] == "server0/memory1");
}

TEST_CASE("a staged pair says so") {
  REQUIRE(run_json(pair_and({"--set", "server.peer_access=none"}))["rows"][0]["way"] == "staged");
}

TEST_CASE("transfers go over packets, with their options and counters") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "counters.csv").string();
  const std::string table = run_transfer(
      pair_and({"--size", "1M", "--fidelity", "packet", "--mtu", "1024", "--counters", file}));
  REQUIRE(table.find(", fidelity packet; congestion control dcqcn-nic, ECN hpcc, PFC on, path MTU "
                     "1024\n") != std::string::npos);
  REQUIRE(read_text_file(file).find("server0/gpu0,server0/") != std::string::npos);
  REQUIRE(run_json(pair_and({"--fidelity", "packet"}))["fidelity"] == "packet");
}

// Whose own packets are smaller than any path MTU.
TEST_CASE("the path MTU leaves links inside servers as they are") {
  const auto rate = [](const std::string& mtu) -> double {
    return run_json(pair_and(
        {"--size", "16M", "--fidelity", "packet", "--mtu", mtu}))["rows"][0]["rate_gb_per_s"];
  };
  REQUIRE(rate("256") == Approx(rate("4096")).epsilon(1e-3));
}

TEST_CASE("mistakes on the command line of transfer are one line") {
  REQUIRE(error_transfer(pair_and({"--verb", "write"})) ==
          "--verb: expected --from and --to to be host memories, such as server0/memory0, found "
          "server0/gpu0");
  REQUIRE(error_transfer(pair_and({"--batch", "2"})) ==
          "--batch: expected --verb NAME beside it, found none");
  REQUIRE(error_transfer(pair_and({"--mtu", "1024"})) ==
          "--mtu: expected --verb NAME beside it, found none");
  REQUIRE(error_transfer(pair_and({"--mtu", "1024", "--fidelity", "flow"})) ==
          "--mtu: expected --verb, --tcp or --fidelity packet beside it, found flow");
  REQUIRE(error_transfer(pair_and({"--pfc", "off"})) ==
          "--pfc: expected --fidelity packet beside it, found flow");
  REQUIRE(error_transfer({"--matrix", "p2p", "--fidelity", "packet", "--counters", "c.csv"}) ==
          "--counters: expected one run: --all-at-once beside --matrix, found many");
  REQUIRE(error_transfer({}).find("transfer: expected --from, found none") == 0);
  REQUIRE(error_transfer({"--from", "server0/gpu0", "--to", "server0/gqu1"}) ==
          "--to: expected the name of a device, such as server0/gpu0, found \"server0/gqu1\"; did "
          "you mean \"server0/gpu1\"?");
  REQUIRE(error_transfer({"--from", "server0/gpu0", "--to", "server0/gpu0"}) ==
          "--to: expected another device than --from, found \"server0/gpu0\"");
  REQUIRE(error_transfer({"--matrix", "p2p", "--from", "server0/gpu0"}) ==
          "--matrix: expected without --from, found both");
  REQUIRE(error_transfer({"--matrix", "all"})
              .find("--matrix: expected p2p, h2d or d2h, found \"all\"") == 0);
}

}  // namespace
}  // namespace trainyard
