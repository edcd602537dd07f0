// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <vector>

#include "nccl/timing/programs.h"

namespace trainyard::nccl {
namespace {

TEST_CASE("units of a chunk hold its bytes, no more and no less", "[nccl]") {
  for (const Protocol protocol : kProtocols) {
    UnitRule rule;
    rule.protocol = protocol;
    rule.quantum = Bytes(4096);
    rule.slices = 2;
    for (const std::int64_t size : {1, 16, 4095, 4096, 4097, 8192, 100'000, 2 << 20}) {
      std::int64_t sum = 0;
      for (std::uint64_t unit = 0; unit < rule.units(Bytes(size)); ++unit) {
        const Bytes bytes = rule.bytes(Bytes(size), unit);
        REQUIRE(bytes.count() >= 0);
        sum += bytes.count();
      }
      REQUIRE(sum == size);
    }
  }
}

TEST_CASE("a ring goes round as often as its bytes need", "[nccl]") {
  // NVIDIA/nccl, src/device/all_reduce.h: the last loop divides what is left by the ranks, rounded
  // up to 16 bytes.
  const ChunkLoops loops = ring_loops(Bytes(10'000), 4, Bytes(1'024));
  REQUIRE(loops.full == 2);
  REQUIRE(loops.rest == Bytes(464));  // (10,000 - 8,192) / 4 = 452.
  REQUIRE(ring_loops(Bytes(8'192), 4, Bytes(1'024)).rest == Bytes(0));
  REQUIRE(pipeline_loops(Bytes(2'500), Bytes(1'000)).full == 2);
  REQUIRE(pipeline_loops(Bytes(2'500), Bytes(1'000)).rest == Bytes(500));
}

TEST_CASE("the first primitive of a loop only sends, the last only receives", "[nccl]") {
  UnitRule rule;
  rule.quantum = Bytes(64);
  rule.slices = 2;
  rule.chunk_cost = nanoseconds(7);
  rule.unit_cost = nanoseconds(5);
  const ChunkLoops loops{.full = 2, .chunk = Bytes(1'024), .rest = Bytes(256)};
  const auto program = loop_program(7, loops, rule, {3, kNone, kNone}, {4, kNone, kNone});
  REQUIRE(program->units() == 3 * 7 * 2);
  std::int64_t sent = 0;
  std::int64_t received = 0;
  for (std::uint64_t index = 0; index < program->units(); ++index) {
    const ReplayUnit unit = program->unit(index);
    const std::uint64_t primitive = index / 2 % 7;
    REQUIRE((unit.receives[0] == kNone) == (primitive == 0));
    REQUIRE((unit.sends[0] == kNone) == (primitive == 6));
    REQUIRE(unit.cost == nanoseconds(index % 2 == 0 ? 12 : 5));
    sent += unit.sends[0] == kNone ? 0 : unit.bytes.count();
    received += unit.receives[0] == kNone ? 0 : unit.bytes.count();
  }
  REQUIRE(sent == 6 * (2 * 1'024 + 256));
  REQUIRE(received == sent);
}

TEST_CASE("a slice without bytes has a cost of its own, Simple alone", "[nccl]") {
  for (const Protocol protocol : {Protocol::Simple, Protocol::LL}) {
    UnitRule rule;
    rule.protocol = protocol;
    rule.quantum = Bytes(64);
    rule.slices = 2;
    rule.unit_cost = nanoseconds(5);
    rule.empty_cost = nanoseconds(1);
    const ChunkLoops loops{.full = 1, .chunk = Bytes(64), .rest = {}};
    const auto program = loop_program(1, loops, rule, kNoEnds, {4, kNone, kNone});
    REQUIRE(program->unit(0).cost == nanoseconds(5));
    REQUIRE(program->units() == (protocol == Protocol::Simple ? 2U : 1U));
    if (protocol == Protocol::Simple) {
      REQUIRE(program->unit(1).cost == nanoseconds(1));
      REQUIRE(program->unit(1).bytes == Bytes(0));
    }
  }
}

TEST_CASE("a group of warps does one send after the other, in whole messages", "[nccl]") {
  const std::vector<TransferJob> jobs{
      {.connection = 3, .bytes = Bytes(10'000), .message = Bytes(4'096), .unit = Bytes(2'048)},
      {.connection = 5, .bytes = Bytes(100), .message = Bytes(4'096), .unit = Bytes(4'096)}};
  for (const bool sends : {true, false}) {
    const auto program = transfer_program(jobs, sends);
    REQUIRE(program->units() == 6);
    std::vector<std::int64_t> messages;
    std::int64_t filling = 0;
    for (std::uint64_t index = 0; index < program->units(); ++index) {
      const ReplayUnit unit = program->unit(index);
      REQUIRE((sends ? unit.sends : unit.receives)[0] == (index < 5 ? 3U : 5U));
      REQUIRE((sends ? unit.receives : unit.sends)[0] == kNone);
      filling += unit.bytes.count();
      if (unit.ends_message) {
        messages.push_back(filling);
        filling = 0;
      }
    }
    REQUIRE(messages == std::vector<std::int64_t>{4'096, 4'096, 1'808, 100});
  }
}

}  // namespace
}  // namespace trainyard::nccl
