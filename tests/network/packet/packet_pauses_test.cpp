// SPDX-License-Identifier: Apache-2.0
// Hosts that pause, and watchdogs: packet by packet as an ordinary simulation says, and what a
// storm costs those who have nothing to do with it.
#include "support/catch.h"

#include "network/packet_parts/packet_pauses.h"

#include <algorithm>

#include "network/packet/packet_engine.h"
#include "sim/config_error.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/naive_lanes.h"
#include "support/packet_runs.h"
#include "support/traced_run.h"

namespace trainyard {
namespace {

using namespace literals;
using Event = PauseWatchdog::Event;

const LinkSpec kPausesLink = fabric_link(gigabits_per_second(100), 1_us);

TEST_CASE("a port that is paused and sends nothing is in a storm, however often it was polled",
          "[pauses]") {
  const WatchdogSettings settings{.detection = 20_us, .restoration = 10_us, .poll = 10_us};
  PortGuard guard(settings);
  REQUIRE(!guard.is_of_interest(true, false));
  REQUIRE(guard.is_of_interest(true, true));
  REQUIRE(guard.next_poll(4'000'000) == 10'000'000);
  REQUIRE(guard.next_poll(6'000'000) == 20'000'000);
  REQUIRE(guard.next_poll(20'000'000) == 30'000'000);
  const auto poll = [&](Picoseconds now, Picoseconds since, std::uint64_t packets) {
    return guard.poll(
        now, {.is_paused = since < now, .since = since, .packets = packets, .has_packets = true});
  };
  guard.on_change(9'000'000, false, kNeverTime, 3);
  REQUIRE(poll(10'000'000, 9'000'000, 3) == Event::Nothing);
  REQUIRE(poll(20'000'000, 9'000'000, 3) == Event::Nothing);
  REQUIRE(poll(30'000'000, 9'000'000, 3) == Event::Storm);
  REQUIRE(!guard.is_of_interest(true, true));
  guard.on_change(31'000'000, true, 9'000'000, 3);
  REQUIRE(guard.is_of_interest(false, false));
  REQUIRE(poll(40'000'000, kNeverTime, 3) == Event::Nothing);
  REQUIRE(poll(50'000'000, kNeverTime, 3) == Event::Restored);
  // Paused nearly all the time, but a packet goes out in between.
  guard.on_change(60'000'000, false, kNeverTime, 3);
  guard.on_change(70'010'000, true, 60'000'000, 3);
  guard.on_change(70'020'000, false, kNeverTime, 4);
  REQUIRE(poll(80'000'000, 70'020'000, 4) == Event::Nothing);
  REQUIRE(poll(90'000'000, 70'020'000, 4) == Event::Nothing);
  REQUIRE(poll(100'000'000, 70'020'000, 4) == Event::Storm);
  REQUIRE(guard.storms == 2);
}

TEST_CASE("a slow receiver gets what it drains, and its port is stopped for the rest", "[pauses]") {
  const TestFabric fabric = one_switch(2, kPausesLink);
  const Traffic traffic{.connections = {{.source = 0, .target = 1}},
                        .messages = {{.connection = 0, .time = {}, .size = Bytes(10'000'000)}}};
  PacketOptions options = lossless_options(32_MiB);
  options.slow_hosts = {
      {.node = fabric.hosts[1],
       .receiver = {
           .drain = gigabits_per_second(25), .xoff = Bytes(200'000), .xon = Bytes(100'000)}}};
  const TracedRun run = run_on_paths(fabric, traffic, paths_of(fabric, traffic), {3}, options);
  const SimTime drained = transfer_time(Bytes(10'000'000), gigabits_per_second(25));
  REQUIRE(*run.arrivals[0] / drained == Approx(1.0).margin(0.08));
  REQUIRE(run.stats.pauses > 50);
  REQUIRE(run.stats.drops == 0);
  const std::uint32_t last = paths_of(fabric, traffic)[0].back().value();
  REQUIRE(run.paused.at(last) / *run.arrivals[0] == Approx(0.75).margin(0.04));
}

PacketOptions random_pauses(const TestFabric& fabric, RandomStream& random) {
  PacketOptions options = lossless_options(Bytes(static_cast<std::int64_t>(400'000)));
  options.forwarding = random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
  const std::uint64_t slow = 1 + random.below(fabric.hosts.size());
  for (std::uint64_t host = 0; host < slow; ++host) {
    const auto xoff = static_cast<std::int64_t>(random.below(40'000));
    SlowHost record{
        .node = fabric.hosts[host],
        .receiver = {.drain = Bandwidth(
                         static_cast<std::int64_t>(100'000'000 + random.below(20'000'000'000))),
                     .xoff = Bytes(xoff),
                     .xon = Bytes(xoff / static_cast<std::int64_t>(1 + random.below(4)))}};
    record.from = SimTime(static_cast<std::int64_t>(random.below(30'000'000)));
    if (random.below(2) == 0) {
      record.until = record.from + SimTime(static_cast<std::int64_t>(random.below(300'000'000)));
    }
    options.slow_hosts.push_back(record);
  }
  return options;
}

TEST_CASE(
    "with hosts that pause and watchdogs every packet begins when an ordinary simulation says",
    "[pauses]") {
  std::uint64_t pauses = 0;
  std::uint64_t storms = 0;
  std::uint64_t storm_drops = 0;
  for (std::uint64_t seed = 0; seed < cases(50); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "pauses");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = traffic_between_hosts(fabric, random, 2);
    const auto paths = paths_of(fabric, traffic);
    PacketOptions options = random_pauses(fabric, random);
    options.alpha_exponent = -6;
    std::vector<std::uint8_t> lanes(paths.size(), 3);
    LaneOptions classes{.lossless = 1U << 3U};
    const std::uint64_t kind = random.below(4);
    if (kind == 0) {
      classes.lossless = 0xF0;
      options.lanes = classes;
      for (std::uint8_t& lane : lanes) {
        lane = static_cast<std::uint8_t>(3 + random.below(3));
      }
    } else if (kind < 3) {
      const SimTime poll(static_cast<std::int64_t>(1'000'000 + random.below(30'000'000)));
      options.watchdog = {.detection = poll * static_cast<std::int64_t>(1 + random.below(3)),
                          .restoration = poll * static_cast<std::int64_t>(1 + random.below(3)),
                          .poll = poll};
      options.watchdog->action = kind == 1 ? StormAction::Drop : StormAction::Forward;
    }
    make_room(fabric, paths, options);
    options.buffer = options.buffer * 4;  // Switches that are not used have room as well.
    const NaiveLanesRun naive = run_naive_lanes(fabric, traffic, paths, lanes, options, classes);
    const TracedRun run = run_on_paths(fabric, traffic, paths, lanes, options);
    REQUIRE(run.starts == naive.starts);
    REQUIRE(run.arrivals == naive.arrivals);
    REQUIRE(run.stats.pauses == naive.pauses);
    REQUIRE(run.stats.drops == naive.drops);
    REQUIRE(run.stats.storms == naive.storms);
    pauses += naive.pauses;
    storms += naive.storms;
    storm_drops += run.stats.storm_drops;
    options.longest_window = SimTime(static_cast<std::int64_t>(5'000 + random.below(200'000)));
    options.always_exact = random.below(2) == 0;
    options.threads = 1 + static_cast<int>(random.below(4));
    options.min_shared = 1;
    REQUIRE(run_on_paths(fabric, traffic, paths, lanes, options).starts == run.starts);
  }
  if (!kIsSanitized) {  // Which tries too few cases to see all of it.
    REQUIRE(pauses > 1000);
    REQUIRE(storms > 10);
    REQUIRE(storm_drops > 100);
  }
}

// Two leaves and a spine; four hosts of the first send to one of the second that stops its switch
// for good, one to another one there.
struct Storm {
  TracedRun run;
  SimTime alone;  // What the victim would take.

  explicit Storm(const std::optional<WatchdogSettings>& watchdog, SimTime end = SimTime::max()) {
    const TestFabric fabric =
        clos({.leaves = 2, .hosts_per_leaf = 5, .spines = 1}, kPausesLink, kPausesLink);
    Traffic traffic;
    for (std::uint32_t host = 0; host < 5; ++host) {
      traffic.connections.push_back({.source = host, .target = host < 4 ? 5U : 6U});
      traffic.messages.push_back(
          {.connection = host, .time = {}, .size = host < 4 ? Bytes(2'000'000) : Bytes(1'000'000)});
    }
    PacketOptions options = lossless_options(4_MiB);
    options.slow_hosts = {
        {.node = fabric.hosts[5],
         .receiver = {.drain = Bandwidth(1'000'000), .xoff = Bytes(100'000), .xon = Bytes(50'000)},
         .until = end}};
    options.watchdog = watchdog;
    run = run_on_paths(fabric, traffic, paths_of(fabric, traffic), std::vector<std::uint8_t>(5, 3),
                       options);
    alone = transfer_time(Bytes(1'000'000), kPausesLink.bandwidth) * 5;  // Five share the trunk.
  }
  [[nodiscard]] const std::optional<SimTime>& victim() const { return run.arrivals[4]; }
};

TEST_CASE("a pause storm stops a victim until it ends, or a watchdog ends it", "[pauses]") {
  WatchdogSettings watchdog{.detection = 200_us, .restoration = 200_us, .poll = 100_us};
  const Storm lasting(std::nullopt, 5_ms);
  REQUIRE(*lasting.victim() > 5_ms);
  REQUIRE(lasting.run.stats.drops == 0);
  const Storm dropped(watchdog);
  REQUIRE(dropped.victim().has_value());
  REQUIRE(*dropped.victim() > 200_us);
  REQUIRE(*dropped.victim() < 400_us + dropped.alone);
  REQUIRE(dropped.run.stats.storms == 1);
  REQUIRE(dropped.run.stats.storm_drops == dropped.run.stats.drops);
  for (int flow = 0; flow < 4; ++flow) {
    REQUIRE(!dropped.run.arrivals[static_cast<std::size_t>(flow)]);
  }
  watchdog.action = StormAction::Forward;
  const Storm forwarded(watchdog);
  REQUIRE(forwarded.run.stats.drops == 0);
  REQUIRE(*forwarded.victim() < 400_us + forwarded.alone);
  REQUIRE(forwarded.run.arrivals[0].has_value());
}

TEST_CASE("hosts and watchdogs that make no sense are refused", "[pauses]") {
  const TestFabric fabric = one_switch(2, kPausesLink);
  const auto error_with = [&](const auto& change) {
    PacketOptions options = lossless_options(4_MiB);
    options.slow_hosts = {
        {.node = fabric.hosts[1],
         .receiver = {
             .drain = gigabits_per_second(1), .xoff = Bytes(100'000), .xon = Bytes(50'000)}}};
    options.watchdog.emplace();
    change(options);
    try {
      const PacketEngine engine(fabric.topology, options);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  REQUIRE(error_with([](PacketOptions&) {}).empty());
  REQUIRE(has(error_with([](PacketOptions& options) { options.pfc = false; }),
              "expected PFC where hosts pause"));
  REQUIRE(has(error_with([](PacketOptions& options) {
                options.slow_hosts[0].receiver.xon = Bytes(200'000);
              }),
              "expected slow receivers that"));
  REQUIRE(has(error_with([](PacketOptions& options) {
                options.slow_hosts.push_back(options.slow_hosts[0]);
              }),
              "each once, found host 1"));
  REQUIRE(has(error_with([](PacketOptions& options) { options.watchdog->poll = SimTime(1); }),
              "expected times of a watchdog of 2 ns or more"));
  REQUIRE(has(error_with([](PacketOptions& options) { options.lanes.emplace(); }),
              "expected one class of data where watchdogs"));
}

}  // namespace
}  // namespace trainyard
