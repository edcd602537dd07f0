// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/packet_options.h"

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/fabrics.h"
#include "support/paths.h"

namespace trainyard {
namespace {

PacketRequest read_options(std::vector<std::string> arguments,
                           const std::string& fidelity = "packet") {
  arguments.insert(arguments.end(), {"--fidelity", fidelity});
  return read_packet_options(parse_options(traffic_command(), arguments));
}

}  // namespace

TEST_CASE("packets are those of RoCE unless options say otherwise", "[cli]") {
  REQUIRE(describe(read_options({})) ==
          "congestion control dcqcn-nic, ECN hpcc, PFC on, path MTU 4096");
  REQUIRE(describe(read_options(
              {"--control", "none", "--ecn", "off", "--pfc", "off", "--mtu", "1024"})) ==
          "congestion control none, ECN off, PFC off, path MTU 1024");
  REQUIRE(describe(read_options({"--control", "dcqcn-paper", "--ecn", "dcqcn"})) ==
          "congestion control dcqcn-paper, ECN dcqcn, PFC on, path MTU 4096");
  REQUIRE(read_options({"--ecn", "sonic"}).options.ecn == EcnPreset::Sonic);
  REQUIRE(read_options({"--control", "none"}).options.ecn == EcnPreset::Off);
}

TEST_CASE("fast-forward is off unless it is asked for, and goes with what it can repeat", "[cli]") {
  REQUIRE(read_options({}).options.fast_forward == FastForward::Off);
  const PacketRequest exact = read_options({"--fast-forward", "exact"});
  REQUIRE(exact.options.fast_forward == FastForward::Exact);
  REQUIRE(describe(exact) ==
          "congestion control dcqcn-nic, ECN hpcc, PFC on, path MTU 4096, fast-forward exact");
  REQUIRE(read_options({"--fast-forward", "bounded"}).options.fast_forward == FastForward::Bounded);
  const PacketRequest refused = read_options({"--fast-forward", "exact", "--control", "swift"});
  REQUIRE_THROWS_AS(check_options(refused.options), ConfigError);
  PacketStats stats;
  stats.hops = 8;
  stats.skipped_hops = 6;
  REQUIRE(describe(stats).starts_with("8 hops (75.00 % of them skipped), 0 marked"));
  stats.skip_error = 0.0042;
  REQUIRE(describe(stats).starts_with(
      "8 hops (75.00 % of them skipped, at rates that are off by at most 0.42 %), 0 marked"));
}

TEST_CASE("a transport gives all that the other options do not", "[cli]") {
  const PacketRequest shipped = read_options({"--transport", "default"});
  REQUIRE(describe(shipped) ==
          "transport default, congestion control dcqcn-nic, ECN hpcc, PFC on, path MTU 4096, "
          "retransmission go-back-n");
  REQUIRE(shipped.options.buffer == Bytes(32'000'000));
  const PacketRequest other =
      read_options({"--transport", "default", "--ecn", "off", "--pfc", "off", "--mtu", "1024"});
  REQUIRE(describe(other) ==
          "transport default, congestion control dcqcn-nic, ECN off, PFC off, path MTU 1024, "
          "retransmission go-back-n");
  REQUIRE(other.options.buffer == Bytes(32'000'000));
  REQUIRE_THROWS_MATCHES(
      read_options({"--transport", "defaut"}), ConfigError,
      Catch::Matchers::Message("expected a file or one of the transport "
                               "adaptive, classes, credits, default, ecn, flowlets, tcp, trimming, "
                               "found \"defaut\"; did you mean "
                               "\"default\"?"));
}

TEST_CASE("TCP is a transport, which goes without what only RDMA has", "[cli]") {
  REQUIRE(describe(read_options({"--transport", "tcp", "--control", "dctcp"})) ==
          "transport tcp, congestion control dctcp, ECN dctcp, PFC off, path MTU 1448, "
          "retransmission tcp");
  const auto refuses = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"--transport", "tcp"};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE_THROWS_AS(check_options(read_options(words).options), ConfigError);
  };
  refuses({"--pfc", "on"});
  refuses({"--credits", "128K"});
  refuses({"--server-credits", "64K"});
  refuses({"--retransmission", "selective"});
  refuses({"--control", "dcqcn-nic"});
  refuses({"--control", "hpcc"});
  refuses({"--control", "receiver-credit"});
  refuses({"--fast-forward", "exact"});
}

