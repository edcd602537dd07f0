// SPDX-License-Identifier: Apache-2.0
#include "support/scenarios.h"

#include <algorithm>
#include <array>
#include <string>

#include "support/controls.h"

namespace trainyard {
namespace {

using namespace literals;

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
  const std::uint64_t max =
      1 + static_cast<std::uint64_t>(mtu.count()) * (20'000 / traffic.connections.size());
  SimTime time;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const bool together = random.below(2) == 0;
    const std::uint64_t equal = 1 + random.below(max);
    const bool are_equal = random.below(2) == 0;
    for (std::uint32_t i = 0; i < traffic.connections.size(); ++i) {
      time += together ? SimTime() : SimTime(static_cast<std::int64_t>(random.below(5'000'000)));
      const bool is_empty = random.below(20) == 0;
      const std::uint64_t drawn = 1 + random.below(max);
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
  settings.min = Bandwidth(static_cast<std::int64_t>(1'000'000 << random.below(10)));
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

// Go-back-N is refused where packets overtake each other.
void expect_overtaking(PacketOptions& options) {
  if (options.retransmission == Retransmission::GoBackN) {
    options.retransmission = Retransmission::SelectiveRepeat;
  }
}

// What becomes of loss, and what keeps it away.
void add_recovery(Scenario& scenario, std::uint64_t seed) {
  RandomStream random(seed, "recovery");
  PacketOptions& options = scenario.packet;
  options.lossy_alpha_exponent = static_cast<int>(random.below(6)) - 3;
  options.admission = random.below(4) == 0 ? AdmissionRule::Ns3 : AdmissionRule::Guaranteed;
  options.reserve = Bytes(static_cast<std::int64_t>(random.below(9'000)));
  options.resume_offset = Bytes(static_cast<std::int64_t>(random.below(9'000)));
  options.retransmission = static_cast<Retransmission>(random.below(3));
  options.retry.timeout = retransmission_timeout(8 + static_cast<int>(random.below(6)));
  const auto room = Bytes(static_cast<std::int64_t>(6'000 + random.below(200'000)));
  if (scenario.routing.policy == RoutingPolicy::Spray) {
    expect_overtaking(options);
  }
  if (!options.pfc && random.below(2) == 0) {
    options.fabric_credits = room;
    options.buffer = Bytes(0);
  }
  if (random.below(4) == 0) {
    options.server_credits = room;
  }
}

// For what switches choose, where they do.
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
    expect_overtaking(scenario.packet);
  }
}

bool chooses(const Scenario& scenario) {
  const auto& adaptive = scenario.packet.adaptive;
  return adaptive && adaptive->unit != AdaptiveOptions::Unit::Connection;
}

// In half of the cases a control of a file instead of the built-in one, most of them driven by
// ACKs.
void add_control(Scenario& scenario, std::uint64_t seed) {
  RandomStream random(seed, "control");
  if (random.below(2) == 0) {
    return;
  }
  constexpr std::array kControls{"dctcp",       "swift",           "hpcc",
                                 "timely",      "dcqcn-simai",     "dcqcn-hpcc",
                                 "dcqcn-paper", "receiver-credit", "none"};
  PacketOptions& options = scenario.packet;
  options.dcqcn.reset();
  options.control = CongestionControl::Profile;
  options.profile = shipped_control(kControls.at(random.below(kControls.size())));
  if (chooses(scenario) && options.profile->traits().telemetry != IntFormat::None) {  // Refused.
    options.profile = shipped_control("swift");
  }
}

// Several classes of data: which connection is of which, how they share ports, which of them PFC
// stops.
void add_lanes(Scenario& scenario, std::uint64_t seed) {
  RandomStream random(seed, "lanes");
  if (random.below(4) != 0) {
    return;
  }
  LaneOptions& lanes = scenario.packet.lanes.emplace();
  lanes.lossless = static_cast<std::uint8_t>(random.below(3) == 0 ? 0xFF : random.below(256));
  lanes.strict = static_cast<std::uint8_t>(random.below(256));
  for (int& weight : lanes.weights) {
    weight = 1 + static_cast<int>(random.below(4));
  }
  for (TestConnection& connection : scenario.traffic.connections) {
    if (random.below(4) != 0) {
      connection.priority = static_cast<std::uint8_t>(random.below(LaneOptions::kLanes));
    }
  }
}

// The adapters of a fabric, or hosts where these are on it themselves.
std::vector<NodeId> ends_of(const Topology& topology) {
  std::vector<NodeId> ends;
  for (std::uint32_t number = 0; number < topology.node_count(); ++number) {
    const NodeId node(number);
    const auto links = topology.links_from(node);
    if (topology.node(node).kind != NodeKind::Switch &&
        std::ranges::any_of(links, [&](LinkId link) {
          return topology.link(link).spec.kind == LinkKind::Network;
        })) {
      ends.push_back(node);
    }
  }
  return ends;
}

// Up to three hosts that take less than comes, some of them for a while only, and watchdogs that
// look for the storms that they make.
void add_slow_hosts(Scenario& scenario, std::uint64_t seed) {
  RandomStream random(seed, "slow hosts");
  PacketOptions& options = scenario.packet;
  if (!options.pfc || random.below(3) != 0) {
    return;
  }
  const std::vector<NodeId> ends = ends_of(scenario.fabric.topology);
  const std::uint64_t first = random.below(ends.size());
  const std::uint64_t count = std::min<std::uint64_t>(1 + random.below(3), ends.size());
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto xoff = static_cast<std::int64_t>(random.below(100'000));
    SlowHost host{.node = ends[(first + i) % ends.size()],
                  .receiver = {.drain = Bandwidth(std::int64_t{100'000'000} << random.below(9)),
                               .xoff = Bytes(xoff),
                               .xon = Bytes(xoff / static_cast<std::int64_t>(1 + random.below(4)))},
                  .from = SimTime(static_cast<std::int64_t>(random.below(100'000'000)))};
    if (random.below(2) == 0) {
      host.until = host.from + SimTime(static_cast<std::int64_t>(random.below(2'000'000'000)));
    }
    options.slow_hosts.push_back(host);
  }
  if (!options.lanes && random.below(2) == 0) {
    const auto poll = SimTime(static_cast<std::int64_t>(1'000'000 + random.below(50'000'000)));
    const bool forwards = random.below(2) == 0;
    options.watchdog = {.detection = poll * static_cast<std::int64_t>(1 + random.below(4)),
                        .restoration = poll * static_cast<std::int64_t>(1 + random.below(4)),
                        .poll = poll,
                        .action = forwards ? StormAction::Forward : StormAction::Drop};
  }
}

// Bits that flip in one packet of 100 to 12,800 on each link, and up to two cables that fail. Where
// packets are sent again, connections over them take other paths in half of the cases.
void add_faults(Scenario& scenario, std::uint64_t seed) {
  RandomStream random(seed, "faults");
  PacketOptions& options = scenario.packet;
  if (random.below(4) == 0) {
    const double packets = 100.0 * static_cast<double>(std::int64_t{1} << random.below(8));
    const auto bits = static_cast<double>(8 * options.mtu.count());
    options.bit_error_rate = 1.0 / (packets * bits);
  }
  const std::uint64_t cables = random.below(3) == 0 ? 1 + random.below(2) : 0;
  const Topology& topology = scenario.fabric.topology;
  for (std::uint64_t i = 0; i < cables; ++i) {
    const LinkId link(static_cast<std::uint32_t>(random.below(topology.link_count())));
    const auto time = SimTime(static_cast<std::int64_t>(random.below(2'000'000'000)));
    if (topology.link(link).spec.kind == LinkKind::Network) {
      options.failures.push_back({.link = link, .time = time});
    }
  }
  if (random.below(2) == 0 && options.retransmission != Retransmission::None) {
    options.convergence = SimTime(static_cast<std::int64_t>(random.below(1'000'000'000)));
  }
}

}  // namespace

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
  add_control(scenario, seed);
  add_lanes(scenario, seed);
  add_slow_hosts(scenario, seed);
  add_faults(scenario, seed);
  return scenario;
}

}  // namespace trainyard
