// SPDX-License-Identifier: Apache-2.0
// Several processes, each of them a thread here, against one that is alone: times, order of
// completions, events, all counters, failures and deadlocks to the last bit, for every fabric,
// control, loss and recovery that scenarios are drawn with.
#include "network/packet/packet_exchange.h"

#include "support/catch.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/messages.h"
#include "support/packet_runs.h"
#include "support/scenarios.h"
#include "support/thread_team.h"

namespace trainyard {
namespace {

struct Outcome {
  std::vector<Woken> completions = {};
  std::vector<std::uint64_t> counted = {};  // By all, by each port and by each connection.
  std::vector<LinkUse> link_use = {};
  std::string complaint = {};
  std::uint64_t fingerprint = 0;
  PacketStats packets = {};
};

void count_ends(const Network& network, std::size_t connections, std::vector<std::uint64_t>& all) {
  for (std::uint32_t id = 0; id < connections; ++id) {
    const auto counters = network.connection_counters(ConnectionId(id));
    all.insert(all.end(), {counters->packets, counters->retransmitted, counters->timeouts,
                           counters->congestion_notifications});
  }
  const auto ports = network.port_counters();
  for (const PortCounters& port : *ports) {
    all.insert(all.end(), {port.no_room, port.bit_errors, port.link_down, port.in_storms,
                           port.storms, static_cast<std::uint64_t>(port.starved.picoseconds()),
                           static_cast<std::uint64_t>(port.queue_p99.value_or(Bytes(0)).count())});
  }
  const NetworkStats stats = network.stats();
  const PacketStats& packets = stats.packets;
  all.insert(all.end(), {stats.messages, static_cast<std::uint64_t>(stats.bytes.count()),
                         packets.hops, packets.cnps, packets.acks, packets.reordered,
                         packets.failures, packets.retransmitted, packets.timeouts});
}

Outcome play(const Scenario& scenario, const PacketOptions& options) {
  Simulator simulator;
  Routing routing(scenario.fabric.topology, scenario.routing);
  PacketNetwork network(simulator, routing, options);
  Outcome outcome;
  outcome.completions =
      play_until(simulator, network, scenario.fabric, scenario.traffic, seconds(600));
  outcome.complaint = network.complaint().value_or("");
  outcome.link_use = network.link_use();
  add_port_counts(network, outcome.counted);
  count_ends(network, scenario.traffic.connections.size(), outcome.counted);
  outcome.fingerprint = simulator.fingerprint();
  outcome.packets = network.stats().packets;
  return outcome;
}

// Where the buffer is too small for the headroom, which is refused, it is doubled.
Outcome play_alone(Scenario& scenario) {
  while (true) {
    try {
      return play(scenario, scenario.packet);
    } catch (const ConfigError& error) {
      REQUIRE(std::string(error.what()).find("expected a buffer") != std::string::npos);
      scenario.packet.buffer = scenario.packet.buffer * 2;
    }
  }
}

bool are_alike(const std::vector<LinkUse>& one, const std::vector<LinkUse>& other) {
  return std::ranges::equal(one, other, [](const LinkUse& a, const LinkUse& b) {
    return a.link == b.link && a.bytes == b.bytes;
  });
}

void require_alike(std::uint64_t seed, std::map<std::string, int>& coverage) {
  Scenario scenario = scenario_of(seed);
  scenario.packet.queue_times = seed % 3 == 0;
  const Outcome alone = play_alone(scenario);
  scenario.packet.threads = static_cast<int>(1 + seed / 2 % 2);
  ThreadTeam team(static_cast<std::uint32_t>(2 + seed % 2));
  const auto outcomes = team.run<Outcome>([&](PacketTeam& member) {
    PacketOptions options = scenario.packet;
    options.team = &member;
    return play(scenario, options);
  });
  for (const Outcome& outcome : outcomes) {
    REQUIRE(outcome.completions == alone.completions);
    REQUIRE(outcome.counted == alone.counted);
    REQUIRE(are_alike(outcome.link_use, alone.link_use));
    REQUIRE(outcome.complaint == alone.complaint);
    REQUIRE(outcome.fingerprint == alone.fingerprint);
  }
  const PacketOptions& options = scenario.packet;
  const ControlTraits traits = control_traits(options);
  coverage["selective repeat"] += options.retransmission == Retransmission::SelectiveRepeat ? 1 : 0;
  coverage["go-back-N"] += options.retransmission == Retransmission::GoBackN ? 1 : 0;
  coverage["stamps"] += traits.telemetry != IntFormat::None ? 1 : 0;
  coverage["credits of receivers"] += traits.is_receiver_driven ? 1 : 0;
  coverage["pauses"] += alone.packets.pauses > 0 ? 1 : 0;
  coverage["CNPs"] += alone.packets.cnps > 0 ? 1 : 0;
  coverage["losses"] += alone.packets.drops > 0 ? 1 : 0;
  coverage["gave up"] += alone.packets.failures > 0 ? 1 : 0;
  coverage["incomplete"] += alone.complaint.empty() ? 0 : 1;
}

}  // namespace

TEST_CASE("several processes have the results of one, to the bit", "[packet]") {
  std::map<std::string, int> coverage;
  for (std::uint64_t seed = 0; seed < cases(12); ++seed) {
    INFO("seed=" << seed);
    require_alike(seed, coverage);
  }
}

TEST_CASE("several processes have the results of one with all that is drawn", "[packet][long]") {
  std::map<std::string, int> coverage;
  for (std::uint64_t seed = 12; seed < 60; ++seed) {
    INFO("seed=" << seed);
    require_alike(seed, coverage);
  }
  for (const auto& [what, count] : coverage) {
    INFO(what << ": " << count);
    REQUIRE(count > 0);
  }
}

TEST_CASE("several processes refuse what they cannot do", "[packet]") {
  const auto complaint = [](PacketOptions options) {
    ThreadTeam team(2);
    return team.run<std::string>([&](PacketTeam& member) {
      options.team = &member;
      try {
        check_options(options);
      } catch (const ConfigError& error) {
        return std::string(error.what());
      }
      return std::string();
    })[0];
  };
  PacketOptions options = line_options();
  REQUIRE(complaint(options).empty());
  options.fast_forward = FastForward::Exact;
  REQUIRE(complaint(options).find("expected no fast-forward where several processes") !=
          std::string::npos);
  options.fast_forward = FastForward::Off;
  options.sample_every = microseconds(1);
  REQUIRE(complaint(options).find("expected no samples where several processes") !=
          std::string::npos);
}

// An idle instant begins with a question to all, and each window ends with one exchange; that there
// are no more of them is what makes processes worth their while.
TEST_CASE("processes exchange once a window", "[packet]") {
  Scenario scenario = scenario_of(1);
  scenario.packet = line_options();
  scenario.packet.adaptive = {};
  const Outcome alone = play_alone(scenario);
  ThreadTeam team(2);
  std::uint64_t windows = 0;
  static_cast<void>(team.run<int>([&](PacketTeam& member) {
    Simulator simulator;
    Routing routing(scenario.fabric.topology, scenario.routing);
    PacketOptions options = scenario.packet;
    options.team = &member;
    PacketNetwork network(simulator, routing, options);
    const auto done =
        play_until(simulator, network, scenario.fabric, scenario.traffic, seconds(600));
    if (member.rank() == 0) {
      windows = network.engine().counts().windows;
    }
    return done == alone.completions ? 0 : 1;
  }));
  const std::size_t asked =
      scenario.traffic.connections.size() + 2 * scenario.traffic.messages.size();
  REQUIRE(windows > 0);
  REQUIRE(team.exchanges() >= windows);
  REQUIRE(team.exchanges() <= windows + asked);
}

}  // namespace trainyard
