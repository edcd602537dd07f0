// SPDX-License-Identifier: Apache-2.0
// End-to-end speed runs, one a process so that the peak memory is that of the run:
//   scale ring RANKS           ring all_reduce of 1 GiB, all 2(N-1)N transfers, flow engine
//   scale alltoall RANKS       all-to-all of 64 MiB a rank, all N(N-1) flows at once
//   scale maxmin FLOWS         random flows of 1 to 100 MB on a 1,024-host fat-tree to completion
//   scale maxmin-equal FLOWS   the same with 50 MB each
// Prints one line: wall-clock seconds of the whole run without building the topology, transfers a
// second, simulated time, peak memory.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "fabrics.h"
#include "network/engines/make_network.h"
#include "runs.h"
#include "sim/random.h"

namespace trainyard {

namespace {

struct Outcome {
  std::uint64_t transfers = 0;
  SimTime simulated;
  NetworkStats stats;
};

Outcome run_collective(const BenchmarkFabric& fabric, Algorithm algorithm, Operation operation,
                       Bytes size) {
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = RoutingPolicy::EcmpHash, .seed = 1});
  const auto network = make_network(Fidelity::Flow, simulator, routing);
  const SimTime simulated =
      run_to_end(simulator, *network, algorithm, operation, fabric.hosts, size);
  return {
      .transfers = network->stats().messages, .simulated = simulated, .stats = network->stats()};
}

Outcome run_flows(const BenchmarkFabric& fabric, std::uint64_t flows, bool equal) {
  Simulator simulator;
  Routing routing(fabric.topology, {.policy = RoutingPolicy::EcmpHash, .seed = 1});
  const auto network = make_network(Fidelity::Flow, simulator, routing);
  CompletionCounter counter(simulator);
  RandomStream random(1, "benchmark flows");
  for (std::uint64_t flow = 0; flow < flows; ++flow) {
    const std::uint64_t source = random.below(fabric.hosts.size());
    const std::uint64_t other = random.below(fabric.hosts.size() - 1);
    const std::uint64_t target = other < source ? other : other + 1;
    const ConnectionId connection =
        network->connect({.source = fabric.hosts[source],
                          .target = fabric.hosts[target],
                          .flow_label = static_cast<std::uint32_t>(flow)});
    const std::uint64_t size = equal ? 50'000'000 : 1'000'000 + random.below(99'000'000);
    network->send(connection, Bytes(static_cast<std::int64_t>(size)), counter, flow);
  }
  simulator.run();
  CHECK(counter.count() == flows, "a flow did not finish");
  return {.transfers = flows, .simulated = simulator.now(), .stats = network->stats()};
}

int run(const std::string& what, int count) {
  const BenchmarkFabric fabric =
      what == "ring" || what == "alltoall" ? single_switch(count) : fat_tree(32);
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome;
  if (what == "ring") {
    outcome = run_collective(fabric, &kRing, Operation::AllReduce, gib(1));
  } else if (what == "alltoall") {
    outcome = run_collective(fabric, &kDirect, Operation::AllToAll, mib(64));
  } else if (what == "maxmin" || what == "maxmin-equal") {
    outcome = run_flows(fabric, static_cast<std::uint64_t>(count), what == "maxmin-equal");
  } else {
    fmt::print(stderr, "scale: expected ring, alltoall, maxmin or maxmin-equal, found {}\n", what);
    return 2;
  }
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  fmt::print(
      "{:>12} {:>6}: {:8.3f} s {:7.2f} M transfers/s  simulated {:.3f} ms  {:.0f} MiB  "
      "solves {}  rate changes {}\n",
      what, count, wall.count(), static_cast<double>(outcome.transfers) / wall.count() / 1e6,
      outcome.simulated.seconds() * 1e3, peak_mebibytes(), outcome.stats.solves,
      outcome.stats.rate_changes);
  return 0;
}

}  // namespace

}  // namespace trainyard

int main(int argc, char** argv) {
  if (argc != 3 || std::atoi(argv[2]) < 2) {
    fmt::print(stderr, "usage: scale ring|alltoall|maxmin|maxmin-equal COUNT\n");
    return 2;
  }
  return trainyard::run(argv[1], std::atoi(argv[2]));
}
