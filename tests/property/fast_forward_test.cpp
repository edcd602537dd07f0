// SPDX-License-Identifier: Apache-2.0
// Collectives and small steps with packets, with exact fast-forward and without: the same times and
// bytes on links, to the bit.
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/run/executor.h"
#include "network/engines/make_network.h"
#include "support/catch.h"
#include "support/collective_run.h"
#include "support/effort.h"
#include "support/messages.h"

namespace trainyard {
namespace {

using namespace literals;

struct CollectivesRun {
  std::vector<SimTime> finishes{};
  std::vector<std::int64_t> use{};  // Bytes by link.
  PacketStats packets{};
};

// Starts a schedule again and again, so long after it ended.
class Repetition final : public EventHandler {
 public:
  Repetition(Simulator& simulator, Executor& executor, const std::vector<SimTime>& pauses)
      : EventHandler(simulator), simulator_(simulator), executor_(executor), pauses_(pauses) {
    executor.notify(*this, 0);
  }

  void on_event(std::uint64_t token) override {
    if (token == 1) {
      executor_.start();
      return;
    }
    finishes_.push_back(simulator_.now());
    if (finishes_.size() < pauses_.size()) {
      simulator_.schedule(pauses_[finishes_.size()], *this, 1);
    }
  }
  [[nodiscard]] const std::vector<SimTime>& finishes() const { return finishes_; }

 private:
  Simulator& simulator_;
  Executor& executor_;
  const std::vector<SimTime>& pauses_;
  std::vector<SimTime> finishes_;
};

// One collective several times, with pauses between, on all hosts.
CollectivesRun run_collectives(const TestFabric& fabric, const FlatCollective& what, Bytes size,
                               const std::vector<SimTime>& pauses, FastForward fast_forward,
                               int threads = 1) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketOptions options = roce_options();
  options.fast_forward = fast_forward;
  options.threads = threads;
  const auto network = make_network(Fidelity::Packet, simulator, routing, options);
  const std::unique_ptr<Schedule> schedule = make_flat(what);
  std::vector<NodeId> nodes(fabric.hosts.begin(), fabric.hosts.begin() + what.ranks);
  Executor executor(simulator, *network, *schedule, nodes, size);
  Repetition repetition(simulator, executor, pauses);
  executor.start();
  simulator.run();
  CollectivesRun run{.finishes = repetition.finishes()};
  for (const LinkUse& use : network->link_use()) {
    run.use.push_back(use.bytes.count());
  }
  run.packets = network->stats().packets;
  return run;
}

void require_same_counts(const CollectivesRun& fast, const CollectivesRun& plain) {
  REQUIRE(fast.use == plain.use);
  REQUIRE(fast.packets.hops == plain.packets.hops);
  REQUIRE(fast.packets.acks == plain.packets.acks);
  REQUIRE(fast.packets.max_queued == plain.packets.max_queued);
}

TEST_CASE("collectives with fast-forward take what they take without, to the picosecond",
          "[packet]") {
  std::uint64_t skipped = 0;
  for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "fast-forward of collectives");
    const TestFabric fabric = one_switch(static_cast<int>(3 + random.below(6)),
                                         fabric_link(gigabits_per_second(100), 1_us));
    const auto ranks = static_cast<int>(fabric.hosts.size());
    const FlatCollective what{
        .algorithm = &kRing,
        .operation = random.below(2) == 0 ? Operation::AllReduce : Operation::AllGather,
        .ranks = ranks,
        .channels = static_cast<int>(1 + random.below(2)),
        .pieces = static_cast<int>(1 + random.below(3))};
    const Bytes size = 64_KiB * (what.ranks * what.channels * what.pieces);
    std::vector<SimTime> pauses;
    for (int i = 0; i < 4; ++i) {
      pauses.push_back(random.below(3) == 0 ? SimTime() : microseconds(50));
    }
    const CollectivesRun plain = run_collectives(fabric, what, size, pauses, FastForward::Off);
    const CollectivesRun fast = run_collectives(fabric, what, size, pauses, FastForward::Exact);
    REQUIRE(plain.finishes.size() == pauses.size());
    REQUIRE(fast.finishes == plain.finishes);
    require_same_counts(fast, plain);
    skipped += fast.packets.skipped_hops;
  }
  REQUIRE(skipped > 0);
}

TEST_CASE("rings over many rounds are told by their own past, to the picosecond", "[packet]") {
  std::uint64_t skipped = 0;
  std::uint64_t hops = 0;
  for (std::uint64_t seed = 0; seed < cases(40); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "fast-forward of long rings");
    const TestFabric fabric = one_switch(static_cast<int>(8 + random.below(17)),
                                         fabric_link(gigabits_per_second(100), 1_us));
    const FlatCollective what{
        .algorithm = &kRing,
        .operation = random.below(2) == 0 ? Operation::AllReduce : Operation::AllGather,
        .ranks = static_cast<int>(fabric.hosts.size()),
        .channels = 1,
        .pieces = static_cast<int>(1 + random.below(3))};
    // Chunks end with a packet that is not full, most of the time.
    const Bytes chunk(static_cast<std::int64_t>(1 + random.below(200'000)));
    const Bytes size = chunk * (what.ranks * what.channels * what.pieces);
    const std::vector<SimTime> pauses(2, random.below(2) == 0 ? SimTime() : microseconds(50));
    const CollectivesRun plain = run_collectives(fabric, what, size, pauses, FastForward::Off);
    const CollectivesRun fast = run_collectives(fabric, what, size, pauses, FastForward::Exact);
    const CollectivesRun shared =
        run_collectives(fabric, what, size, pauses, FastForward::Exact, 2);
    REQUIRE(fast.finishes == plain.finishes);
    REQUIRE(shared.finishes == plain.finishes);
    require_same_counts(fast, plain);
    REQUIRE(shared.packets.skipped_hops == fast.packets.skipped_hops);
    skipped += fast.packets.skipped_hops;
    hops += fast.packets.hops;
  }
  INFO(skipped << " of " << hops);
  REQUIRE(skipped > hops / 2);
}

}  // namespace
}  // namespace trainyard
