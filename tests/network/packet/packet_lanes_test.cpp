// SPDX-License-Identifier: Apache-2.0
// Several classes of data: packet by packet as an ordinary simulation says, with one class in use
// as without classes, and what schedulers and pauses by class promise.
#include "support/catch.h"

#include "network/packet/packet_lanes.h"

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

const LinkSpec kLanesLink = fabric_link(gigabits_per_second(100), 1_us);

std::vector<std::uint8_t> random_lanes(const Traffic& traffic, RandomStream& random) {
  std::vector<std::uint8_t> lanes;
  for (std::size_t i = 0; i < traffic.connections.size(); ++i) {
    lanes.push_back(static_cast<std::uint8_t>(random.below(4) * 2 + random.below(2)));
  }
  return lanes;
}

LaneOptions random_classes(RandomStream& random) {
  LaneOptions classes;
  classes.lossless = static_cast<std::uint8_t>(random.below(3) == 0 ? 0xFF : random.below(256));
  classes.strict = static_cast<std::uint8_t>(random.below(256));
  for (int& weight : classes.weights) {
    weight = 1 + static_cast<int>(random.below(4));
  }
  return classes;
}

TEST_CASE("with lanes every packet begins when an ordinary simulation says") {
  std::uint64_t pauses = 0;
  std::uint64_t drops = 0;
  SimTime starved;
  for (std::uint64_t seed = 0; seed < cases(100); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "lanes");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = traffic_between_hosts(fabric, random, 3);
    const std::vector<std::uint8_t> lanes = random_lanes(traffic, random);
    const auto& paths = paths_of(fabric, traffic);
    PacketOptions options = line_options();
    options.mtu = Bytes(std::int64_t{1024} << random.below(3));
    options.forwarding =
        random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
    options.lanes = random_classes(random);
    options.pfc = random.below(3) > 0;
    options.buffer = Bytes(static_cast<std::int64_t>(100'000 + random.below(200'000)));
    if (!options.pfc && random.below(2) == 0) {
      options.buffer = Bytes(0);
      if (random.below(2) == 0) {
        options.fabric_credits = Bytes(static_cast<std::int64_t>(5000 + random.below(60'000)));
      }
    }
    make_room(fabric, paths, options);
    const NaiveLanesRun naive =
        run_naive_lanes(fabric, traffic, paths, lanes, options, *options.lanes);
    const TracedRun run = run_on_paths(fabric, traffic, paths, lanes, options);
    REQUIRE(run.starts == naive.starts);
    REQUIRE(run.arrivals == naive.arrivals);
    REQUIRE(run.stats.pauses == naive.pauses);
    REQUIRE(run.stats.drops == naive.drops);
    pauses += naive.pauses;
    drops += naive.drops;
    starved += run.starved;
    options.always_exact = true;
    options.longest_window = SimTime(static_cast<std::int64_t>(5'000 + random.below(200'000)));
    const TracedRun again = run_on_paths(fabric, traffic, paths, lanes, options);
    REQUIRE(again.starts == run.starts);
    REQUIRE(again.exact_windows >= run.exact_windows);
    if (seed % 4 == 0) {
      options.threads = 3;
      options.min_shared = 1;
      REQUIRE(run_on_paths(fabric, traffic, paths, lanes, options).starts == run.starts);
    }
  }
  REQUIRE(pauses > 0);
  REQUIRE(drops > 0);
  REQUIRE((kIsSanitized || starved > SimTime()));
}

