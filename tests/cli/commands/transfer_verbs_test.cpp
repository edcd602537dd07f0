// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/commands/transfer_verbs.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "support/transfers.h"

namespace trainyard {
namespace {

std::vector<std::string> with_verb(std::vector<std::string> more) {
  more.insert(more.begin(), "--verb");
  return more;
}

std::string run_verbs(const std::vector<std::string>& more) {
  return printed_between_hosts(with_verb(more));
}

std::string error_verbs(const std::vector<std::string>& more) {
  return refused_between_hosts(with_verb(more));
}

TEST_CASE("verbs have a row for each size, as table, CSV and JSON") {
  const std::string table = run_verbs({"write", "--size", "8..64", "--qps", "4", "--batch", "2"});
  REQUIRE(table.rfind("# Simulated by Trainyard: cluster Azure ND A100 v4, server0/memory0 to "
                      "server1/memory0, write, 1 core with 4 queue pairs, 2 requests a doorbell, "
                      "path MTU 4096\n",
                      0) == 0);
  REQUIRE(run_verbs({"read", "--size", "64", "--format", "csv"})
              .rfind("size_bytes,rate_gb_per_s,messages_million_per_s,latency_us,limit\n64,", 0) ==
          0);
  const auto json = nlohmann::json::parse(run_verbs({"send", "--format", "json"}));
  REQUIRE(json["verb"] == "send");
  REQUIRE(json["rows"].size() == 23);  // 2 B to 8 MiB, as perftest -a.
  REQUIRE(json["rows"][0]["size_bytes"] == 2);
  REQUIRE(json["rows"][0]["limit"] == "doorbell");
  REQUIRE(json["rows"][22]["limit"] == "wire");
  REQUIRE(nlohmann::json::parse(run_verbs({"write", "--size", "8..63", "--inline", "32", "--mtu",
                                           "1024", "--format", "json"}))["rows"]
              .size() == 3);
}

TEST_CASE("what does not go with verbs is refused in one line") {
  REQUIRE(error_verbs({"fetch"}).find("--verb: expected write, read, send, fetch-and-add or "
                                      "compare-and-swap, found \"fetch\"") == 0);
  REQUIRE(
      error_verbs({"write", "--size", "8M..8"}) ==
      "--size: expected a size from 1 to 2G, or the least and the greatest such as 8..8M, found "
      "\"8M..8\"");
  REQUIRE(error_verbs({"write", "--both-ways"}) ==
          "--verb: expected without --both-ways, found both");
  REQUIRE(error_verbs({"write", "--fidelity", "packet"}) ==
          "--verb: expected without --fidelity, found both");
  REQUIRE(error_verbs({"write", "--pfc", "off"}) ==
          "--pfc: expected --fidelity packet beside it, found flow");
  REQUIRE(error_verbs({"write", "--inline", "221"}).find("--inline: expected") == 0);
  REQUIRE(error_verbs({"write", "--qps", "0"}).find("--qps: expected") == 0);
  REQUIRE(error_verbs({"read", "--connection", "uc"}) ==
          "--connection: expected rc with --verb read, found uc");
  REQUIRE(error_verbs({"compare-and-swap", "--connection", "ud"}) ==
          "--connection: expected rc with --verb compare-and-swap, found ud");
  REQUIRE(error_verbs({"write", "--connection", "ud"}) ==
          "--connection: expected rc or uc with --verb write, found ud");
  REQUIRE(error_verbs({"write", "--events"}) ==
          "--events: expected a verb that completes where its data arrive: read, send or an "
          "atomic, found write");
  REQUIRE(error_verbs({"send", "--connection", "ud", "--inline", "189"}) ==
          "--inline: expected at most 188 with --connection ud, found 189");
  REQUIRE(error_verbs({"send", "--connection", "ud", "--size", "8..8K"}) ==
          "--size: expected at most 4096 with --connection ud, found 8192");
  REQUIRE(error_verbs({"fetch-and-add", "--size", "16"}) ==
          "--size: expected 8, which atomics change, with --verb fetch-and-add, found 16");
}

TEST_CASE("a column says what registration takes where that is asked for") {
  REQUIRE(run_verbs({"write", "--size", "1M", "--register", "--format", "csv"})
              .rfind("size_bytes,rate_gb_per_s,messages_million_per_s,latency_us,limit,"
                     "registration_us\n1048576,",
                     0) == 0);
  REQUIRE(nlohmann::json::parse(run_verbs({"read", "--size", "1M", "--register", "--format",
                                           "json"}))["rows"][0]["registration_us"] ==
          Approx(16 + 0.06 * 1048.576));
}

TEST_CASE("atomics have one row, and datagrams rows up to the path MTU") {
  const auto sizes = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--format", "json"});
    std::vector<int> result;
    const auto json = nlohmann::json::parse(run_verbs(arguments));
    for (const auto& row : json["rows"]) {
      result.push_back(row["size_bytes"]);
    }
    return result;
  };
  REQUIRE(sizes({"fetch-and-add"}) == std::vector{8});
  REQUIRE(sizes({"send", "--connection", "ud", "--mtu", "256"}) ==
          std::vector{2, 4, 8, 16, 32, 64, 128, 256});
  REQUIRE(run_verbs({"send", "--connection", "ud", "--events", "--size", "8"})
              .find("memory0, send on ud, 1 core with 1 queue pair, 1 request a doorbell, events, "
                    "path MTU 4096\n") != std::string::npos);
}

}  // namespace
}  // namespace trainyard
