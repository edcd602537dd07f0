// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/engines/message_times.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "network/engines/make_network.h"
#include "sim/random.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/packet_runs.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

bool is_within_a_bucket(SimTime shown, SimTime exact) {
  return shown >= exact && shown.seconds() <= exact.seconds() * 1.001;
}

TEST_CASE("percentiles of times are those of a sorted list, at most 0.1 % too high") {
  RandomStream random(1, "message times");
  TimeCounts counts;
  std::vector<SimTime> all;
  REQUIRE(counts.times().messages == 0);
  for (int bits = 0; bits < 50; ++bits) {
    for (int i = 0; i < 7 + bits % 3; ++i) {
      const std::uint64_t least = std::uint64_t{1} << bits;
      all.push_back(SimTime(static_cast<std::int64_t>(least - 1 + random.below(least))));
      counts.add(all.back());
    }
    std::ranges::sort(all);
    const MessageTimes times = counts.times();
    const auto rank = [&](std::size_t percent) {
      return all[(all.size() * percent + 99) / 100 - 1];
    };
    REQUIRE(times.messages == all.size());
    REQUIRE(is_within_a_bucket(times.p50, rank(50)));
    REQUIRE(is_within_a_bucket(times.p99, rank(99)));
    REQUIRE(times.max == all.back());
    REQUIRE(times.p99 <= times.max);
  }
}

// 125,000 bytes of one host take 10 us of its link, so that of four messages the last takes 40.
TEST_CASE("who times messages changes neither their times nor their order") {
  const TestFabric fabric = one_switch(3, fabric_link(gigabits_per_second(100), 1_us));
  for (const Fidelity fidelity : {Fidelity::Flow, Fidelity::Packet}) {
    const auto played = [&](const Traffic& traffic, bool times_messages) {
      Simulator simulator;
      Routing routing(fabric.topology, kTestRouting);
      const auto network = make_network(fidelity, simulator, routing, line_options(),
                                        {.times_messages = times_messages});
      std::vector<Woken> woken = play(simulator, *network, fabric, traffic);
      return std::pair(std::move(woken), extra_results(*network).messages);
    };
    Traffic queue{.connections = {{.source = 0, .target = 1}}, .messages = {}};
    for (int i = 0; i < 4; ++i) {
      queue.messages.push_back({.connection = 0, .size = 125'000_B});
    }
    const auto [woken, times] = played(queue, true);
    REQUIRE(times->messages == 4);
    REQUIRE(times->max == woken.back().time);
    REQUIRE(is_within_a_bucket(times->p50, woken[1].time));
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      INFO("seed=" << seed);
      RandomStream random(seed, "timed messages");
      const Traffic traffic = random_traffic(fabric, random);
      const auto timed = played(traffic, true);
      const auto untimed = played(traffic, false);
      REQUIRE(timed.second->messages == traffic.messages.size());
      REQUIRE(!untimed.second);
      REQUIRE(timed.first.size() == untimed.first.size());
      for (std::size_t i = 0; i < timed.first.size(); ++i) {
        REQUIRE(timed.first[i].time == untimed.first[i].time);
        REQUIRE(timed.first[i].token == untimed.first[i].token);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
