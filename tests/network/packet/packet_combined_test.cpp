// SPDX-License-Identifier: Apache-2.0
// Controls that ACKs drive together with retransmission, and both over paths on which packets
// overtake each other.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/controls.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/traced_run.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kTrunkLink = fabric_link(gigabits_per_second(100), 1_us);

struct CombinedRun {
  std::vector<PacketStart> starts;
  std::vector<std::optional<SimTime>> arrivals;
  PacketStats stats;
  bool is_whole = false;
};

CombinedRun run_combined(const TestFabric& fabric, const Traffic& traffic,
                         const PacketOptions& options, RoutingPolicy policy) {
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = policy, .seed = 7});
  PacketNetwork network(simulator, routing, options);
  CombinedRun run;
  network.engine().trace(&run.starts);
  run.arrivals.resize(traffic.messages.size());
  for (const Woken& event : play_until(simulator, network, fabric, traffic, seconds(100))) {
    REQUIRE(!run.arrivals[event.token]);
    run.arrivals[event.token] = event.time;
  }
  std::sort(run.starts.begin(), run.starts.end());
  run.stats = network.stats().packets;
  run.is_whole =
      std::ranges::all_of(run.arrivals, [](const auto& time) { return time.has_value(); });
  REQUIRE(run.is_whole == !network.complaint());
  REQUIRE((run.is_whole || run.stats.failures > 0));
  REQUIRE(network.engine().next_border() == kNeverTime);
  const PacketControl* const control = network.engine().senders().control();
  for (std::uint32_t id = 0; run.is_whole && id < network.engine().senders().count(); ++id) {
    REQUIRE(control->in_flight(id) == 0);
  }
  return run;
}

// The same with other windows, threads, and all switches worked through exactly.
void require_same(const TestFabric& fabric, const Traffic& traffic, PacketOptions options,
                  RoutingPolicy policy, const CombinedRun& run, RandomStream& random) {
  options.longest_window = SimTime(static_cast<std::int64_t>(5'000 + random.below(200'000)));
  options.always_exact = random.below(2) == 0;
  options.threads = 1 + static_cast<int>(random.below(4));
  options.min_shared = 1;
  const CombinedRun other = run_combined(fabric, traffic, options, policy);
  REQUIRE((other.starts == run.starts));
  REQUIRE((other.arrivals == run.arrivals));
}

PacketOptions combined_options(const char* control, RandomStream& random) {
  PacketOptions options = controlled_packets(control);
  options.ecn = EcnPreset::Dctcp;
  options.mtu = Bytes(std::int64_t{1024} << random.below(3));
  options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
  options.forwarding = random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
  options.retry.timeout = 300_us;
  options.seed = random.next();
  return options;
}

constexpr std::array kControls{"dctcp",       "swift",           "hpcc", "timely", "none",
                               "dcqcn-simai", "receiver-credit", "nscc"};

TEST_CASE("where nothing is lost, retransmission changes nothing under any control", "[combined]") {
  for (const char* const name : kControls) {
    for (std::uint64_t seed = 0; seed < cases(12); ++seed) {
      INFO(name << " seed=" << seed);
      RandomStream random(seed, "combined lossless");
      const TestFabric fabric = random_fabric(random);
      const Traffic traffic = traffic_between_hosts(fabric, random, 8);
      PacketOptions options = combined_options(name, random);
      options.packets_per_ack = 1;  // Where the control does not say itself how many.
      const CombinedRun alone = run_combined(fabric, traffic, options, RoutingPolicy::EcmpHash);
      options.retry.timeout = seconds(1);
      options.selective.short_timeout = seconds(1);
      options.selective.long_timeout = seconds(1);
      options.selective.window = 100'000;
      options.retransmission = Retransmission::GoBackN;
      const CombinedRun back = run_combined(fabric, traffic, options, RoutingPolicy::EcmpHash);
      REQUIRE((back.starts == alone.starts));
      REQUIRE((back.arrivals == alone.arrivals));
      REQUIRE(back.stats.retransmitted == 0);
      if (options.profile->rules.index() != 0 && std::string(name) != "timely" &&
          std::string(name) != "receiver-credit") {  // Which answer each packet without it, too.
        options.retransmission = Retransmission::SelectiveRepeat;
        const CombinedRun repeat = run_combined(fabric, traffic, options, RoutingPolicy::EcmpHash);
        REQUIRE((repeat.arrivals == alone.arrivals));
        REQUIRE(repeat.stats.retransmitted == 0);
      }
    }
  }
}

