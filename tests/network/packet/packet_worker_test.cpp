// SPDX-License-Identifier: Apache-2.0
// Windows of other lengths, and what is handed from worker to worker.
#include "support/catch.h"

#include "network/packet/packet_worker.h"

#include <algorithm>
#include <array>
#include <vector>

#include "network/packet/packet_engine.h"
#include "network/packet_parts/spsc_queue.h"
#include "sim/random.h"
#include "support/fabrics.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kWorkerLink = fabric_link(gigabits_per_second(100), 1_us);
const PacketOptions kWorkerLine = line_options();

TEST_CASE("windows that become shorter in the middle of a run change nothing") {
  const TestFabric fabric =
      uneven_switch({kWorkerLink, fabric_link(gigabits_per_second(100), 5_ns), kWorkerLink});
  const auto run = [&](bool early) {
    PacketEngine engine(fabric.topology, kWorkerLine);
    std::vector<PacketStart> starts;
    engine.trace(&starts);
    std::uint32_t near = 0;
    const std::uint32_t far = engine.add_connection(std::array{LinkId(0), LinkId(5)});
    if (early) {
      near = engine.add_connection(std::array{LinkId(0), LinkId(3)});
    }
    engine.send(far, {.time = 0, .size = 100'000});
    std::vector<PacketEngine::Completion> completions;
    while (engine.next_border() <= 3'000'000) {
      engine.run_window(completions);
    }
    if (!early) {
      near = engine.add_connection(std::array{LinkId(0), LinkId(3)});
    }
    engine.send(near, {.time = 4'100'000, .size = 50'000});
    run_windows(engine);
    std::sort(starts.begin(), starts.end());
    for (PacketStart& start : starts) {
      start.connection = start.connection == far ? 0 : 1;
    }
    return starts;
  };
  REQUIRE(run(true) == run(false));
}

TEST_CASE("what is handed over comes out in order, however far behind the taking end is") {
  RandomStream random(1, "handover");
  SpscQueue<std::uint64_t> fifo;
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  for (int round = 0; round < 1000; ++round) {
    for (std::uint64_t more = random.below(100); more > 0; --more) {
      fifo.push(pushed++);
    }
    for (std::uint64_t less = random.below(100); less > 0 && popped < pushed; --less) {
      REQUIRE(fifo.pop() == popped++);
    }
  }
  SpscQueue<std::uint64_t> moved = std::move(fifo);
  moved.push(pushed++);
  while (popped < pushed) {
    REQUIRE(moved.pop() == popped++);
  }
}

}  // namespace
}  // namespace trainyard
