// SPDX-License-Identifier: Apache-2.0
// NVLS inside and trees between: what ports and NICs carry, and the time by formula.
#include "support/catch.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/collective_run.h"
#include "support/placed_run.h"

namespace trainyard {
namespace {

using TreeLoads = std::vector<std::int64_t>;

TEST_CASE("ports of the switches carry what nvls moves, NICs a part for every edge of a tree") {
  const std::int64_t part = 1'000'000;
  const std::int64_t size = part * 16;  // Eight heads on two channels.
  for (const int nodes : {2, 4}) {
    const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = nodes});
    const PlacedRun run =
        run_placed(cluster, {.algorithm = &kNvlsTree, .size = Bytes(size), .channels = {}});
    const auto ports = [&](NodeKind source, NodeKind target) {
      return loads(cluster.topology, run, source, target);
    };
    INFO(nodes << " nodes");
    REQUIRE(ports(NodeKind::Gpu, NodeKind::NvSwitch) == TreeLoads{size + 2 * part});
    REQUIRE(ports(NodeKind::NvSwitch, NodeKind::Gpu) == TreeLoads{2 * part + size});
    if (nodes == 2) {
      // Root of one tree and leaf of the other: a part each way for each.
      REQUIRE(ports(NodeKind::Nic, NodeKind::Switch) == TreeLoads{2 * part});
      REQUIRE(ports(NodeKind::Switch, NodeKind::Nic) == TreeLoads{2 * part});
    } else {
      // Parents -,2,0,2 and 1,3,1,-: one leaf or root and one of two children and a parent.
      REQUIRE(ports(NodeKind::Nic, NodeKind::Switch) == TreeLoads{2 * part, 4 * part});
      REQUIRE(ports(NodeKind::Switch, NodeKind::Nic) == TreeLoads{2 * part, 4 * part});
    }
  }
}

TEST_CASE("one piece on two nodes takes the sum of its parts") {
  for (const int ranks : {1, 2, 4, 8}) {
    std::vector<int> natural(static_cast<std::size_t>(ranks));
    std::iota(natural.begin(), natural.end(), 0);
    const auto schedule = make_schedule(&kNvlsTree, Operation::AllReduce,
                                        {.layout = even_layout(2, {natural}), .root = RankId(0)});
    const std::int64_t size = std::int64_t{90'090} * ranks;
    const SimTime t = transfer_time(Bytes(size), kIdleBandwidth);
    const SimTime part = microseconds(1);
    const CollectiveRun run =
        run_schedule(idle_switch(2 * ranks), *schedule, Bytes(size), Fidelity::Flow);
    REQUIRE_FALSE(run.violation.has_value());
    INFO(ranks << " ranks");
    // To the switch and from it, half of kIdleLatency each; heads exchange over the same switch,
    // and the root's store to its own switch shares its port with the message to the other node.
    REQUIRE(run.finish == (t + part + kIdleLatency) * 2 + (part + kIdleLatency) * 2 + part);
  }
}

TEST_CASE("nothing to serialise leaves two passes of a switch inside and one path each way") {
  const auto latency = [](int nodes) {
    return run_placed(shipped_cluster("dgx-h100", {.nodes = nodes}), {.algorithm = &kNvlsTree})
        .finish;
  };
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2, .gpus_per_node = 1});
  const SimTime between =
      run_placed(cluster, {.algorithm = &kDirect, .operation = Operation::SendReceive}).finish;
  REQUIRE(latency(2) == nanoseconds(1600) + between * 2);
  // Depth 2: root, inner node, leaf.
  REQUIRE(latency(4) == nanoseconds(1600) + between * 4);
}

}  // namespace
}  // namespace trainyard