TEST_CASE("with one lane in use nothing is different from having none") {
  for (std::uint64_t seed = 0; seed < cases(100); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "one lane");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = traffic_between_hosts(fabric, random, 3);
    const auto& paths = paths_of(fabric, traffic);
    PacketOptions options = roce_options();
    options.control =
        random.below(2) == 0 ? CongestionControl::DcqcnNic : CongestionControl::DcqcnPaper;
    options.buffer = Bytes(static_cast<std::int64_t>(200'000 + random.below(400'000)));
    if (random.below(4) == 0) {
      options.pfc = false;
      options.retransmission = Retransmission::GoBackN;
      options.retry.timeout = 100_us;
      if (random.below(2) == 0) {
        options.fabric_credits = Bytes(static_cast<std::int64_t>(6000 + random.below(60'000)));
        options.buffer = Bytes(0);
      }
    }
    const auto lane = static_cast<std::uint8_t>(random.below(8));
    const std::vector<std::uint8_t> lanes(paths.size(), lane);
    make_room(fabric, paths, options);
    const TracedRun plain = run_on_paths(fabric, traffic, paths, lanes, options);
    options.lanes = random_classes(random);
    options.lanes->lossless = static_cast<std::uint8_t>(1U << lane);
    const TracedRun run = run_on_paths(fabric, traffic, paths, lanes, options);
    REQUIRE(run.starts == plain.starts);
    REQUIRE(run.arrivals == plain.arrivals);
    REQUIRE(run.stats.marks == plain.stats.marks);
    REQUIRE(run.stats.cnps == plain.stats.cnps);
    REQUIRE(run.stats.pauses == plain.stats.pauses);
    REQUIRE(run.stats.paused_time == plain.stats.paused_time);
    REQUIRE(run.stats.drops == plain.stats.drops);
    REQUIRE(run.stats.max_queued == plain.stats.max_queued);
    REQUIRE(run.starved == plain.starved);
  }
}

// Hosts 0, 1, ... of one switch send so much each to the last one, in these lanes.
TracedRun incast(const std::vector<std::uint8_t>& lanes, const std::vector<Bytes>& sizes,
                 const PacketOptions& options) {
  const auto senders = static_cast<std::uint32_t>(lanes.size());
  const TestFabric fabric = one_switch(static_cast<int>(senders) + 1, kLanesLink);
  Traffic traffic;
  for (std::uint32_t i = 0; i < senders; ++i) {
    traffic.connections.push_back({.source = i, .target = senders});
    traffic.messages.push_back({.connection = i, .time = {}, .size = sizes[i]});
  }
  return run_on_paths(fabric, traffic, paths_of(fabric, traffic), lanes, options);
}

TEST_CASE("a strict lane has the line for itself, and weights share it") {
  PacketOptions options = line_options();
  options.lanes = LaneOptions{.strict = 0b1000'0000, .weights = {1, 3, 1, 1, 1, 1, 1, 1}};
  const Bytes size = 4096_B * 3000;
  const SimTime full = transfer_time(4178_B, kLanesLink.bandwidth);
  const TracedRun strict = incast({7, 0, 1}, {size, size, size}, options);
  // At most one packet of others before it, once.
  REQUIRE(*strict.arrivals[0] <= full * 3002 + 2_us);
  REQUIRE(*strict.arrivals[0] >= full * 3001 + 2_us);
  // Of the rest lane 1 has three quarters: 3000 packets in 4000.
  const SimTime alone = *strict.arrivals[1] - *strict.arrivals[0];
  REQUIRE(*strict.arrivals[2] - *strict.arrivals[0] <= full * 4004);
  REQUIRE(*strict.arrivals[2] - *strict.arrivals[0] >= full * 3996);
  REQUIRE(alone <= full * 6002);
}

TEST_CASE("a pause of one class leaves the others alone") {
  // Hosts of one leaf send over one trunk: three into an incast that PFC stops, one to an idle
  // host. In one class the last is a victim of the others; in two it is not.
  const LinkSpec trunk = fabric_link(gigabits_per_second(400), 1_us);
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 1}, kLanesLink, trunk);
  Traffic traffic;
  for (const auto& [source, target] :
       {std::pair{0U, 4U}, {1U, 4U}, {2U, 4U}, {5U, 4U}, {6U, 4U}, {3U, 7U}}) {
    traffic.messages.push_back(
        {.connection = static_cast<std::uint32_t>(traffic.connections.size()),
         .time = {},
         .size = 4096_B * 2000});
    traffic.connections.push_back({.source = source, .target = target});
  }
  PacketOptions options = lossless_options(2'000'000_B);
  const auto& paths = paths_of(fabric, traffic);
  const SimTime alone = transfer_time(4178_B * 2000, kLanesLink.bandwidth) + 10_us;
  const std::vector<std::uint8_t> one(6, 3);
  const TracedRun victim = run_on_paths(fabric, traffic, paths, one, options);
  REQUIRE(victim.stats.pauses > 0);
  REQUIRE(*victim.arrivals[5] > alone * 2);
  options.lanes = LaneOptions{.lossless = 0b0001'1000};
  const TracedRun apart = run_on_paths(fabric, traffic, paths, {3, 3, 3, 3, 3, 4}, options);
  REQUIRE(apart.stats.pauses > 0);
  REQUIRE(apart.stats.drops == 0);
  REQUIRE(*apart.arrivals[5] < alone);
}

TEST_CASE("with room for k packets in each class, flows of two classes send k each in a round") {
  // As packet_credits_test.cpp has it for one flow: the time of a round is that of a packet on both
  // links and of the latency there and back.
  constexpr std::int64_t kPackets = 1000;
  const SimTime full = transfer_time(4178_B, kLanesLink.bandwidth);
  const SimTime round = full * 2 + kLanesLink.latency * 2;
  const TestFabric fabric = one_switch(2, kLanesLink);
  const Traffic traffic{.connections = {{.source = 0, .target = 1}, {.source = 0, .target = 1}},
                        .messages = {{.connection = 0, .time = {}, .size = 4096_B * kPackets},
                                     {.connection = 1, .time = {}, .size = 4096_B * kPackets}}};
  PacketOptions options = line_options();
  options.lanes = LaneOptions{};
  for (const std::int64_t room : {1, 2, 3}) {
    INFO("room=" << room);
    REQUIRE(full * (2 * room) < round);
    options.fabric_credits = 4178_B * room;
    const auto last_of = [&](const std::vector<std::uint8_t>& lanes) {
      const TracedRun run =
          run_on_paths(fabric, traffic, paths_of(fabric, traffic), lanes, options);
      return std::max(*run.arrivals[0], *run.arrivals[1]);
    };
    // Each round begins with the first credits: at most one packet of the other class is before.
    const SimTime rounds = round * ((kPackets - 1) / room);
    REQUIRE(last_of({2, 5}) >= rounds);
    REQUIRE(last_of({2, 5}) <= rounds + round * 2);
    REQUIRE(last_of({2, 2}) >= rounds * 2);
  }
}

TEST_CASE("credits of one class leave the others alone") {
  // As with the pauses above: all hosts of one leaf share a trunk, and all but one send into an
  // incast, whose packets fill the buffer behind the trunk.
  const LinkSpec trunk = fabric_link(gigabits_per_second(400), 1_us);
  const TestFabric fabric =
      clos({.leaves = 2, .hosts_per_leaf = 4, .spines = 1}, kLanesLink, trunk);
  Traffic traffic;
  for (const auto& [source, target] : {std::pair{0U, 4U}, {1U, 4U}, {2U, 4U}, {3U, 7U}}) {
    traffic.messages.push_back(
        {.connection = static_cast<std::uint32_t>(traffic.connections.size()),
         .time = {},
         .size = 4096_B * 2000});
    traffic.connections.push_back({.source = source, .target = target});
  }
  PacketOptions options = line_options();
  options.lanes = LaneOptions{};
  options.fabric_credits = 131'072_B;  // What InfiniBand opens at most.
  const auto& paths = paths_of(fabric, traffic);
  const SimTime alone = transfer_time(4178_B * 2000, kLanesLink.bandwidth) + 10_us;
  const TracedRun victim = run_on_paths(fabric, traffic, paths, {3, 3, 3, 3}, options);
  const TracedRun apart = run_on_paths(fabric, traffic, paths, {3, 3, 3, 4}, options);
  REQUIRE(*victim.arrivals[3] > alone * 2);
  REQUIRE(*apart.arrivals[3] < alone);
  for (const TracedRun* run : {&victim, &apart}) {  // The last link is busy either way.
    REQUIRE(std::max({*run->arrivals[0], *run->arrivals[1], *run->arrivals[2]}) < alone * 3);
    REQUIRE(run->stats.drops == 0);
  }
}

TEST_CASE("PFC spares a lossless class where another one loses packets") {
  PacketOptions options = lossless_options(2'000'000_B);
  options.lanes = LaneOptions{.lossless = 0b1000};
  std::vector<std::uint8_t> lanes{3, 3, 3, 3, 1, 1, 1, 1};
  const TracedRun run = incast(lanes, std::vector<Bytes>(8, 4096_B * 500), options);
  REQUIRE(run.stats.pauses > 0);
  REQUIRE(run.stats.drops > 0);
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    REQUIRE((run.arrivals[i].has_value() || lanes[i] == 1));
  }
}

TEST_CASE("lanes that make no sense are refused") {
  const TestFabric fabric = one_switch(2, kLanesLink);
  PacketOptions options = line_options();
  options.lanes = LaneOptions{};
  options.lanes->weights[2] = 0;
  REQUIRE_THROWS_AS(PacketEngine(fabric.topology, options), ConfigError);
}

}  // namespace
}  // namespace trainyard
