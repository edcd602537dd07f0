// SPDX-License-Identifier: Apache-2.0
// Random fabrics, traffic, parameters and faults together: the packet engine ends, delivers
// everything or says what was lost, is never faster than light, and does the same again bit by bit,
// with other numbers of threads.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "network/packet.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"

namespace trainyard {
namespace {

using namespace literals;

struct LinkFault {
  LinkId link{};  // Of a cable that fails, both ways.
  SimTime time{};
};

// Each part has a stream of random numbers of its own, so that another part leaves the others as
// they are for every seed.
struct Scenario {
  TestFabric fabric;
  Traffic traffic{};
  RoutingOptions routing{};
  PacketOptions packet{};
  std::vector<LinkFault> faults{};  // Not over sprayed paths, nor where switches choose.
};

// Three tiers: hosts below racks, racks below the leaves of their pod, all leaves below all spines.
TestFabric pods(RandomStream& random) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::array<NodeId, 2> spines;
  for (NodeId& spine : spines) {
    spine = add_switch(builder, "spine " + std::to_string(&spine - spines.data()));
  }
  const LinkSpec trunk = random_link(random);
  const LinkSpec host_link = random_link(random);
  const std::uint64_t hosts_per_rack = 1 + random.below(3);
  for (int pod = 0; pod < 2; ++pod) {
    std::array<NodeId, 2> leaves;
    for (NodeId& leaf : leaves) {
      leaf = add_switch(builder, "leaf " + std::to_string(pod));
      for (const NodeId spine : spines) {
        builder.add_duplex_link(leaf, spine, trunk);
      }
    }
    for (int rack = 0; rack < 2; ++rack) {
      const NodeId node = add_switch(builder, "rack " + std::to_string(2 * pod + rack));
      for (const NodeId leaf : leaves) {
        builder.add_duplex_link(node, leaf, trunk);
      }
      for (std::uint64_t host = 0; host < hosts_per_rack; ++host) {
        builder.add_duplex_link(add_host(builder, hosts), node, host_link);
      }
    }
  }
  return {.topology = std::move(builder).build(),
          .hosts = std::move(hosts),
          .switches = {spines.begin(), spines.end()}};
}

// Switches in a circle, where buffers may wait for each other.
TestFabric circle(RandomStream& random) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  std::vector<NodeId> switches;
  const LinkSpec link = random_link(random);
  const std::uint64_t count = 3 + random.below(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    switches.push_back(add_switch(builder, "switch " + std::to_string(i)));
    builder.add_duplex_link(add_host(builder, hosts), switches.back(), link);
    builder.add_duplex_link(add_host(builder, hosts), switches.back(), link);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    builder.add_duplex_link(switches[i], switches[(i + 1) % count], link);
  }
  return {.topology = std::move(builder).build(),
          .hosts = std::move(hosts),
          .switches = std::move(switches)};
}

// Hosts with an adapter of their own behind PCIe.
TestFabric adapters(RandomStream& random) {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const NodeId hub = add_switch(builder, "switch");
  const LinkSpec link = random_link(random);
  LinkSpec inside = random_link(random);
  inside.kind = LinkKind::Pcie;
  const std::uint64_t count = 2 + random.below(5);
  for (std::uint64_t i = 0; i < count; ++i) {
    const NodeId host = add_host(builder, hosts);
    const NodeId nic = builder.add_node({.kind = NodeKind::Nic,
                                         .name = "nic " + std::to_string(i),
                                         .server = builder.node(host).server});
    builder.add_duplex_link(host, nic, inside);
    builder.add_duplex_link(nic, hub, link);
  }
  return {.topology = std::move(builder).build(), .hosts = std::move(hosts), .switches = {hub}};
}

TestFabric fabric_of(std::uint64_t seed) {
  RandomStream random(seed, "fabric");
  switch (random.below(6)) {
    case 0:
      return pods(random);
    case 1:
      return circle(random);
    case 2:
      return adapters(random);
    default:
      return random_fabric(random);
  }
}

enum class Pattern : std::uint8_t { Any, Incast, Shift, All };