TEST_CASE("credits are those of InfiniBand, without what RoCE needs unless it is asked for",
          "[cli]") {
  REQUIRE(describe(read_options({"--credits", "128K"})) ==
          "congestion control none, ECN off, PFC off, path MTU 4096, credits for 128KiB a link");
  REQUIRE(read_options({"--credits", "128K"}).options.framing == RdmaLink::InfiniBand);
  REQUIRE(read_options({}).options.framing == RdmaLink::RoceV2);
  const PacketRequest both =
      read_options({"--credits", "64K", "--control", "dcqcn-nic", "--ecn", "hpcc"});
  REQUIRE(both.options.ecn == EcnPreset::Hpcc);
  REQUIRE(describe(read_options({"--server-credits", "64K"})) ==
          "congestion control dcqcn-nic, ECN hpcc, PFC on, path MTU 4096, credits inside servers "
          "for 64KiB beyond a round trip");
}

TEST_CASE("a note says that virtual channels are left out where links can be stopped", "[cli]") {
  RoutingOptions routing;
  const auto notes_with = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> notes;
    add_packet_notes(read_options(arguments), routing, notes);
    return notes;
  };
  REQUIRE(notes_with({}).size() == 1);
  routing.fabric.virtual_channels = 2;
  REQUIRE(notes_with({}).at(1).starts_with(
      "packets: the 2 virtual channels of the fabric did not influence the result"));
  REQUIRE(notes_with({"--credits", "8K"}).size() == 2);
  REQUIRE(notes_with({"--pfc", "off"}).size() == 1);
}

TEST_CASE("with classes of data credits are for a link and class", "[cli]") {
  const PacketRequest request = read_options({"--transport", "classes", "--credits", "128K"});
  REQUIRE(request.options.lanes);
  REQUIRE(!request.options.pfc);
  REQUIRE(describe(request).find("credits for 128KiB a link and class") != std::string::npos);
}

TEST_CASE("what is written to files is observed, and nothing else", "[cli]") {
  REQUIRE(!read_options({}).has_files());
  REQUIRE(!read_options({}).options.queue_times);
  REQUIRE(read_options({"--counters", "c.csv"}).options.queue_times);
  const PacketRequest samples = read_options({"--samples", "s.csv", "--sample-every", "2.5us"});
  REQUIRE(samples.has_files());
  REQUIRE(samples.options.sample_every == nanoseconds(2500));
  REQUIRE(!samples.options.queue_times);
}

TEST_CASE("controls are those of the configs folder, or files", "[cli]") {
  REQUIRE(describe(read_options({"--control", "hpcc"})) ==
          "congestion control hpcc, ECN off, PFC on, path MTU 4096");
  REQUIRE(describe(read_options({"--control", "dctcp"})) ==
          "congestion control dctcp, ECN dctcp, PFC on, path MTU 4096");
  REQUIRE(describe(read_options({"--control", "dcqcn-simai", "--ecn", "sonic"})) ==
          "congestion control dcqcn-simai, ECN sonic, PFC on, path MTU 4096");
  const std::string file = source_dir().string() + "/configs/transport/control/swift.yaml";
  REQUIRE(describe(read_options({"--control", file})) ==
          "congestion control swift, ECN off, PFC on, path MTU 4096");
}

TEST_CASE("losses and what is done about them are named", "[cli]") {
  const PacketRequest request =
      read_options({"--pfc", "off", "--retransmission", "selective", "--bit-errors", "1e-9"});
  REQUIRE(request.options.retransmission == Retransmission::SelectiveRepeat);
  REQUIRE(request.options.bit_error_rate == 1e-9);
  REQUIRE(describe(request) ==
          "congestion control dcqcn-nic, ECN hpcc, PFC off, path MTU 4096, retransmission "
          "selective, bit error rate 1e-09");
  const PacketRequest lossy = read_options({"--retransmission", "selective", "--loss", "0.01"});
  REQUIRE(lossy.options.loss == 0.01);
  REQUIRE(describe(lossy) ==
          "congestion control dcqcn-nic, ECN hpcc, PFC on, path MTU 4096, retransmission "
          "selective, loss 0.01");
  REQUIRE(read_options({"--retransmission", "none"}).options.retransmission ==
          Retransmission::None);
  for (const std::string rate : {"", "1", "-1e-9", "nan", "1e-9x", "often"}) {
    REQUIRE_THROWS_AS(read_options({"--bit-errors", rate}), ConfigError);
    REQUIRE_THROWS_AS(read_options({"--loss", rate}), ConfigError);
  }
  PacketStats stats;
  stats.drops = 7;
  stats.bit_errors = 2;
  stats.link_down = 5;
  stats.retransmitted = 9;
  stats.timeouts = 1;
  REQUIRE(describe(stats).find("7 dropped (2 by bit errors, 5 on failed links), 9 sent again, 1 "
                               "timeouts, at most") != std::string::npos);
}