TEST_CASE("under every control what is lost is sent again, or the run says who gave up",
          "[combined]") {
  std::uint64_t drops = 0;
  std::uint64_t resent = 0;
  std::uint64_t whole = 0;
  for (const char* const name : kControls) {
    for (std::uint64_t seed = 0; seed < cases(10); ++seed) {
      INFO(name << " seed=" << seed);
      RandomStream random(seed, "combined losses");
      const TestFabric fabric = random_fabric(random);
      const Traffic traffic = traffic_between_hosts(fabric, random, 8);
      PacketOptions options = combined_options(name, random);
      options.retransmission =
          random.below(2) == 0 ? Retransmission::GoBackN : Retransmission::SelectiveRepeat;
      if (random.below(2) == 0) {
        options.buffer = Bytes(static_cast<std::int64_t>(20'000 + random.below(60'000)));
      }
      if (random.below(2) == 0) {
        options.bit_error_rate = random.below(2) == 0 ? 3e-7 : 3e-6;
      }
      if (random.below(4) == 0) {
        const auto link = static_cast<std::uint32_t>(random.below(fabric.topology.link_count()));
        options.failures.push_back(
            {.link = LinkId(link),
             .time = SimTime(static_cast<std::int64_t>(random.below(200'000'000)))});
      }
      const CombinedRun run = run_combined(fabric, traffic, options, RoutingPolicy::EcmpHash);
      require_same(fabric, traffic, options, RoutingPolicy::EcmpHash, run, random);
      drops += run.stats.drops;
      resent += run.stats.retransmitted;
      whole += run.is_whole ? 1 : 0;
    }
  }
  REQUIRE(drops > cases(500));
  REQUIRE(resent > cases(500));
  REQUIRE((kIsSanitized || whole > 30));  // Rare: short runs have none.
}

TEST_CASE("new paths after a failure go with every control", "[combined]") {
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 4}, kTrunkLink, kTrunkLink);
  Traffic traffic;
  for (std::uint32_t host = 0; host < 4; ++host) {
    traffic.connections.push_back({.source = host, .target = 4 + host, .flow_label = host});
    traffic.messages.push_back({.connection = host, .time = {}, .size = 2'000'000_B});
  }
  for (const char* const name : kControls) {
    for (std::uint32_t spine = 0; spine < 4; ++spine) {
      INFO(name << " " << spine);
      RandomStream random(spine, "combined routes");
      PacketOptions options = combined_options(name, random);
      options.retransmission =
          spine % 2 == 0 ? Retransmission::GoBackN : Retransmission::SelectiveRepeat;
      options.convergence = 100_us;
      options.failures.push_back({.link = LinkId(2 * spine), .time = 50_us});
      const CombinedRun run = run_combined(fabric, traffic, options, RoutingPolicy::EcmpHash);
      REQUIRE(run.is_whole);
      require_same(fabric, traffic, options, RoutingPolicy::EcmpHash, run, random);
    }
  }
}

TEST_CASE("over paths on which packets overtake every control delivers all, lost or not",
          "[combined]") {
  std::uint64_t reordered = 0;
  std::uint64_t resent = 0;
  for (const char* const name : kControls) {
    for (const RoutingPolicy policy : {RoutingPolicy::Spray, RoutingPolicy::Adaptive}) {
      if (policy == RoutingPolicy::Adaptive && std::string(name) == "hpcc") {
        continue;  // Which must know the links of a path.
      }
      for (std::uint64_t seed = 0; seed < (kIsSanitized ? 2 : 6); ++seed) {
        INFO(name << " seed=" << seed << " " << to_string(policy));
        RandomStream random(seed, "combined spray");
        const LinkSpec host_link = random_link(random);
        const LinkSpec trunk = random_link(random);
        const TestFabric fabric =
            clos({.leaves = 3, .hosts_per_leaf = 2, .spines = 3}, host_link, trunk);
        const Traffic traffic = traffic_between_hosts(fabric, random, 8);
        PacketOptions options = combined_options(name, random);
        if (random.below(2) == 0) {
          options.retransmission = Retransmission::SelectiveRepeat;
          options.bit_error_rate = random.below(2) == 0 ? 0.0 : 1e-6;
          if (random.below(2) == 0) {
            options.buffer = Bytes(static_cast<std::int64_t>(40'000 + random.below(60'000)));
          }
        }
        const CombinedRun run = run_combined(fabric, traffic, options, policy);
        REQUIRE((run.is_whole || options.retransmission != Retransmission::None));
        require_same(fabric, traffic, options, policy, run, random);
        reordered += run.stats.reordered;
        resent += run.stats.retransmitted;
      }
    }
  }
  REQUIRE(reordered > (kIsSanitized ? 200 : 1000));
  REQUIRE((kIsSanitized || resent > 100));  // Rare: short runs have none.
}

