// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <vector>

#include "nccl/timing/programs.h"
#include "nccl/timing/replay.h"

namespace trainyard::nccl {
namespace {

using namespace literals;  // NOLINT(google-build-using-namespace): units only.

// 1 GB/s is a byte in a nanosecond.
constexpr Bandwidth kOneByteANanosecond = gigabytes_per_second(1);

UnitRule one_unit(SimTime cost) {
  UnitRule rule;
  rule.protocol = Protocol::Simple;
  rule.quantum = 1_B;
  rule.slices = 1;
  rule.unit_cost = cost;
  return rule;
}

ReplayLane lane(Bandwidth rate, const ChunkLoops& loops, const UnitRule& rule,
                std::uint32_t receive, std::uint32_t send) {
  return {.rate = rate,
          .program = loop_program(1, loops, rule, {receive, kNone, kNone}, {send, kNone, kNone})};
}

ChunkLoops chunks(std::uint64_t count, Bytes size) {
  return {.full = count, .chunk = size, .rest = {}};
}

TEST_CASE("a chain of blocks takes its way once and then its slowest block", "[nccl]") {
  // Three blocks copy 1,000 bytes in 1 us each, with 200 ns of cost and 300 ns of latency.
  ReplayNetwork network;
  network.connections = {{.latency = 300_ns, .slots = 8}, {.latency = 300_ns, .slots = 8}};
  const UnitRule rule = one_unit(200_ns);
  for (const std::uint64_t count : {1ULL, 5ULL, 40ULL}) {
    std::vector<ReplayLane> lanes;
    lanes.push_back(lane(kOneByteANanosecond, chunks(count, 1000_B), rule, kNone, 0));
    lanes.push_back(lane(kOneByteANanosecond, chunks(count, 1000_B), rule, 0, 1));
    lanes.push_back(lane(kOneByteANanosecond, chunks(count, 1000_B), rule, 1, kNone));
    const SimTime way = 1200_ns * 3 + 300_ns * 2;
    const SimTime rest = 1200_ns * static_cast<std::int64_t>(count - 1);
    REQUIRE(replay(network, lanes, 1'000) == way + rest);
  }
}

TEST_CASE("a watch is told of every unit, and changes nothing", "[nccl]") {
  ReplayNetwork network;
  network.connections = {{.latency = 300_ns, .slots = 2}};
  std::vector<ReplayLane> lanes;
  lanes.push_back(lane(kOneByteANanosecond, chunks(9, 1000_B), one_unit(0_ns), kNone, 0));
  lanes.push_back(lane(kOneByteANanosecond, chunks(9, 1000_B), one_unit(500_ns), 0, kNone));
  std::vector<int> seen(2);
  std::vector<SimTime> ends(2);
  const SimTime time =
      replay(network, lanes, 100,
             [&](std::uint32_t of, const ReplayUnit& unit, SimTime start, SimTime end) {
               REQUIRE(unit.bytes == 1000_B);
               REQUIRE(start >= ends[of]);
               ends[of] = end;
               ++seen[of];
             });
  REQUIRE(seen == std::vector<int>{9, 9});
  REQUIRE(std::max(ends[0], ends[1]) == time);
  REQUIRE(replay(network, lanes, 100) == time);
}

TEST_CASE("a sender waits for a free slot", "[nccl]") {
  // The receiver takes 3 us for each unit, the sender 1 us: with two slots the sender is held up,
  // and ends two units before the receiver begins its last.
  ReplayNetwork network;
  network.connections = {{.latency = 0_ns, .credit_latency = 0_ns, .slots = 2}};
  std::vector<ReplayLane> lanes;
  lanes.push_back(lane(kOneByteANanosecond, chunks(10, 1000_B), one_unit(0_ns), kNone, 0));
  lanes.push_back(lane(kOneByteANanosecond, chunks(10, 1000_B), one_unit(2000_ns), 0, kNone));
  REQUIRE(replay(network, lanes, 100) == 1_us + 3_us * 10);
}

TEST_CASE("blocks that share a port get all of it between them", "[nccl]") {
  // Four blocks of 1 GB/s each over one port of 2 GB/s: the port is the limit and never idle.
  ReplayNetwork network;
  network.ports = {gigabytes_per_second(2)};
  std::vector<ReplayLane> lanes;
  for (std::uint32_t i = 0; i < 4; ++i) {
    network.connections.push_back({.ports = {0}, .slots = 8});
    lanes.push_back(lane(kOneByteANanosecond, chunks(10, 1000_B), one_unit(0_ns), kNone, i));
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    lanes.push_back(lane(gigabytes_per_second(100), chunks(10, 1000_B), one_unit(0_ns), i, kNone));
  }
  const SimTime port = transfer_time(Bytes(4 * 10 * 1000), gigabytes_per_second(2));
  const SimTime last_copy = transfer_time(1000_B, gigabytes_per_second(100));
  REQUIRE(replay(network, lanes, 100) == port + last_copy);
}

TEST_CASE("a port is idle while blocks in step all wait, until they have come apart", "[nccl]") {
  // Four blocks that could each send at 1 GB/s, over one port of 2 GB/s: beside 1 us of cost and
  // 1 us of copying, a unit has the port to itself for half of one.
  for (const std::uint64_t in_step : {0ULL, 3ULL, 10ULL}) {
    ReplayNetwork network;
    network.ports = {gigabytes_per_second(2)};
    std::vector<ReplayLane> lanes;
    for (std::uint32_t i = 0; i < 4; ++i) {
      network.connections.push_back({.ports = {0}, .slots = 8, .units_in_step = in_step});
      lanes.push_back(lane(kOneByteANanosecond, chunks(10, 1000_B), one_unit(1_us), kNone, i));
    }
    for (std::uint32_t i = 0; i < 4; ++i) {
      lanes.push_back(
          lane(gigabytes_per_second(100), chunks(10, 1000_B), one_unit(0_ns), i, kNone));
    }
    const SimTime busy = transfer_time(Bytes(4 * 10 * 1000), gigabytes_per_second(2));
    // Before the first unit, and after each of those in step but the last of all.
    const SimTime idle = 1_us * static_cast<std::int64_t>(1 + std::min<std::uint64_t>(in_step, 9));
    const SimTime last_copy = transfer_time(1000_B, gigabytes_per_second(100));
    INFO(in_step << " units in step");
    REQUIRE(replay(network, lanes, 100) >= busy + idle - 250_ns);
    REQUIRE(replay(network, lanes, 100) <= busy + idle + 1_us + last_copy);
  }
}

TEST_CASE("flags in the lines let a receiver begin with the first of them", "[nccl]") {
  for (const bool flags : {false, true}) {
    ReplayNetwork network;
    network.connections = {{.latency = 100_ns, .flags_in_line = flags, .slots = 8}};
    std::vector<ReplayLane> lanes;
    lanes.push_back(lane(kOneByteANanosecond, chunks(1, 1000_B), one_unit(0_ns), kNone, 0));
    lanes.push_back(lane(kOneByteANanosecond, chunks(1, 1000_B), one_unit(0_ns), 0, kNone));
    REQUIRE(replay(network, lanes, 10) == (flags ? 1100_ns : 2100_ns));
  }
}

TEST_CASE("a proxy posts one message after the other, and whole steps only", "[nccl]") {
  // LL: two passes make a step of one message. The host takes 500 ns on each side.
  ReplayNetwork network;
  network.hosts = 2;
  network.ports = {kOneByteANanosecond};
  network.connections = {{.ports = {0},
                          .latency = 2_us,
                          .slots = 16,
                          .proxied = true,
                          .sending_host = 0,
                          .receiving_host = 1,
                          .host_cost = 500_ns}};
  UnitRule rule;
  rule.protocol = Protocol::LL;
  rule.quantum = 1000_B;
  rule.unit_cost = 400_ns;
  std::vector<ReplayLane> lanes;
  const Bandwidth fast = gigabytes_per_second(1'000);
  const SimTime copy = transfer_time(1000_B, fast) + 400_ns;
  lanes.push_back(lane(fast, chunks(1, 2000_B), rule, kNone, 0));
  lanes.push_back(lane(fast, chunks(1, 2000_B), rule, 0, kNone));
  REQUIRE(replay(network, lanes, 10) == copy * 2 + 500_ns + 2000_ns + 2_us + 500_ns + copy * 2);
}

// One message of two units, 2,000 bytes in all, from host 0 to host 1 without ports.
SimTime message_time(const HostWork& work) {
  ReplayNetwork network;
  network.hosts = 2;
  network.connections = {{.slots = 16,
                          .proxied = true,
                          .sending_host = 0,
                          .receiving_host = 1,
                          .host_cost = 500_ns,
                          .host_work = work}};
  UnitRule rule;
  rule.protocol = Protocol::LL;
  rule.quantum = 1500_B;
  std::vector<ReplayLane> lanes;
  lanes.push_back(lane(kOneByteANanosecond, chunks(1, 2000_B), rule, kNone, 0));
  lanes.push_back(lane(kOneByteANanosecond, chunks(1, 2000_B), rule, 0, kNone));
  return replay(network, lanes, 10);
}

TEST_CASE("hosts check lines, copy what they receive and agree on long messages", "[nccl]") {
  const SimTime plain = 2_us + 500_ns + 500_ns + 2_us;
  REQUIRE(message_time({}) == plain);
  REQUIRE(message_time({.long_cost = 3_us, .long_above = 2000_B}) == plain);
  REQUIRE(message_time({.long_cost = 3_us, .long_above = 1999_B}) == plain + 6_us);
  // The first 1,500 bytes are looked at while the block fills the other 500.
  REQUIRE(message_time({.check_rate = kOneByteANanosecond}) == plain + 500_ns);
  REQUIRE(message_time({.copy_rate = kOneByteANanosecond}) == plain + 2_us);
}

TEST_CASE("an empty slice waits for no port", "[nccl]") {
  // Another block keeps the port busy for 10 us. The second of two slices of 1,600 bytes waits for
  // it as well, an empty one does not.
  for (const Bytes size : {1600_B, 3200_B}) {
    ReplayNetwork network;
    network.ports = {kOneByteANanosecond};
    network.connections = {{.ports = {0}, .slots = 8}, {.ports = {0}, .slots = 8}};
    UnitRule rule = one_unit(1_us);
    rule.quantum = 1600_B;
    rule.slices = 2;
    rule.empty_cost = 200_ns;
    const Bandwidth fast = gigabytes_per_second(1'000);
    std::vector<ReplayLane> lanes;
    lanes.push_back(lane(fast, chunks(1, 10'000_B), one_unit(0_ns), kNone, 0));
    lanes.push_back(lane(fast, chunks(1, size), rule, kNone, 1));
    lanes.push_back(lane(fast, chunks(1, 10'000_B), one_unit(0_ns), 0, kNone));
    lanes.push_back(lane(fast, chunks(1, size), rule, 1, kNone));
    const SimTime copy = transfer_time(1600_B, fast);
    const SimTime first = 10_us + 1600_ns;  // The first slice has left.
    // The receiver works on it meanwhile, and on the second one when that is there.
    REQUIRE(replay(network, lanes, 10) ==
            (size == 1600_B ? first + 1_us + copy + 200_ns : first + 1_us + 1600_ns + 1_us + copy));
  }
}

TEST_CASE("a ring of blocks in step takes one block's time for each primitive", "[nccl]") {
  constexpr std::uint32_t kRanks = 5;
  ReplayNetwork network;
  const ChunkLoops loops = ring_loops(Bytes(kRanks * 1600), kRanks, Bytes(1600));
  REQUIRE(loops.full == 1);
  std::vector<ReplayLane> lanes;
  for (std::uint32_t i = 0; i < kRanks; ++i) {
    network.connections.push_back({.slots = 4});
    lanes.push_back(
        {.rate = kOneByteANanosecond,
         .program = loop_program(2 * kRanks - 1, loops, one_unit(400_ns),
                                 {(i + kRanks - 1) % kRanks, kNone, kNone}, {i, kNone, kNone})});
  }
  REQUIRE(replay(network, lanes, 100) == 2_us * (2 * kRanks - 1));
}

TEST_CASE("a long program goes on as its second half did", "[nccl]") {
  // Eight channels of four ranks over links that they overload: irregular, yet the straight line is
  // within 1 % of the whole.
  constexpr std::uint32_t kRanks = 4;
  ReplayNetwork network;
  std::vector<ReplayLane> lanes;
  const ChunkLoops loops = ring_loops(mib(64), kRanks, kib(128));
  UnitRule rule = one_unit(1_us);
  rule.slices = 2;
  network.ports.assign(2 * kRanks, gigabytes_per_second(100));
  for (std::uint32_t c = 0; c < 8; ++c) {
    for (std::uint32_t i = 0; i < kRanks; ++i) {
      network.connections.push_back(
          {.ports = {i, kRanks + (i + 1) % kRanks}, .latency = 1_us, .slots = 4});
      lanes.push_back(
          {.rate = gigabytes_per_second(20),
           .program = loop_program(2 * kRanks - 1, loops, rule,
                                   {c * kRanks + (i + kRanks - 1) % kRanks, kNone, kNone},
                                   {c * kRanks + i, kNone, kNone})});
    }
  }
  const SimTime exact = replay(network, lanes, 1'000'000);
  const auto in_line = [&](std::uint64_t exact_units) {
    return replay_in_line(lanes, exact_units,
                          [&](std::uint64_t units) { return replay(network, lanes, units); });
  };
  REQUIRE(in_line(1'000'000) == exact);
  REQUIRE(in_line(256) / exact == Approx(1.0).margin(0.01));
  // Twice the same is the same.
  REQUIRE(replay(network, lanes, 1'000'000) == exact);
}

}  // namespace
}  // namespace trainyard::nccl