TEST_CASE("cables that fail are found by their nodes", "[cli]") {
  const TestFabric fabric = one_switch(2, fabric_link(gigabits_per_second(100), microseconds(1)));
  PacketRequest request;
  request.failures = {"host 0,switch@100us", "host 1@2ms"};
  find_failures(request, fabric.topology);
  REQUIRE(request.options.failures.size() == 4);
  REQUIRE(request.options.failures[0].link == LinkId(0));
  REQUIRE(request.options.failures[0].time == microseconds(100));
  REQUIRE(request.options.failures[3].link == LinkId(3));
  REQUIRE(request.options.failures[3].time == milliseconds(2));
  const auto require_refused = [&](const std::string& failure, const std::string& message) {
    request.failures = {failure};
    REQUIRE_THROWS_MATCHES(find_failures(request, fabric.topology), ConfigError,
                           Catch::Matchers::Message(message));
  };
  require_refused("switch",
                  "--fail: expected nodes and a time such as leaf0,spine1@100us, found \"switch\"");
  require_refused(
      "switch@soon",
      "--fail: expected nodes and a time such as leaf0,spine1@100us, found \"switch@soon\"");
  require_refused("host 0,host 1@1us",
                  "--fail host 0,host 1@1us: no link joins host 0 and host 1; host 0 is joined to "
                  "switch");
}

TEST_CASE("options of packets are refused where there are none, and where they say nothing",
          "[cli]") {
  const auto require_refused = [](const std::vector<std::string>& arguments,
                                  const std::string& fidelity, const std::string& message) {
    REQUIRE_THROWS_MATCHES(read_options(arguments, fidelity), ConfigError,
                           Catch::Matchers::Message(message));
  };
  require_refused({"--pfc", "on"}, "flow",
                  "--pfc: expected --fidelity packet or mixed beside it, found flow");
  require_refused({"--samples", "s.csv"}, "packet",
                  "--samples: expected --sample-every TIME beside it, found none");
  require_refused({"--sample-every", "1us"}, "packet",
                  "--sample-every: expected --samples FILE beside it, found none");
  for (const std::string every : {"0us", "10", "often"}) {
    require_refused(
        {"--samples", "s.csv", "--sample-every", every}, "packet",
        "--sample-every: expected a time above zero, such as 10us, found \"" + every + "\"");
  }
  require_refused({"--counters", "c.csv"}, "analytical",
                  "--counters: expected --fidelity packet or mixed beside it, found analytical");
  require_refused(
      {"--credits", "0"}, "packet",
      "--credits: expected a size from 1 to 4096G, such as 8, 64K, 1G or 25MiB, found \"0\"");
  require_refused(
      {"--credits", "64K", "--control", "dcqcn-nic"}, "packet",
      "--control: expected --ecn NAME beside it and --credits, without which nothing is "
      "marked for dcqcn-nic, found none");
  require_refused({"--mtu", "1500"}, "packet",
                  "--mtu: expected 4096, 2048, 1024, 512 or 256, found \"1500\"");
  require_refused(
      {"--control", "dcqn-nic"}, "packet",
      "--control: expected a file, bbr, cubic, dcqcn-hpcc, dcqcn-nic, dcqcn-paper, dcqcn-simai, "
      "dctcp, hpcc, none, nscc, receiver-credit, reno, swift or timely, found \"dcqn-nic\"; did "
      "you "
      "mean \"dcqcn-nic\"?");
  require_refused({"--control", "swift", "--ecn", "hpcc"}, "packet",
                  "--ecn: expected a control that looks at marks beside it, found swift");
}

}  // namespace trainyard