// Who sends to whom; hosts to themselves only by `Any`.
std::vector<TestConnection> connections_of(const TestFabric& fabric, Pattern pattern,
                                           RandomStream& random) {
  std::vector<TestConnection> connections;
  const auto hosts = static_cast<std::uint32_t>(fabric.hosts.size());
  const auto by = static_cast<std::uint32_t>(1 + random.below(hosts - 1));
  const auto target = static_cast<std::uint32_t>(random.below(hosts));
  const auto add = [&](std::uint32_t from, std::uint32_t to) {
    const auto label = static_cast<std::uint32_t>(random.below(8));
    connections.push_back({.source = from, .target = to, .flow_label = label});
  };
  for (std::uint32_t from = 0; from < hosts; ++from) {
    if (pattern == Pattern::Shift) {
      add(from, (from + by) % hosts);
    } else if (pattern == Pattern::Incast) {
      for (std::uint64_t i = 0; i < 1 + by % 3 && from != target; ++i) {
        add(from, target);
      }
    } else if (pattern == Pattern::Any) {
      add(from, static_cast<std::uint32_t>(random.below(hosts)));
    } else {
      for (std::uint32_t to = 0; to < hosts; ++to) {
        if (to != from) {
          add(from, to);
        }
      }
    }
  }
  return connections;
}

// Up to 60,000 packets.
Traffic traffic_of_seed(const TestFabric& fabric, Bytes mtu, std::uint64_t seed) {
  RandomStream random(seed, "traffic");
  Traffic traffic;
  const auto pattern = static_cast<Pattern>(random.below(4));
  traffic.connections = connections_of(fabric, pattern, random);
  const std::uint64_t rounds = 1 + random.below(3);
  const std::uint64_t most =
      1 + static_cast<std::uint64_t>(mtu.count()) * (20'000 / traffic.connections.size());
  SimTime time;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool together = random.below(2) == 0;
    const std::uint64_t equal = 1 + random.below(most);
    const bool are_equal = random.below(2) == 0;
    for (std::uint32_t i = 0; i < traffic.connections.size(); ++i) {
      time += together ? SimTime() : SimTime(static_cast<std::int64_t>(random.below(5'000'000)));
      const bool is_empty = random.below(20) == 0;
      const std::uint64_t drawn = 1 + random.below(most);
      const std::uint64_t size = is_empty ? 0 : (are_equal ? equal : drawn);
      traffic.messages.push_back(
          {.connection = i, .time = time, .size = Bytes(static_cast<std::int64_t>(size))});
    }
  }
  return traffic;
}

// Parameters of DCQCN far around those of its profiles.
DcqcnSettings settings_of(CongestionControl control, RandomStream& random) {
  DcqcnSettings settings = dcqcn_settings(control, gigabits_per_second(100));
  settings.least = Bandwidth(static_cast<std::int64_t>(1'000'000 << random.below(10)));
  settings.additive = Bandwidth(static_cast<std::int64_t>(1'000'000 << random.below(10)));
  settings.hyper = settings.additive.scaled(5);
  settings.g = 1.0 / static_cast<double>(std::int64_t{1} << (2 + random.below(10)));
  settings.rate_timer = microseconds(static_cast<std::int64_t>(5 + random.below(500)));
  settings.byte_counter = Bytes(static_cast<std::int64_t>(random.below(3) * 1'000'000));
  settings.threshold = 1 + static_cast<int>(random.below(6));
  settings.clamp_target = random.below(2) == 0;
  return settings;
}

