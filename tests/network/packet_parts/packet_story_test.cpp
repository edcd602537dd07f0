// SPDX-License-Identifier: Apache-2.0
// When the story of some ports is that of others.
#include "network/packet_parts/packet_story.h"
#include "support/catch.h"

#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kStoryLink = fabric_link(gigabits_per_second(100), 1_us);

// Connections between hosts, numbered as they come.
class StoryOf {
 public:
  explicit StoryOf(const PacketFabric& fabric) : fabric_(fabric) {}

  std::uint32_t connect(std::uint32_t from, std::uint32_t to) {
    const auto links = path_on_island(from, to);
    const std::array ports{fabric_.port_index(links[0]), fabric_.port_index(links[1])};
    return story.add_line(fabric_.ports(), ports,
                          {.rate = 1, .hops = 2, .is_paced = false, .places = {}});
  }
  void send(std::uint32_t line, Picoseconds time, std::int64_t size) {
    story.sends.push_back({.time = time, .size = size, .line = line});
  }

  PacketStory story;

 private:
  const PacketFabric& fabric_;
};

// Paths between all hosts of two islands, the second one with other links.
PacketFabric fabric_with_paths(const TestFabric& islands) {
  PacketFabric fabric(islands.topology, line_options());
  for (std::uint32_t host = 0; host < islands.hosts.size(); ++host) {
    const std::uint32_t next = host % 3 == 2 ? host - 2 : host + 1;
    static_cast<void>(fabric.add_path(path_on_island(host, next)));
  }
  return fabric;
}

TEST_CASE("a story is that of other ports while the same is sent at the same times") {
  const TestFabric islands = islands_of({kStoryLink, kStoryLink});
  const PacketFabric fabric = fabric_with_paths(islands);
  StoryOf one(fabric);
  StoryOf other(fabric);
  one.send(one.connect(0, 1), 0, 100);
  other.send(other.connect(3, 4), 0, 100);
  StoryMatch match;
  REQUIRE(match.matches(fabric.ports(), one.story, other.story, 10));
  REQUIRE(match.sends() == 1);
  REQUIRE(one.story.key(fabric.ports()) == other.story.key(fabric.ports()));
  // Something that is missing matters from its time on.
  one.send(one.connect(1, 2), 20, 50);
  REQUIRE(match.matches(fabric.ports(), one.story, other.story, 20));
  REQUIRE_FALSE(match.matches(fabric.ports(), one.story, other.story, 21));
  other.send(other.connect(4, 5), 20, 50);
  REQUIRE(match.matches(fabric.ports(), one.story, other.story, 21));
  // And so does something that is not in the story.
  other.send(0, 30, 7);
  REQUIRE_FALSE(match.matches(fabric.ports(), one.story, other.story, 40));
}

TEST_CASE("sizes, times, who sends to whom, rates and the order of links make stories differ") {
  const LinkSpec fast = fabric_link(gigabits_per_second(200), 1_us);
  const TestFabric islands = islands_of({kStoryLink, kStoryLink, fast});
  const PacketFabric fabric = fabric_with_paths(islands);
  const auto is_same = [&](std::array<std::uint32_t, 4> hosts, Picoseconds time,
                           std::int64_t size) {
    StoryOf one(fabric);
    one.send(one.connect(0, 1), 0, 100);
    one.send(one.connect(1, 2), 5, 100);
    StoryOf other(fabric);
    other.send(other.connect(hosts[0], hosts[1]), 0, 100);
    other.send(other.connect(hosts[2], hosts[3]), time, size);
    StoryMatch match;
    return match.matches(fabric.ports(), one.story, other.story, 10);
  };
  REQUIRE(is_same({3, 4, 4, 5}, 5, 100));
  REQUIRE_FALSE(is_same({3, 4, 4, 5}, 6, 100));
  REQUIRE_FALSE(is_same({3, 4, 4, 5}, 5, 101));
  REQUIRE_FALSE(is_same({3, 4, 3, 5}, 5, 100));
  REQUIRE_FALSE(is_same({6, 7, 7, 8}, 5, 100));
  // The same ring the other way round: links by which packets come are in another order.
  REQUIRE_FALSE(is_same({5, 4, 4, 3}, 5, 100));
}

}  // namespace
}  // namespace trainyard
