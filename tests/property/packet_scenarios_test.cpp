// SPDX-License-Identifier: Apache-2.0
// Random fabrics, traffic, parameters and faults together: the packet engine ends, delivers
// everything or says what was lost, is never faster than light, and does the same again bit by bit,
// with other numbers of threads.
#include "support/catch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "network/engines/make_network.h"
#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/messages.h"
#include "support/packet_runs.h"
#include "support/scenarios.h"

namespace trainyard {
namespace {

using namespace literals;

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

ScenarioRun play_scenario(const Scenario& scenario, const PacketOptions& options) {
  Simulator simulator;
  Routing routing(scenario.fabric.topology, scenario.routing);
  const auto network = make_network(Fidelity::Packet, simulator, routing, options);
  ScenarioRun run;
  run.completions = play_until(simulator, *network, scenario.fabric, scenario.traffic, kLongEnough);
  run.stats = network->stats();
  add_port_counts(*network, run.counted);
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
  std::vector<SimTime> min;
  for (const TestConnection& connection : scenario.traffic.connections) {
    std::vector<LinkId> path;
    REQUIRE(routing.route(scenario.fabric.hosts[connection.source],
                          scenario.fabric.hosts[connection.target], connection.flow_label, path));
    SimTime latency;
    for (const LinkId link : path) {
      latency += scenario.fabric.topology.link(link).spec.latency;
    }
    min.push_back(latency);
  }
  for (const Woken& done : run.completions) {
    const TestMessage& message = scenario.traffic.messages[done.token];
    REQUIRE(done.time >= message.time + min[message.connection]);
  }
}

// Whether no switch loses a packet because it has no room.
bool is_lossless(const PacketOptions& options) {
  const bool has_lossy_lane = options.lanes && options.lanes->lossless != 0xFF;
  return options.fabric_credits > Bytes(0) || (options.pfc && !has_lossy_lane);
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
  if (is_lossless(scenario.packet)) {
    REQUIRE(packets.drops == packets.bit_errors + packets.link_down + packets.storm_drops);
  }
  const bool has_one_path = scenario.routing.policy == RoutingPolicy::EcmpHash ||
                            scenario.routing.policy == RoutingPolicy::Static;
  if (has_one_path && !scenario.packet.convergence) {
    require_causal(scenario, run);
  }
}

// How many scenarios had what, by name.
using Coverage = std::map<std::string, std::uint64_t>;

void count(Coverage& coverage, const Scenario& scenario, const ScenarioRun& run) {
  const PacketOptions& options = scenario.packet;
  const bool is_repaired = options.retransmission != Retransmission::None;
  const bool is_sprayed = scenario.routing.policy == RoutingPolicy::Spray;
  const auto unit = options.adaptive ? options.adaptive->unit : AdaptiveOptions::Unit::Connection;
  const auto add = [&](const std::string& name, bool has) { coverage[name] += has ? 1 : 0; };
  if (options.profile) {
    ++coverage[options.profile->name];
  }
  add("credits of the fabric", options.fabric_credits > Bytes(0));
  add("classes", options.lanes.has_value());
  add("slow hosts", !options.slow_hosts.empty());
  add("watchdogs", options.watchdog.has_value());
  add("sprayed, sent again", is_sprayed && is_repaired);
  add("chosen by packet, sent again", unit == AdaptiveOptions::Unit::Packet && is_repaired);
  add("flowlets, sent again", unit == AdaptiveOptions::Unit::Flowlet && is_repaired);
  add("classes with credits", options.lanes && options.fabric_credits > Bytes(0));
  add("cables that fail where switches choose",
      unit != AdaptiveOptions::Unit::Connection && !options.failures.empty());
  add("new ways to choose from", unit != AdaptiveOptions::Unit::Connection && options.convergence &&
                                     !options.failures.empty());
  add("new paths", options.convergence && !options.failures.empty());
  const PacketStats& packets = run.stats.packets;
  add("lost", packets.drops > 0);
  add("lost, and all delivered", packets.drops > 0 && !run.complaint);
  add("nothing lost, not all delivered", packets.drops == 0 && run.complaint);
  coverage["pauses"] += packets.pauses;
  coverage["CNPs"] += packets.cnps;
}

TEST_CASE("random scenarios end, keep their promises, and end so again", "[scenarios]") {
  constexpr std::uint64_t kSeeds = kIsSanitized ? 30 : 200;
  Coverage coverage;
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
    count(coverage, scenario, run);
  }
  // They reach what they are for.
  for (const auto& [what, count] : coverage) {
    INFO(what << ": " << count);
    REQUIRE((kIsSanitized || count > 0));
  }
  if (!kIsSanitized) {
    REQUIRE(coverage.at("pauses") > 1000);
    REQUIRE(coverage.at("CNPs") > 1000);
  }
}

}  // namespace
}  // namespace trainyard