PacketOptions options_of(std::uint64_t seed) {
  RandomStream random(seed, "parameters");
  PacketOptions options;
  options.mtu = Bytes(std::int64_t{256} << random.below(5));
  options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
  options.rates = random.below(2) == 0 ? RateMeaning::Payload : RateMeaning::Line;
  options.forwarding = random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
  options.control = static_cast<CongestionControl>(random.below(3));
  options.ecn = static_cast<EcnPreset>(random.below(4));
  options.pfc = random.below(3) != 0;
  options.buffer = Bytes(static_cast<std::int64_t>(random.below(4)) * 150'000);
  options.alpha_exponent = static_cast<int>(random.below(9)) - 5;
  options.packets_per_ack = static_cast<int>(random.below(3)) * 8;
  options.seed = random.next();
  if (options.control != CongestionControl::None && random.below(2) == 0) {
    options.dcqcn = settings_of(options.control, random);
  }
  return options;
}

// What becomes of loss, and what keeps it away.
void add_recovery(Scenario& scenario, std::uint64_t seed) {
  RandomStream random(seed, "recovery");
  PacketOptions& options = scenario.packet;
  options.lossy_alpha_exponent = static_cast<int>(random.below(6)) - 3;
  options.admission = random.below(4) == 0 ? AdmissionRule::Ns3 : AdmissionRule::Guaranteed;
  options.reserve = Bytes(static_cast<std::int64_t>(random.below(9'000)));
  options.resume_offset = Bytes(static_cast<std::int64_t>(random.below(9'000)));
  const auto retransmission = static_cast<Retransmission>(random.below(3));
  options.retry.timeout = retransmission_timeout(8 + static_cast<int>(random.below(6)));
  const auto room = Bytes(static_cast<std::int64_t>(6'000 + random.below(200'000)));
  if (scenario.routing.policy != RoutingPolicy::Spray) {
    options.retransmission = retransmission;  // Refused where packets overtake each other.
  }
  if (!options.pfc && random.below(2) == 0) {
    options.fabric_credits = room;
    options.buffer = Bytes(0);
  }
  if (random.below(4) == 0) {
    options.server_credits = room;
  }
}

// For what switches choose, where they do. Choices for packets are refused with retransmission.
void add_choices(Scenario& scenario, std::uint64_t seed) {
  if (scenario.routing.policy != RoutingPolicy::Adaptive) {
    return;
  }
  RandomStream random(seed, "choices");
  AdaptiveOptions& adaptive = scenario.packet.adaptive.emplace();
  adaptive.unit = static_cast<AdaptiveOptions::Unit>(random.below(3));
  adaptive.gap = SimTime(static_cast<std::int64_t>(random.below(20'000'000)));
  adaptive.entries = std::uint32_t{1} << random.below(10);
  if (adaptive.unit == AdaptiveOptions::Unit::Packet) {
    scenario.packet.retransmission = Retransmission::None;
  }
}

// Bits that flip in one packet of 100 to 12,800 on each link, and up to two cables that fail.
void add_faults(Scenario& scenario, std::uint64_t seed) {
  RandomStream random(seed, "faults");
  if (random.below(4) == 0) {
    const double packets = 100.0 * static_cast<double>(std::int64_t{1} << random.below(8));
    const auto bits = static_cast<double>(8 * scenario.packet.mtu.count());
    scenario.packet.bit_error_rate = 1.0 / (packets * bits);
  }
  const std::uint64_t cables = random.below(3) == 0 ? 1 + random.below(2) : 0;
  const Topology& topology = scenario.fabric.topology;
  for (std::uint64_t i = 0; i < cables; ++i) {
    const LinkId link(static_cast<std::uint32_t>(random.below(topology.link_count())));
    const auto time = SimTime(static_cast<std::int64_t>(random.below(2'000'000'000)));
    const auto& adaptive = scenario.packet.adaptive;
    const bool is_spread = scenario.routing.policy == RoutingPolicy::Spray ||
                           (adaptive && adaptive->unit != AdaptiveOptions::Unit::Connection);
    if (topology.link(link).spec.kind == LinkKind::Network && !is_spread) {
      scenario.faults.push_back({.link = link, .time = time});
    }
  }
}

Scenario scenario_of(std::uint64_t seed) {
  Scenario scenario{.fabric = fabric_of(seed), .packet = options_of(seed)};
  scenario.traffic = traffic_of_seed(scenario.fabric, scenario.packet.mtu, seed);
  RandomStream random(seed, "routing");
  constexpr std::array kPolicies{RoutingPolicy::EcmpHash, RoutingPolicy::Static,
                                 RoutingPolicy::Adaptive, RoutingPolicy::Spray};
  scenario.routing.policy = kPolicies[random.below(kPolicies.size())];
  scenario.routing.seed = random.next();
  add_recovery(scenario, seed);
  add_choices(scenario, seed);
  add_faults(scenario, seed);
  return scenario;
}

struct ScenarioRun {
  std::vector<Woken> completions;
  NetworkStats stats{};
  std::vector<std::uint64_t> counted{};  // By all ports.
  std::optional<std::string> complaint{};
  std::uint64_t fingerprint = 0;
  bool has_ended = false;
};

// Ten minutes: with 1 Mb/s after a storm of CNPs the last packets take their time.
constexpr SimTime kLongEnough = seconds(600);

std::unique_ptr<Network> network_of(const Scenario& scenario, const PacketOptions& options,
                                    Simulator& simulator, Routing& routing) {
  if (scenario.faults.empty()) {
    return make_network(Fidelity::Packet, simulator, routing, options);
  }
  auto network = std::make_unique<PacketNetwork>(simulator, routing, options);
  for (const LinkFault& fault : scenario.faults) {
    network->fail_link(fault.link, fault.time);
  }
  return network;
}

ScenarioRun play_scenario(const Scenario& scenario, const PacketOptions& options) {
  Simulator simulator;
  Routing routing(scenario.fabric.topology, scenario.routing);
  const auto network = network_of(scenario, options, simulator, routing);
  ScenarioRun run;
  run.completions = play_until(simulator, *network, scenario.fabric, scenario.traffic, kLongEnough);
  run.stats = network->stats();
  const auto counters = network->port_counters();
  for (const PortCounters& port : *counters) {
    run.counted.insert(
        run.counted.end(),
        {port.link.value(), port.packets, static_cast<std::uint64_t>(port.bytes.count()),
         port.ecn_marked, port.dropped, port.pause_frames_sent, port.pause_frames_received,
         static_cast<std::uint64_t>(port.paused.picoseconds()),
         static_cast<std::uint64_t>(port.queue_most.count())});
  }
  run.complaint = network->complaint();
  run.fingerprint = simulator.fingerprint();
  // Whatever goes on for ever is still there at the end of the time.
  run.has_ended = simulator.now() * 2 < kLongEnough;
  return run;
}

// Where the buffer is too small for the headroom, which is refused, it is doubled.
ScenarioRun play_with_room(const Scenario& scenario, PacketOptions& options) {
  while (true) {
    try {
      return play_scenario(scenario, options);
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).find("expected a buffer") != std::string::npos);
      options.buffer = options.buffer * 2;
    }
  }
}

// No message is there before light and the slowest link of its path allow.
void require_causal(const Scenario& scenario, const ScenarioRun& run) {
  Routing routing(scenario.fabric.topology, scenario.routing);
  std::vector<SimTime> least;
  for (const TestConnection& connection : scenario.traffic.connections) {
    std::vector<LinkId> path;
    REQUIRE(routing.route(scenario.fabric.hosts[connection.source],
                          scenario.fabric.hosts[connection.target], connection.flow_label, path));
    SimTime latency;
    for (const LinkId link : path) {
      latency += scenario.fabric.topology.link(link).spec.latency;
    }
    least.push_back(latency);
  }
  for (const Woken& done : run.completions) {
    const TestMessage& message = scenario.traffic.messages[done.token];
    REQUIRE(done.time >= message.time + least[message.connection]);
  }
}

void require_promises(const Scenario& scenario, const ScenarioRun& run) {
  REQUIRE(run.has_ended);
  std::vector<std::uint64_t> tokens;
  Bytes delivered;
  for (const Woken& done : run.completions) {
    tokens.push_back(done.token);
    delivered += scenario.traffic.messages[done.token].size;
  }
  std::sort(tokens.begin(), tokens.end());
  REQUIRE(std::adjacent_find(tokens.begin(), tokens.end()) == tokens.end());
  const bool is_complete = tokens.size() == scenario.traffic.messages.size();
  REQUIRE(run.complaint.has_value() != is_complete);
  if (is_complete) {
    REQUIRE(delivered == run.stats.bytes);
  } else {
    const auto says = [&](const char* text) {
      return run.complaint->find(text) != std::string::npos;
    };
    const bool is_lost = scenario.packet.retransmission == Retransmission::None
                             ? run.stats.packets.drops > 0
                             : says("gave up after too many retries");
    REQUIRE((is_lost || says("deadlock")));
  }
  const PacketStats& packets = run.stats.packets;
  if (scenario.packet.pfc || scenario.packet.fabric_credits > Bytes(0)) {
    REQUIRE(packets.drops == packets.bit_errors + packets.link_down);
  }
  if (scenario.routing.policy == RoutingPolicy::EcmpHash ||
      scenario.routing.policy == RoutingPolicy::Static) {
    require_causal(scenario, run);
  }
}

TEST_CASE("random scenarios end, keep their promises, and end so again", "[scenarios]") {
  constexpr std::uint64_t kSeeds = kIsSanitized ? 30 : 200;
  std::uint64_t lost = 0;
  std::uint64_t repaired = 0;
  std::uint64_t deadlocked = 0;
  std::uint64_t pauses = 0;
  std::uint64_t cnps = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    INFO("seed=" << seed);
    Scenario scenario = scenario_of(seed);
    const ScenarioRun run = play_with_room(scenario, scenario.packet);
    require_promises(scenario, run);
    scenario.packet.threads = static_cast<int>(2 + seed % 4);
    const ScenarioRun again = play_scenario(scenario, scenario.packet);
    REQUIRE(again.completions == run.completions);
    REQUIRE(again.counted == run.counted);
    REQUIRE(again.complaint == run.complaint);
    REQUIRE(again.fingerprint == run.fingerprint);
    lost += run.stats.packets.drops > 0 ? 1 : 0;
    const bool is_lossless = run.stats.packets.drops == 0;
    deadlocked += run.complaint && is_lossless ? 1 : 0;
    repaired += !run.complaint && !is_lossless ? 1 : 0;
    pauses += run.stats.packets.pauses;
    cnps += run.stats.packets.cnps;
  }
  // They reach what they are for.
  if (!kIsSanitized) {
    REQUIRE(lost > 0);
    REQUIRE(repaired > 0);
    REQUIRE(deadlocked > 0);
    REQUIRE(pauses > 1000);
    REQUIRE(cnps > 1000);
  }
}

}  // namespace
}  // namespace trainyard
