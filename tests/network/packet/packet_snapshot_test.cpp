// SPDX-License-Identifier: Apache-2.0
// When two instants are alike, and what counts how often a transfer has been like this before.
#include "network/packet/packet_snapshot.h"

#include <utility>
#include <vector>

#include "support/catch.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

PacketSnapshot snapshot_with(std::vector<std::uint64_t> words) {
  PacketSnapshot snapshot{.words = std::move(words)};
  snapshot.pending.push_back({.number = 3, .connection = 1, .size = 4096});
  snapshot.lines.push_back({.order = 7, .unsent = 1000, .sequence = 5});
  return snapshot;
}

TEST_CASE("instants are alike if only numbers and what is left of a long message differ") {
  const PacketSnapshot one = snapshot_with({1, 2});
  PacketSnapshot other = snapshot_with({1, 2});
  other.lines[0] = {.order = 7, .unsent = 500, .sequence = 9};
  other.pending[0].number = 8;
  REQUIRE(one.repeats_in(other));
  SECTION("another message has other bytes left") {
    other.lines[0].order = 8;
    REQUIRE_FALSE(one.repeats_in(other));
  }
  SECTION("nothing is sent") {
    other.lines[0].order = kNeverWindow;
    REQUIRE_FALSE(one.repeats_in(other));
  }
  SECTION("a message of another size") {
    other.pending[0].size = 4095;
    REQUIRE_FALSE(one.repeats_in(other));
  }
  SECTION("one message more") {
    other.pending.push_back(other.pending[0]);
    REQUIRE_FALSE(one.repeats_in(other));
  }
  SECTION("something else in a queue") {
    REQUIRE_FALSE(one.repeats_in(snapshot_with({1, 3})));
  }
}

// A long transfer at 100 Gb/s, cut in windows that take as long as a packet.
struct LongTransfer {
  TestFabric islands = islands_of({fabric_link(gigabits_per_second(100), 1_us)});
  PacketEngine engine;
  std::uint32_t id;
  std::vector<PacketEngine::Completion> completions{};

  explicit LongTransfer(const PacketOptions& options)
      : engine(islands.topology, options), id(engine.add_connection(path_on_island(0, 1))) {
    engine.send(id, {.time = 0, .size = 1000 * 4096});
  }
};

TEST_CASE("ports of a long transfer are as they were a packet before, its target after sixteen") {
  PacketOptions options = line_options();
  options.packets_per_ack = 16;
  const LongTransfer measure(options);
  options.longest_window = SimTime(measure.engine.fabric().ports().front().full_time);
  LongTransfer transfer(options);
  PacketEngine& engine = transfer.engine;
  PacketMessages messages;
  static_cast<void>(messages.add({.size = 1000 * 4096}));
  const std::vector<std::uint32_t> connections = {transfer.id};
  const std::vector<std::uint32_t> first_port = {engine.senders().end(transfer.id).port};
  std::vector<PacketSnapshot> snapshots;
  while (snapshots.size() < 200) {
    const Picoseconds border = engine.next_border();
    engine.run_window(transfer.completions);
    PacketSnapshot& snapshot = snapshots.emplace_back();
    snapshot.time = border;
    snapshot.add({.ports = first_port, .nodes = {}, .connections = connections, .under_way = {}},
                 engine.fabric(), engine.senders(), engine.targets(), messages);
  }
  for (std::size_t i = 100; i + 16 < snapshots.size(); ++i) {
    REQUIRE(snapshots[i].repeats_in(snapshots[i + 16]));
    REQUIRE_FALSE(snapshots[i].repeats_in(snapshots[i + 1]));
    REQUIRE(snapshots[i + 16].lines[0].sequence - snapshots[i].lines[0].sequence == 16);
    REQUIRE(snapshots[i + 16].tallies[0].packets - snapshots[i].tallies[0].packets == 16);
  }
}

}  // namespace
}  // namespace trainyard