TEST_CASE("senders and switches leave out paths that are known to have failed, and so do answers",
          "[combined]") {
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 4}, kTrunkLink, kTrunkLink);
  Traffic traffic;
  for (std::uint32_t host = 0; host < 4; ++host) {
    traffic.connections.push_back({.source = host, .target = 4 + host, .flow_label = host});
    traffic.messages.push_back({.connection = host, .time = {}, .size = 4_MiB});
  }
  // By the second instant two spines of the four are gone; connections that begin before both know.
  for (const char* const name : kControls) {
    for (const RoutingPolicy policy : {RoutingPolicy::Spray, RoutingPolicy::Adaptive}) {
      if (policy == RoutingPolicy::Adaptive && std::string(name) == "hpcc") {
        continue;  // Which must know the links of a path.
      }
      INFO(name << " " << to_string(policy));
      RandomStream random(1, "combined spray routes");
      PacketOptions options = combined_options(name, random);
      options.retransmission = Retransmission::SelectiveRepeat;
      options.failures = {{.link = LinkId(0), .time = 50_us}, {.link = LinkId(2), .time = 150_us}};
      options.convergence = 60_us;
      const CombinedRun run = run_combined(fabric, traffic, options, policy);
      REQUIRE(run.is_whole);
      REQUIRE(run.stats.link_down > 0);
      REQUIRE(run.stats.failures == 0);
      for (const PacketStart& start : run.starts) {
        const bool is_first = start.link == 0 || start.link == 1;
        REQUIRE((!is_first || start.time < (130_us).picoseconds()));  // What was on its way then.
      }
      require_same(fabric, traffic, options, policy, run, random);
    }
  }
}

// Each host of the first leaf sends to its opposite.
CombinedRun run_opposites(const PacketOptions& options, RoutingPolicy policy,
                          std::int64_t packets) {
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 8, .spines = 8}, kTrunkLink, kTrunkLink);
  Traffic traffic;
  for (std::uint32_t host = 0; host < 8; ++host) {
    traffic.connections.push_back({.source = host, .target = 8 + host, .flow_label = host});
    traffic.messages.push_back({.connection = host, .time = {}, .size = Bytes(4096 * packets)});
  }
  return run_combined(fabric, traffic, options, policy);
}

TEST_CASE("selective repeat takes packets that overtake for what they are", "[combined]") {
  constexpr std::int64_t kPackets = 2000;
  const SimTime alone = transfer_time(4178_B, kTrunkLink.bandwidth) * (kPackets + 3) + 4_us;
  for (const RoutingPolicy policy : {RoutingPolicy::Spray, RoutingPolicy::Adaptive}) {
    for (const char* const name : {"swift", "dctcp", "none", "receiver-credit"}) {
      INFO(name << " " << to_string(policy));
      PacketOptions options = controlled_packets(name);
      options.verb = RdmaVerb::Send;
      options.retransmission = Retransmission::SelectiveRepeat;
      const CombinedRun run = run_opposites(options, policy, kPackets);
      REQUIRE(run.is_whole);
      REQUIRE(run.stats.reordered > 0);
      REQUIRE(run.stats.retransmitted == 0);
      const SimTime last = **std::ranges::max_element(run.arrivals);
      REQUIRE(last / alone < 1.15);
      // Of a few that are lost each is sent again, and few others.
      options.bit_error_rate = 1e-8;
      const CombinedRun lossy = run_opposites(options, policy, kPackets);
      REQUIRE(lossy.is_whole);
      REQUIRE(lossy.stats.bit_errors > 0);
      REQUIRE(lossy.stats.retransmitted < 3 * lossy.stats.bit_errors + 200);
    }
  }
}

TEST_CASE("what does not go with packets that overtake is refused", "[combined]") {
  PacketOptions options = controlled_packets("swift");
  options.retransmission = Retransmission::GoBackN;
  REQUIRE_THROWS_WITH(run_opposites(options, RoutingPolicy::Spray, 10),
                      Catch::Contains("expected no go-back-N over sprayed paths"));
  REQUIRE_THROWS_WITH(run_opposites(options, RoutingPolicy::Adaptive, 10),
                      Catch::Contains("expected no go-back-N where switches choose"));
  REQUIRE_THROWS_WITH(run_opposites(controlled_packets("hpcc"), RoutingPolicy::Adaptive, 10),
                      Catch::Contains("does not look at the links of a path"));
}

}  // namespace
}  // namespace trainyard
