// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/graph/dependency_graph.h"

#include <cstdint>
#include <vector>

namespace trainyard {
namespace {

std::vector<std::uint32_t> values(const std::vector<LinkId>& links) {
  std::vector<std::uint32_t> result;
  for (const LinkId link : links) {
    result.push_back(link.value());
  }
  return result;
}

TEST_CASE("a chain has no cycle, its closing link makes one") {
  DependencyGraph graph(5, 1);
  for (std::uint32_t link = 0; link + 1 < 5; ++link) {
    graph.add(link, link + 1);
  }
  REQUIRE(graph.find_cycle().empty());
  graph.add(graph.buffer(LinkId(4), 0), graph.buffer(LinkId(2), 0));
  REQUIRE(values(graph.find_cycle()) == std::vector<std::uint32_t>{2, 3, 4});
}

TEST_CASE("a second virtual channel breaks a cycle") {
  for (const int channels : {1, 2}) {
    constexpr std::uint32_t kRing = 6;
    DependencyGraph graph(kRing, channels);
    for (std::uint32_t link = 0; link < kRing; ++link) {
      const std::uint32_t next = (link + 1) % kRing;
      // The last link is the date line: behind it, traffic stays in the highest channel.
      for (int channel = 0; channel < channels; ++channel) {
        const int beyond = next == 0 ? channels - 1 : channel;
        if (!(channels == 2 && channel == 1 && next == 0)) {
          graph.add(graph.buffer(LinkId(link), channel), graph.buffer(LinkId(next), beyond));
        }
      }
    }
    REQUIRE(graph.find_cycle().size() == (channels == 1 ? kRing : 0));
  }
}

TEST_CASE("hubs join many to many and are not named in cycles") {
  DependencyGraph graph(4, 1);
  const std::uint32_t hub = graph.add_hubs(1);
  graph.add(0, hub);
  graph.add(1, hub);
  graph.add(hub, 2);
  graph.add(hub, 3);
  REQUIRE(graph.find_cycle().empty());
  graph.add(3, 1);
  REQUIRE(values(graph.find_cycle()).size() == 2);
}

TEST_CASE("a chain of a million links is searched without recursion") {
  constexpr std::uint32_t kLinks = 1'000'000;
  DependencyGraph graph(kLinks, 1);
  for (std::uint32_t link = 0; link + 1 < kLinks; ++link) {
    graph.add(link, link + 1);
  }
  REQUIRE(graph.find_cycle().empty());
}

}  // namespace
}  // namespace trainyard
