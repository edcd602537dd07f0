// SPDX-License-Identifier: Apache-2.0
// Bounded fast-forward: long messages that meet, against the time that the last link needs for all
// of them, and against the full simulation. No packet is lost or counted twice.
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "network/packet/packet_phases.h"
#include "support/catch.h"
#include "support/effort.h"
#include "support/messages.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kSettlingLink = fabric_link(gigabits_per_second(100), 1_us);

PacketOptions settling_options(FastForward fast_forward, int threads = 1) {
  PacketOptions options = line_options();
  options.packets_per_ack = 16;
  options.fast_forward = fast_forward;
  options.threads = threads;
  return options;
}

struct SettledRun {
  std::vector<Picoseconds> ends{};  // Ends of messages in the order in which they were sent.
  std::vector<std::uint64_t> counted{};
  std::int64_t max_queued = 0;
  double error = 0.0;
  double skipped = 0.0;  // Part of all packet-hops.
};

SettledRun finish_settled(PacketEngine& engine) {
  SettledRun run;
  for (const PacketEngine::Completion& completion : run_windows(engine)) {
    run.ends.resize(std::max<std::size_t>(run.ends.size(), completion.order + 1));
    run.ends[completion.order] = completion.time;
  }
  const PacketEngine::Counts counts = engine.counts();
  run.counted = {counts.messages, counts.completed, counts.packet_hops, counts.acks,
                 static_cast<std::uint64_t>(counts.bytes)};
  for (const Port& port : engine.fabric().ports()) {
    run.counted.insert(run.counted.end(), {port.counters.packets, port.counters.bytes});
    run.max_queued = std::max(run.max_queued, port.counters.max_queued);
    REQUIRE(port.queued_bytes == 0);
  }
  run.error = counts.skip_error;
  run.skipped = static_cast<double>(counts.skipped_hops) / static_cast<double>(counts.packet_hops);
  return run;
}

TEST_CASE("a queue that two fill grows and drains as fast when most of it is skipped") {
  constexpr std::int64_t kEach = 20'000;
  std::array<SettledRun, 2> runs;
  for (const FastForward fast_forward : {FastForward::Off, FastForward::Bounded}) {
    const TestFabric islands = islands_of({kSettlingLink});
    PacketEngine engine(islands.topology, settling_options(fast_forward));
    const std::uint32_t one = engine.add_connection(path_on_island(0, 2));
    const std::uint32_t other = engine.add_connection(path_on_island(1, 2));
    engine.send(one, {.time = 0, .size = kEach * 4096});
    engine.send(other, {.time = 0, .size = kEach * 4096});
    const Picoseconds full = engine.fabric().ports().front().full_time;
    const SettledRun run = finish_settled(engine);
    // The last link never idles, whatever is skipped.
    const Picoseconds last = std::max(run.ends[0], run.ends[1]);
    REQUIRE(std::abs(last - ((2 * kEach + 1) * full + 2'000'000)) < 100 * full);
    runs[fast_forward == FastForward::Off ? 0 : 1] = run;
  }
  REQUIRE(runs[1].counted == runs[0].counted);
  REQUIRE(runs[1].max_queued == Approx(static_cast<double>(runs[0].max_queued)).epsilon(0.01));
  REQUIRE(runs[1].skipped > 0.7);
  REQUIRE(runs[1].error <= kFastForwardBound);
  REQUIRE(runs[0].skipped == 0.0);
}

// Long messages between the three hosts of an island, at drawn times.
SettledRun run_drawn(std::uint64_t seed, FastForward fast_forward, int threads) {
  RandomStream random(seed, "rates that settle");
  const TestFabric islands = islands_of({kSettlingLink, kSettlingLink});
  PacketEngine engine(islands.topology, settling_options(fast_forward, threads));
  std::vector<std::uint32_t> connections;
  for (std::uint32_t host = 0; host < 6; ++host) {
    for (std::uint32_t i = 1; i < 3; ++i) {
      connections.push_back(
          engine.add_connection(path_on_island(host, host / 3 * 3 + (host + i) % 3)));
    }
  }
  std::vector<PacketEngine::Completion> completions;
  Picoseconds time = 0;
  for (int i = 0; i < 12; ++i) {
    engine.send(connections[random.below(connections.size())],
                {.time = time, .size = static_cast<std::int64_t>(1 + random.below(40'000'000))});
    time += static_cast<Picoseconds>(random.below(3) == 0 ? random.below(2'000'000'000) : 0);
    while (engine.next_border() <= time) {
      engine.run_window(completions);
    }
  }
  SettledRun run = finish_settled(engine);
  for (const PacketEngine::Completion& completion : completions) {
    run.ends.resize(std::max<std::size_t>(run.ends.size(), completion.order + 1));
    run.ends[completion.order] = completion.time;
  }
  return run;
}

TEST_CASE(
    "messages that are skipped over at settled rates end within the bound, with all packets") {
  double skipped = 0.0;
  int drawn = 0;
  for (std::uint64_t seed = 0; seed < cases(40); ++seed) {
    INFO("seed=" << seed);
    const SettledRun plain = run_drawn(seed, FastForward::Off, 1);
    const SettledRun fast = run_drawn(seed, FastForward::Bounded, 1);
    const SettledRun shared = run_drawn(seed, FastForward::Bounded, 2);
    REQUIRE(fast.ends == shared.ends);
    REQUIRE(fast.counted == shared.counted);
    REQUIRE(fast.counted == plain.counted);
    for (std::size_t i = 0; i < plain.ends.size(); ++i) {
      REQUIRE(fast.ends[i] == Approx(static_cast<double>(plain.ends[i])).epsilon(0.01));
    }
    skipped += fast.skipped;
    ++drawn;
  }
  INFO(skipped << " of " << drawn);
  REQUIRE(skipped > 0.5 * drawn);
}

}  // namespace
}  // namespace trainyard
