// SPDX-License-Identifier: Apache-2.0
// Long transfers that stand still: how much is skipped, what stops it, and that nothing changes.
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "network/packet/packet_phases.h"
#include "support/catch.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kStillLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr std::int64_t kManyPackets = 20'000;

PacketOptions still_options(FastForward fast_forward) {
  PacketOptions options = line_options();
  options.packets_per_ack = 16;
  options.fast_forward = fast_forward;
  return options;
}

struct StillRun {
  std::vector<std::tuple<Picoseconds, std::uint64_t>> completions{};
  std::vector<std::uint64_t> counted{};
  std::uint64_t skipped = 0;
};

StillRun finish(PacketEngine& engine, std::vector<PacketEngine::Completion> completions) {
  while (engine.next_border() != kNeverTime) {
    engine.run_window(completions);
  }
  StillRun run;
  for (const PacketEngine::Completion& completion : completions) {
    run.completions.emplace_back(completion.time, completion.order);
  }
  const PacketEngine::Counts counts = engine.counts();
  run.counted = {counts.messages, counts.completed, counts.packet_hops, counts.acks,
                 static_cast<std::uint64_t>(counts.bytes)};
  for (const Port& port : engine.fabric().ports()) {
    run.counted.insert(run.counted.end(), {port.counters.packets, port.counters.bytes,
                                           static_cast<std::uint64_t>(port.counters.max_queued)});
  }
  run.skipped = counts.skipped_hops;
  return run;
}

// A long transfer, and one packet from another host to the same target at `time`.
StillRun run_disturbed(Picoseconds time, FastForward fast_forward) {
  const TestFabric islands = islands_of({kStillLink});
  PacketEngine engine(islands.topology, still_options(fast_forward));
  const std::uint32_t one = engine.add_connection(path_on_island(0, 2));
  const std::uint32_t other = engine.add_connection(path_on_island(1, 2));
  engine.send(one, {.time = 0, .size = kManyPackets * 4096});
  std::vector<PacketEngine::Completion> completions;
  while (engine.next_border() <= time) {
    engine.run_window(completions);
  }
  engine.send(other, {.time = time, .size = 4096});
  return finish(engine, std::move(completions));
}

TEST_CASE("a long transfer is simulated at its beginning and its end only") {
  for (const FastForward fast_forward : {FastForward::Off, FastForward::Exact}) {
    const TestFabric islands = islands_of({kStillLink});
    PacketEngine engine(islands.topology, still_options(fast_forward));
    const std::uint32_t id = engine.add_connection(path_on_island(0, 1));
    engine.send(id, {.time = 0, .size = kManyPackets * 4096});
    const StillRun run = finish(engine, {});
    // Two links: a packet more than the message, stored once.
    const Picoseconds full = engine.fabric().ports().front().full_time;
    REQUIRE(std::get<0>(run.completions.front()) == (kManyPackets + 1) * full + 2'000'000);
    REQUIRE(run.counted[2] == 2 * kManyPackets);
    REQUIRE(run.counted[3] == kManyPackets / 16);
    const bool is_fast = fast_forward == FastForward::Exact;
    REQUIRE((run.skipped > kManyPackets * 2 * 95 / 100) == is_fast);
  }
}

TEST_CASE("a packet that comes in between is simulated with all that it meets") {
  for (const Picoseconds time : {Picoseconds{1'000'000'001}, Picoseconds{3'333'333'333}}) {
    const StillRun plain = run_disturbed(time, FastForward::Off);
    const StillRun fast = run_disturbed(time, FastForward::Exact);
    REQUIRE(fast.completions == plain.completions);
    REQUIRE(fast.counted == plain.counted);
    REQUIRE(fast.skipped > kManyPackets * 2 * 9 / 10);
  }
}

TEST_CASE("windows may become shorter while something stands still") {
  std::array<StillRun, 2> runs;
  for (const FastForward fast_forward : {FastForward::Off, FastForward::Exact}) {
    const TestFabric islands =
        islands_of({kStillLink, fabric_link(gigabits_per_second(100), 100_ns)});
    PacketEngine engine(islands.topology, still_options(fast_forward));
    const std::uint32_t one = engine.add_connection(path_on_island(0, 2));
    engine.send(one, {.time = 0, .size = kManyPackets * 4096});
    std::vector<PacketEngine::Completion> completions;
    constexpr Picoseconds kLater = 2'000'000'007;
    while (engine.next_border() <= kLater) {
      engine.run_window(completions);
    }
    const std::uint32_t other = engine.add_connection(path_on_island(3, 5));
    engine.send(other, {.time = kLater, .size = 40 * 4096});
    runs[fast_forward == FastForward::Exact ? 1 : 0] = finish(engine, std::move(completions));
  }
  REQUIRE(runs[1].completions == runs[0].completions);
  REQUIRE(runs[1].counted == runs[0].counted);
  REQUIRE(runs[1].skipped > kManyPackets * 2 * 9 / 10);
}

}  // namespace
}  // namespace trainyard
