// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/lowering/lowered_rank.h"

#include <vector>

namespace trainyard {
namespace {

using namespace literals;

struct RankCase {
  ParallelPlan plan = {.tensor = 2, .data = 4};
  std::vector<int> servers = {0, 0, 0, 0, 1, 1, 1, 1};
  OperationGraph graph = OperationGraph(8);
  PlanCommunicators communicators = PlanCommunicators(plan, servers, servers, graph);
};

UnitCall tensor_call() {
  return {.call = {.group = RankGroupKind::Tensor, .elements = 8}, .part = StepPart::Tensor};
}

}  // namespace

TEST_CASE("groups are communicators, each once, that take the time of the widest",
          "[lowered_rank]") {
  RankCase item;
  const CommunicatorId first = item.communicators.of(RankGroupKind::Tensor, 2);
  REQUIRE(item.communicators.of(RankGroupKind::Tensor, 3) == first);
  REQUIRE(item.communicators.of(RankGroupKind::Tensor, 4) != first);
  REQUIRE(item.graph.communicators()[first.value()].ranks == std::vector<int>{2, 3});
  REQUIRE(item.graph.communicators()[first.value()].timed_as == std::vector<int>{0, 1});
  const CommunicatorId all = item.communicators.all();
  REQUIRE(item.graph.communicators()[all.value()].ranks.size() == 8);
  REQUIRE(item.communicators.all() == all);
}

TEST_CASE("phases of a unit follow each other, and the host runs beside all of them",
          "[lowered_rank]") {
  RankCase item;
  LoweredRank rank(0, item.graph, item.communicators);
  const std::uint32_t mix = item.graph.add_mix({});
  NamedUnit unit{.name = "unit", .work = {}, .mixes = {mix, std::nullopt, mix}};
  unit.work.host = 5_us;
  unit.work.phases.push_back({.compute = {}, .calls = {tensor_call()}});
  unit.work.phases.push_back({.compute = {}, .calls = {tensor_call()}});
  unit.work.phases.push_back({.compute = {}, .calls = {}});
  rank.unit(unit);
  // compute 0 beside call 1, call 2, compute 3; host 4.
  REQUIRE(item.graph.operations().size() == 5);
  REQUIRE(item.graph.operations()[4].kind == GraphOperationKind::Host);
  REQUIRE(rank.front() == std::vector<OperationId>{OperationId(3), OperationId(4)});
  const auto waits = [&](std::uint32_t after, std::uint32_t before) {
    for (const GraphDependency& each : item.graph.dependencies()) {
      if (each.after == OperationId(after) && each.before == OperationId(before)) {
        return true;
      }
    }
    return false;
  };
  REQUIRE(waits(2, 0));  // Call 1 is before it on its stream.
  REQUIRE(waits(3, 2));
  REQUIRE(item.graph.dependencies().size() == 2);
}

TEST_CASE("messages overlapped with computation have streams of their own", "[lowered_rank]") {
  RankCase item;
  LoweredRank rank(0, item.graph, item.communicators);
  rank.compute("work", StepPart::Linear, 1_us);
  const GraphMessage message{.peer = 4, .size = Bytes(8)};
  rank.send("activation", message, true);
  rank.send("gradient", message, true);
  rank.send("activation", message, false);
  const auto stream_of = [&](std::size_t index) {
    const StreamId stream = item.graph.operations()[index].stream;
    return item.graph.streams()[stream.value()].name;
  };
  REQUIRE(stream_of(1) == "to activation 4");
  REQUIRE(stream_of(2) == "to gradient 4");
  REQUIRE(stream_of(3) == "compute");
  REQUIRE(rank.front() == std::vector<OperationId>{OperationId(3)});
  rank.receive("activation", message, true);
  REQUIRE(rank.front() == std::vector<OperationId>{OperationId(3), OperationId(4)});
}

}  // namespace trainyard
