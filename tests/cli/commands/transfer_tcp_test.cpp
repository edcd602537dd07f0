// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/commands/transfer_tcp.h"

#include <nlohmann/json.hpp>

#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/program.h"
#include "support/transfers.h"

namespace trainyard {
namespace {

TEST_CASE("sockets have a row for each size, as table, CSV and JSON") {
  REQUIRE(
      printed_between_hosts({"--tcp", "--size", "8..64", "--sockets", "4", "--cores", "2", "--mtu",
                             "9000", "--tso", "off", "--gro", "off", "--zero-copy", "huge-pages"})
          .rfind("# Simulated by Trainyard: cluster Azure ND A100 v4, server0/memory0 to "
                 "server1/memory0, TCP, 4 sockets and 2 cores at either end, MTU 9000, TSO "
                 "off, GRO off, zero copy huge-pages\n",
                 0) == 0);
  REQUIRE(printed_between_hosts({"--tcp", "--size", "64", "--format", "csv"})
              .rfind("size_bytes,rate_gb_per_s,latency_us,sender_ns_per_byte,"
                     "receiver_ns_per_byte,sender_ns_per_packet,receiver_ns_per_packet,limit\n64,",
                     0) == 0);
  const auto json = nlohmann::json::parse(printed_between_hosts({"--tcp", "--format", "json"}));
  REQUIRE(json["tcp"] == "TCP, 1 socket and 1 core at either end, MTU 1500, TSO on, GRO on");
  REQUIRE(json["rows"].size() == 23);
  REQUIRE(json["rows"][0]["limit"] == "sender core");
  REQUIRE(json["rows"][22]["limit"] == "receiver core");
  const double per_byte = json["rows"][22]["receiver_ns_per_byte"];
  REQUIRE(json["rows"][22]["receiver_ns_per_packet"].get<double>() == Approx(1448 * per_byte));
}

TEST_CASE("what does not go with sockets is refused in one line") {
  REQUIRE(refused_between_hosts({"--tcp", "--verb", "write"}) ==
          "--tcp: expected without --verb, found both");
  REQUIRE(refused_between_hosts({"--tcp", "--fidelity", "packet"}) ==
          "--tcp: expected without --fidelity, found both");
  REQUIRE(refused_between_hosts({"--tcp", "--both-ways"}) ==
          "--tcp: expected without --both-ways, found both");
  REQUIRE(refused_between_hosts({"--tcp", "--qps", "2"}) ==
          "--qps: expected --verb NAME beside it, found none");
  REQUIRE(
      refused_between_hosts({"--tcp", "--pfc", "off"}).find("--pfc: expected --fidelity packet") ==
      0);
  REQUIRE(refused_between_hosts({"--sockets", "2"}) ==
          "--sockets: expected with --tcp, found alone");
  REQUIRE(refused_between_hosts({"--tcp", "--mtu", "575"}).find("--mtu: expected") == 0);
  REQUIRE(refused_between_hosts({"--tcp", "--sockets", "0"}).find("--sockets: expected") == 0);
  REQUIRE(refused_between_hosts({"--tcp", "--zero-copy", "yes"})
              .find("--zero-copy: expected off, on or") == 0);
  std::ostringstream out;
  REQUIRE_THROWS_WITH(
      run_command(transfer_command(),
                  std::vector<std::string>{"--cluster", "azure-nd-a100-v4", "--from",
                                           "server0/memory0", "--to", "server1/gpu0", "--tcp"},
                  out),
      "--tcp: expected --from and --to to be host memories, such as "
      "server0/memory0, found server1/gpu0");
}

}  // namespace
}  // namespace trainyard
