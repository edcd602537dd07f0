// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <string>
#include <vector>

#include "support/imported.h"
#include "topology/exchange/simulated_network.h"

namespace trainyard {
namespace {

using Cable = SimulatedNetwork::Cable;

// Four hosts on two leaves of two spines.
const std::string kOldTopology =
    "8 4 8\n"
    "4 5 6 7\n"
    "0 4 100Gbps 1000ns 0.000000\n"
    "1 4 100Gbps 1000ns 0.000000\n"
    "2 5 100Gbps 0.001ms 0\n"
    "5 3 100000000000 1us 0\n"
    "4 6 400Gbps 2us 0\n"
    "4 7 400Gbps 2us 0\n"
    "5 6 400Gbps 2us 0\n"
    "5 7 400Gbps 2us 0\n";

// Two servers of two GPUs, each with an NVSwitch, and a leaf for each rail.
const std::string kServers =
    "8 2 2 2 8 A100\n"
    "4 5 6 7 \n"
    "0 4 2400Gbps 0.000025ms 0\n"
    "0 6 100Gbps 0.0005ms 0\n"
    "1 4 2400Gbps 0.000025ms 0\n"
    "1 7 100Gbps 0.0005ms 0\n"
    "2 5 2400Gbps 0.000025ms 0\n"
    "2 6 100Gbps 0.0005ms 0\n"
    "3 5 2400Gbps 0.000025ms 0\n"
    "3 7 100Gbps 0.0005ms 0\n";

std::string error_of_topology(const std::string& text) {
  return complaint([&] { return read_hpcc_topology(text, "t.txt"); });
}

}  // namespace

TEST_CASE("a topology of HPCC is hosts, switches and links with rate and delay") {
  REQUIRE(looks_like_hpcc_topology(kOldTopology));
  const SimulatedNetwork network = read_hpcc_topology(kOldTopology, "t.txt");
  REQUIRE(network.hosts == 4);
  REQUIRE(network.switch_delays == std::vector<SimTime>(4));
  REQUIRE(network.gpus_per_server == 1);
  REQUIRE(network.gpu_type.empty());
  REQUIRE(network.cables.size() == 8);
  const Bandwidth slow = parse_bandwidth("100 Gb/s");
  REQUIRE(network.cables[2] == Cable{2, 5, slow, microseconds(1)});
  REQUIRE(network.cables[3] == Cable{5, 3, slow, microseconds(1)});
  REQUIRE(network.cables[7] == Cable{5, 7, parse_bandwidth("400 Gb/s"), microseconds(2)});
  REQUIRE(network.remarks.empty());
}

TEST_CASE("hosts count without the switches, wherever these stand") {
  const SimulatedNetwork network =
      read_hpcc_topology("3 1 2\n1\n0 1 25Mbps 1us 0\n2 1 8Kbps 1us 0.1\n7 8 x\n", "t.txt");
  REQUIRE(network.hosts == 2);
  REQUIRE(network.cables[0] == Cable{0, 2, parse_bandwidth("25 Mb/s"), microseconds(1)});
  REQUIRE(network.cables[1] == Cable{1, 2, parse_bandwidth("8 kb/s"), microseconds(1)});
  // Hosts that moved, a link that loses packets, and links behind the last one announced.
  REQUIRE(network.remarks.size() == 3);
}

TEST_CASE("a topology of SimAI has servers with NVSwitches") {
  REQUIRE(looks_like_hpcc_topology(kServers));
  const SimulatedNetwork network = read_hpcc_topology(kServers, "t.txt");
  REQUIRE(network.hosts == 4);
  REQUIRE(network.gpus_per_server == 2);
  REQUIRE(network.gpu_type == "A100");
  REQUIRE(network.nvlink == parse_bandwidth("2400 Gb/s"));
  REQUIRE(network.switch_delays.size() == 2);
  REQUIRE(network.cables.size() == 4);
  REQUIRE(network.cables[3] == Cable{3, 5, parse_bandwidth("100 Gb/s"), nanoseconds(500)});
}

TEST_CASE("other files of numbers are no topologies of ns-3") {
  REQUIRE(!looks_like_hpcc_topology("2\n0 1 3 100 1000 2.0\n"));
  REQUIRE(!looks_like_hpcc_topology("Nodes 8\nTiers 3\n"));
  REQUIRE(!looks_like_hpcc_topology("8 4\n"));
  REQUIRE(!looks_like_hpcc_topology(""));
}

TEST_CASE("mistakes in a topology of ns-3 are one line with their place") {
  REQUIRE(error_of_topology("4 5 1\n") ==
          "t.txt:1: switches: expected a whole number from 0 to 4, found \"5\"");
  REQUIRE(error_of_topology("4 1 1\n\n4\n") ==
          "t.txt:3: switch: expected a whole number from 0 to 3, found \"4\"");
  REQUIRE(error_of_topology("4 2 1\n3 3\n") == "t.txt:2: switch: expected each node once, found 3");
  REQUIRE(error_of_topology("1 1 0\n0\n") ==
          "t.txt:2: nodes: expected hosts, 1 for each server, found 0");
  REQUIRE(error_of_topology("2 1 1\n1\n0 0 1Gbps 1us 0\n") ==
          "t.txt:3: link: expected two nodes, found 0 twice");
  REQUIRE(error_of_topology("2 1 1\n1\n0 1 fast 1us 0\n") ==
          "t.txt:3: rate: expected a rate such as 100Gbps, above zero, found \"fast\"");
  REQUIRE(error_of_topology("2 1 1\n1\n0 1 1Gbps 1 0\n") ==
          "t.txt:3: delay: expected a delay such as 1000ns, found \"1\"");
  REQUIRE(error_of_topology("2 1 1\n1\n0 1 1Gbps 1us -1\n") ==
          "t.txt:3: error rate: expected a share from 0 to 1, found \"-1\"");
  REQUIRE(
      error_of_topology("2 1 2\n1\n0 1 1Gbps 1us 0\n") ==
      "t.txt:4: node of a link: expected a whole number from 0 to 1, found the end of the file");
  REQUIRE(error_of_topology(with(kServers, "2 5 2400", "2 4 2400")) ==
          "t.txt:7: link of an NVSwitch: expected GPUs of one server of 2, found the GPU 2");
  REQUIRE(
      error_of_topology(with(kServers, "3 5 2400", "3 5 1200"))
          .find("links of NVSwitches: expected 2.4Tb/s for each GPU, as the first one has, found "
                "1.2Tb/s for the GPU 3") != std::string::npos);
}

}  // namespace trainyard
