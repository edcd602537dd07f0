// SPDX-License-Identifier: Apache-2.0
// Counters of phases that were told, when nothing is left to happen and when more follows.
#include <vector>

#include "network/packet/packet_phases.h"
#include "support/catch.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kEndsLink = fabric_link(gigabits_per_second(100), 1_us);

PacketOptions ends_options(FastForward fast_forward) {
  PacketOptions options = line_options();
  options.packets_per_ack = 16;
  options.fast_forward = fast_forward;
  return options;
}

// All that ports and connections count.
std::vector<std::int64_t> counted(const PacketEngine& engine) {
  const PacketEngine::Counts counts = engine.counts();
  std::vector<std::int64_t> all{static_cast<std::int64_t>(counts.messages),
                                static_cast<std::int64_t>(counts.completed), counts.bytes,
                                static_cast<std::int64_t>(counts.acks)};
  for (const Port& port : engine.fabric().ports()) {
    all.insert(all.end(),
               {static_cast<std::int64_t>(port.counters.packets),
                static_cast<std::int64_t>(port.counters.bytes), port.counters.max_queued});
  }
  for (std::uint32_t id = 0; id < engine.senders().count(); ++id) {
    all.push_back(engine.senders().end(id).sequence);
    all.push_back(engine.senders().end(id).sent_bytes);
  }
  return all;
}

// Two islands, on each of which two hosts send to the third at the same time, three times: the last
// time so soon after the one before that an ACK is still under way.
std::vector<std::vector<std::int64_t>> counted_at_rest(FastForward fast_forward) {
  const TestFabric islands = islands_of({kEndsLink, kEndsLink});
  PacketEngine engine(islands.topology, ends_options(fast_forward));
  std::vector<std::uint32_t> ids;
  for (const std::uint32_t first : {0U, 3U}) {
    for (const std::uint32_t from : {first, first + 1}) {
      ids.push_back(engine.add_connection(path_on_island(from, first + 2)));
    }
  }
  std::vector<std::vector<std::int64_t>> at_rest;
  std::vector<PacketEngine::Completion> completions;
  Picoseconds border = 0;
  const auto run = [&] {
    while (engine.next_border() != kNeverTime) {
      border = engine.next_border();
      engine.run_window(completions);
    }
    at_rest.push_back(counted(engine));
  };
  for (const Picoseconds wait : {Picoseconds{0}, Picoseconds{50'000'000}, Picoseconds{0}}) {
    const Picoseconds time = border + wait;
    for (const std::uint32_t id : ids) {
      engine.send(id, {.time = time, .size = 40 * 4096});
    }
    run();
  }
  REQUIRE(completions.size() == 12);
  const bool is_fast = fast_forward != FastForward::Off;
  REQUIRE((engine.counts().skipped_hops > 0) == is_fast);
  return at_rest;
}

TEST_CASE("counters are those of a run without fast-forward whenever nothing is left to happen") {
  REQUIRE(counted_at_rest(FastForward::Exact) == counted_at_rest(FastForward::Off));
}

}  // namespace
}  // namespace trainyard
