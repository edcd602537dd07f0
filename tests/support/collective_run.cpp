// SPDX-License-Identifier: Apache-2.0
#include "support/collective_run.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "network/engines/make_network.h"
#include "support/naive_fluid.h"

namespace trainyard {

namespace {

constexpr RoutingOptions kRouting{.policy = RoutingPolicy::EcmpHash, .seed = 7};

// By rank, then by relay.
std::vector<NodeId> nodes_of(const TestFabric& fabric, const ScheduleShape& shape) {
  std::vector<NodeId> nodes(fabric.hosts.begin(), fabric.hosts.begin() + shape.ranks);
  for (int relay = 0; relay < shape.relays; ++relay) {
    nodes.push_back(fabric.switches[static_cast<std::size_t>(relay) % fabric.switches.size()]);
  }
  return nodes;
}

}  // namespace

CollectiveRun run_schedule(const TestFabric& fabric, const Schedule& schedule, Bytes size,
                           Fidelity fidelity) {
  Simulator simulator;
  Routing routing(fabric.topology, kRouting);
  const auto network = make_network(fidelity, simulator, routing);
  const std::vector<NodeId> nodes = nodes_of(fabric, schedule.shape());
  Executor executor(simulator, *network, schedule, nodes, size);
  executor.start();
  simulator.run();
  CollectiveRun run;
  run.violation = executor.contract_violation();
  run.finish = executor.finished() ? executor.finish_time() : SimTime::max();
  run.fingerprint = simulator.fingerprint();
  run.stats = network->stats();
  run.link_use = network->link_use();
  return run;
}

SimTime naive_finish(const TestFabric& fabric, const Schedule& schedule, Bytes size) {
  const ScheduleShape& shape = schedule.shape();
  const Chunking chunking(shape, size);
  Routing routing(fabric.topology, kRouting);
  NaiveFluid fluid(fabric.topology);
  const std::vector<NodeId> nodes = nodes_of(fabric, shape);
  for (std::uint32_t index = 0; index < shape.connections; ++index) {
    const ScheduleConnection ends = schedule.connection(index);
    std::vector<LinkId> path;
    CHECK(routing.route(nodes[ends.source.value()], nodes[ends.target.value()],
                        ends.flow_label.value_or(index), path),
          "the fabric does not connect two hosts");
    CHECK(fluid.connect(std::move(path)) == index, "connections are numbered from zero");
  }
  std::vector<int> arrived(shape.connections, 0);
  std::vector<bool> awaited(shape.connections, false);  // A receiver waits for the next message.
  std::vector<bool> under_way(shape.connections, false);
  std::vector<std::deque<Bytes>> held(shape.connections);
  std::vector<std::uint64_t> next(shape.lanes, 0);
  std::vector<bool> sends(shape.lanes, false);  // With rendezvous: a message has not arrived.
  std::vector<std::uint32_t> sender(shape.connections, 0);
  SimTime finish;
  while (true) {
    for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
      for (; next[lane] < schedule.step_count(LaneId(lane)); ++next[lane]) {
        const Step step = schedule.step(LaneId(lane), next[lane]);
        CHECK(is_message(step.kind), "the naive walk knows messages only");
        if (step.kind == StepKind::Send) {
          if (shape.rendezvous && sends[lane]) {
            break;
          }
          sends[lane] = true;
          sender[step.connection] = lane;
          held[step.connection].push_back(chunking.bytes(step.chunks));
        } else if (arrived[step.connection] > 0) {
          --arrived[step.connection];
          finish = fluid.now();
        } else {
          awaited[step.connection] = true;
          break;
        }
      }
    }
    for (std::uint32_t index = 0; index < shape.connections; ++index) {
      while (!held[index].empty() && (!shape.rendezvous || (awaited[index] && !under_way[index]))) {
        fluid.send(index, held[index].front());
        held[index].pop_front();
        under_way[index] = true;
      }
    }
    const std::optional<NaiveArrival> arrival = fluid.next_arrival(SimTime::max());
    if (!arrival) {
      return finish;
    }
    ++arrived[arrival->connection];
    awaited[arrival->connection] = false;
    under_way[arrival->connection] = false;
    sends[sender[arrival->connection]] = false;
  }
}

std::unique_ptr<Schedule> make_flat(const FlatCollective& what) {
  return make_schedule(what.algorithm, what.operation,
                       {.layout = flat_layout(what.ranks, what.channels),
                        .root = RankId(what.root),
                        .pieces = what.pieces});
}

SimTime idle_time(const FlatCollective& what, Bytes size, Fidelity fidelity) {
  const CollectiveRun run = run_schedule(idle_switch(what.ranks), *make_flat(what), size, fidelity);
  CHECK(!run.violation, run.violation.value_or(""));
  return run.finish;
}

}  // namespace trainyard
