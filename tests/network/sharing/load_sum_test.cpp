// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/sharing/load_sum.h"

#include <cstdint>

#include "sim/random.h"

namespace trainyard {

TEST_CASE("a sum of loads is what merging them all gives, bit for bit", "[load_sharing]") {
  constexpr std::uint32_t kLinks = 12;
  TopologyBuilder builder;
  NodeId last = builder.add_node({.kind = NodeKind::Switch, .name = "first"});
  for (std::uint32_t link = 0; link < kLinks; ++link) {
    const NodeId next = builder.add_node({.kind = NodeKind::Switch, .name = "next"});
    static_cast<void>(builder.add_link(last, next, {.bandwidth = gigabits_per_second(100)}));
    last = next;
  }
  const Topology topology = std::move(builder).build();
  RandomStream random(1, "load sum test");
  for (int round = 0; round < 50; ++round) {
    LoadSum sum(topology);
    Load all;
    for (int load = 0; load < 40; ++load) {
      Load one;
      for (std::uint64_t crossed = random.below(5); crossed > 0; --crossed) {
        const auto link = static_cast<std::uint32_t>(2 + random.below(7));
        const double weight = 1.0 / (1.0 + static_cast<double>(random.below(9)));
        one.push_back({.link = LinkId(link), .weight = weight});
      }
      sum.add(one);
      all.insert(all.end(), one.begin(), one.end());
    }
    merge(all);
    const Load total = sum.total();
    REQUIRE(total.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      REQUIRE(total[i].link == all[i].link);
      REQUIRE(total[i].weight == all[i].weight);
    }
  }
}

}  // namespace trainyard
