// SPDX-License-Identifier: Apache-2.0
// Threads change no bit of a run, whatever is on: they are made to share even the smallest windows.
#include "support/catch.h"

#include "network/packet_parts/thread_pool.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <tuple>
#include <vector>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/controls.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("a pool does every task of a round before the round is over", "[threads]") {
  constexpr std::uint32_t kMembers = 4;
  constexpr std::uint64_t kRounds = 300;
  struct Board {
    std::array<std::uint64_t, kMembers> mine{};
    std::array<std::uint64_t, kMembers> seen{};
  };
  Board board;
  ThreadPool pool(kMembers);
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    pool.do_all([&](std::uint32_t number) { ++board.mine.at(number); });
    // What one has written the next one sees in the next round.
    pool.do_all([&](std::uint32_t number) {
      board.seen.at(number) += board.mine.at((number + 1) % kMembers);
    });
    REQUIRE(board.mine == std::array{round, round, round, round});
    if (round == kRounds / 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // The others fall asleep.
    }
  }
  REQUIRE(board.seen.at(0) == kRounds * (kRounds + 1) / 2);
  ThreadPool alone(1);
  alone.do_all([&](std::uint32_t number) { ++board.mine.at(number); });
}

struct ThreadedRun {
  std::vector<PacketStart> starts;
  std::vector<Woken> completions;
  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::uint64_t>> ports;
  std::array<std::uint64_t, 9> counts{};
  std::uint64_t fingerprint = 0;
  std::size_t samples = 0;
  friend bool operator==(const ThreadedRun&, const ThreadedRun&) = default;
};

ThreadedRun run_threaded(const TestFabric& fabric, const Traffic& traffic, PacketOptions options,
                         int threads) {
  options.threads = threads;
  options.min_shared = 0;
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  ThreadedRun run;
  network.engine().trace(&run.starts);
  run.completions = play(simulator, network, fabric, traffic);
  const PacketEngine::Counts counts = network.engine().counts();
  run.counts = {counts.messages,    counts.completed, static_cast<std::uint64_t>(counts.bytes),
                counts.packet_hops, counts.windows,   counts.exact_windows,
                counts.acks,        counts.cnps,      network.engine().stats().drops};
  for (const Port& port : network.engine().fabric().ports()) {
    const PortTally& tally = port.counters;
    run.ports.emplace_back(tally.packets, tally.bytes, tally.max_queued, tally.pauses_received);
  }
  run.fingerprint = simulator.fingerprint();
  const auto samples = network.samples();
  run.samples = samples ? samples->queues.size() + samples->rates.size() : 0;
  return run;
}

PacketOptions options_with(std::uint64_t kind) {
  PacketOptions options = roce_options();
  switch (kind) {
    case 0:
      break;
    case 1:
      set_control(options, shipped_control("hpcc"));
      options.pfc = false;
      break;
    case 2:
      set_control(options, shipped_control("swift"));
      options.forwarding = Forwarding::CutThrough;
      break;
    case 3:
      options.retransmission = Retransmission::SelectiveRepeat;
      options.bit_error_rate = 1e-6;
      break;
    case 4:
      options.retransmission = Retransmission::GoBackN;
      options.pfc = false;
      options.buffer = 100_KiB;
      break;
    case 5:
      options.pfc = false;
      options.fabric_credits = 64_KiB;
      break;
    default:
      options.always_exact = true;
      options.queue_times = true;
      options.sample_every = 20_us;
      break;
  }
  return options;
}

TEST_CASE("two, three and four threads do the same as one, bit by bit", "[threads]") {
  constexpr std::uint64_t kKinds = 7;
  std::uint64_t packets = 0;
  for (std::uint64_t seed = 0; seed < cases(3) * kKinds; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "threads");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = random_traffic(fabric, random);
    const PacketOptions options = options_with(seed % kKinds);
    const ThreadedRun one = run_threaded(fabric, traffic, options, 1);
    packets += one.starts.size();
    REQUIRE(run_threaded(fabric, traffic, options, static_cast<int>(2 + seed / kKinds % 3)) == one);
  }
  REQUIRE(packets > 10'000);
}

TEST_CASE("a number of threads that makes no sense is refused", "[threads]") {
  const TestFabric fabric = one_switch(2, fabric_link(gigabits_per_second(100), 1_us));
  PacketOptions options;
  options.threads = 0;
  REQUIRE_THROWS_WITH(PacketEngine(fabric.topology, options),
                      "packet engine: expected from 1 to 256 threads, found 0");
}

}  // namespace
}  // namespace trainyard
