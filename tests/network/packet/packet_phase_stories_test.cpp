// SPDX-License-Identifier: Apache-2.0
// Which phases are told by the story of another one, and which are simulated.
#include <vector>

#include "network/packet/packet_phases.h"
#include "support/catch.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kPhaseLink = fabric_link(gigabits_per_second(100), 1_us);
constexpr std::int64_t kHundredPackets = 100 * 4096;
constexpr std::uint64_t kHopsOfRing = 3 * 2 * 100;

PacketOptions fast_options() {
  PacketOptions options = line_options();
  options.packets_per_ack = 16;
  options.fast_forward = FastForward::Exact;
  return options;
}

// The connections from each host of an island to the next one.
std::vector<std::uint32_t> connect_rings(PacketEngine& engine, const TestFabric& islands) {
  std::vector<std::uint32_t> ids;
  for (std::uint32_t host = 0; host < islands.hosts.size(); ++host) {
    const std::uint32_t next = host % 3 == 2 ? host - 2 : host + 1;
    ids.push_back(engine.add_connection(path_on_island(host, next)));
  }
  return ids;
}

TEST_CASE("of rings that begin at once one is simulated, and others of another rate are too") {
  const LinkSpec fast = fabric_link(gigabits_per_second(200), 1_us);
  const TestFabric islands = islands_of({kPhaseLink, kPhaseLink, kPhaseLink, fast});
  PacketEngine engine(islands.topology, fast_options());
  for (const std::uint32_t id : connect_rings(engine, islands)) {
    engine.send(id, {.time = 0, .size = kHundredPackets});
  }
  const auto completions = run_windows(engine);
  REQUIRE(completions.size() == 12);
  REQUIRE(engine.counts().packet_hops == 4 * kHopsOfRing);
  REQUIRE(engine.counts().skipped_hops == 2 * kHopsOfRing);
}

TEST_CASE("a ring that departs from its story is simulated from its beginning") {
  const TestFabric islands = islands_of({kPhaseLink, kPhaseLink});
  PacketEngine engine(islands.topology, fast_options());
  const std::vector<std::uint32_t> ids = connect_rings(engine, islands);
  for (const std::uint32_t id : ids) {
    engine.send(id, {.time = 0, .size = kHundredPackets});
  }
  std::vector<PacketEngine::Completion> completions;
  while (engine.next_border() <= 10'000'000) {
    engine.run_window(completions);
  }
  // Only the second island has more to send.
  engine.send(ids[3], {.time = 10'000'000, .size = kHundredPackets});
  while (engine.next_border() != kNeverTime) {
    engine.run_window(completions);
  }
  REQUIRE(completions.size() == 7);
  REQUIRE(engine.counts().packet_hops == 2 * kHopsOfRing + 200);
  REQUIRE(engine.counts().skipped_hops == 0);
}

TEST_CASE("what is sent again when all is quiet is told, what is sent earlier is not") {
  const TestFabric islands = islands_of({kPhaseLink});
  for (const Picoseconds gap : {Picoseconds{20'000'000}, Picoseconds{100'000'000}}) {
    PacketEngine engine(islands.topology, fast_options());
    const std::vector<std::uint32_t> ids = connect_rings(engine, islands);
    std::vector<PacketEngine::Completion> completions;
    for (std::int64_t time = 0; time < 3; ++time) {
      while (engine.next_border() <= time * gap) {
        engine.run_window(completions);
      }
      for (const std::uint32_t id : ids) {
        engine.send(id, {.time = time * gap, .size = kHundredPackets});
      }
    }
    while (engine.next_border() != kNeverTime) {
      engine.run_window(completions);
    }
    REQUIRE(completions.size() == 9);
    REQUIRE(engine.counts().packet_hops == 3 * kHopsOfRing);
    // A message takes 36 us.
    REQUIRE(engine.counts().skipped_hops == (gap > 36'000'000 ? 2 * kHopsOfRing : 0));
  }
}

}  // namespace
}  // namespace trainyard
