// SPDX-License-Identifier: Apache-2.0
// What a small tree of three tiers says, by hand; routes that use it are compared with a search in
// up_down_router_test.cpp.
#include "support/catch.h"

#include "topology/routing/up_down_reach.h"

#include <string>
#include <utility>
#include <vector>

#include "support/fabrics.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kReachLink = fabric_link(gigabits_per_second(100), 1_us);

// Two pods of two leaves and one spine, one core; a switch that nothing is joined to. The first
// `cables` cables above the hosts are there.
class TwoPods {
 public:
  explicit TwoPods(int cables) {
    for (int index = 0; index < 4; ++index) {
      leaves_.push_back(add_switch(builder_, "leaf" + std::to_string(index)));
    }
    core_ = add_switch(builder_, "core");
    spines_ = {add_switch(builder_, "spine0"), add_switch(builder_, "spine1")};
    lonely_ = add_switch(builder_, "lonely");
    for (const NodeId leaf : leaves_) {
      builder_.add_duplex_link(add_host(builder_, hosts_), leaf, kReachLink);
    }
    const std::vector<std::pair<NodeId, NodeId>> all = {
        {leaves_[0], spines_[0]}, {leaves_[1], spines_[0]}, {leaves_[2], spines_[1]},
        {spines_[0], core_},      {spines_[1], core_},      {leaves_[3], spines_[1]}};
    for (int cable = 0; cable < cables; ++cable) {
      const auto& [low, high] = all[static_cast<std::size_t>(cable)];
      builder_.add_duplex_link(low, high, kReachLink);
    }
  }
  Topology build() { return std::move(builder_).build(); }

  TopologyBuilder builder_;
  std::vector<NodeId> hosts_;
  std::vector<NodeId> leaves_;
  std::vector<NodeId> spines_;
  NodeId core_;
  NodeId lonely_;
};

IntervalSet copy(std::span<const Interval> set) {
  return {set.begin(), set.end()};
}

TEST_CASE("switches are numbered by level and reach intervals of leaves") {
  TwoPods pods(6);
  const Topology topology = pods.build();
  const UpDownReach reach(topology);
  REQUIRE(reach.count() == 7);
  REQUIRE(reach.levels() == 3);
  REQUIRE_FALSE(reach.index(pods.lonely_));
  REQUIRE_FALSE(reach.index(pods.hosts_[0]));
  for (std::uint32_t leaf = 0; leaf < 4; ++leaf) {
    REQUIRE(reach.index(pods.leaves_[leaf]) == leaf);
    REQUIRE(reach.node(leaf) == pods.leaves_[leaf]);
    REQUIRE(copy(reach.set(leaf, 0, 0)) == IntervalSet{{leaf, leaf + 1}});
    REQUIRE(copy(reach.set(leaf, 2, 0)) == IntervalSet{{0, 4}});
    REQUIRE(reach.same_above(leaf, 2, 0));
  }
  const std::uint32_t spine = *reach.index(pods.spines_[1]);
  const std::uint32_t core = *reach.index(pods.core_);
  REQUIRE(reach.level(spine) == 1);
  REQUIRE(reach.level(core) == 2);
  REQUIRE(copy(reach.set(0, 1, 0)) == IntervalSet{{0, 2}});
  REQUIRE(copy(reach.set(spine, 0, 0)) == IntervalSet{{2, 4}});
  REQUIRE(copy(reach.set(core, 0, 0)) == IntervalSet{{0, 4}});
  REQUIRE(copy(reach.set(core, 0, 1)) == IntervalSet{{4, 6}});
  REQUIRE(reach.set(core, 1, 0).empty());
  REQUIRE(reach.set(core, 0, 9).empty());
  REQUIRE(reach.ups(0, 1) == 1);
  REQUIRE(reach.ups(0, 2) == 2);
  REQUIRE(reach.ups(spine, 0) == 1);
  REQUIRE(reach.ups(core, 0) == 0);
}

TEST_CASE("what is cut off is in no set") {
  TwoPods pods(5);  // Leaf 3 has its host only.
  const Topology topology = pods.build();
  const UpDownReach reach(topology);
  const std::uint32_t core = *reach.index(pods.core_);
  REQUIRE(copy(reach.set(core, 0, 0)) == IntervalSet{{0, 3}});
  REQUIRE_FALSE(reach.ups(0, 3));
  REQUIRE_FALSE(reach.ups(3, 0));
  REQUIRE(reach.ups(3, 3) == 0);
}

TEST_CASE("a fabric without endpoints has no switches to route by") {
  TopologyBuilder builder;
  builder.add_duplex_link(add_switch(builder, "a"), add_switch(builder, "b"), kReachLink);
  const Topology topology = std::move(builder).build();
  const UpDownReach reach(topology);
  REQUIRE(reach.count() == 0);
  REQUIRE(reach.levels() == 0);
}

}  // namespace
}  // namespace trainyard
