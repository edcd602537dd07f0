// SPDX-License-Identifier: Apache-2.0
// NVLS: what each port of an NVSwitch carries, and the time on an idle switch, by formula.
#include "support/catch.h"

#include <array>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/schedule/semantics.h"
#include "support/collective_run.h"
#include "support/placed_run.h"

namespace trainyard {
namespace {

using Loads = std::vector<std::int64_t>;

constexpr std::array kNvlsEngines{Fidelity::Analytical, Fidelity::Flow};

Cluster nvswitch_server(int gpus) {
  return shipped_cluster(
      "dgx-h100",
      {.nodes = 1, .settings = {"server.gpus=" + std::to_string(gpus), "server.nvswitch_chips=5"}});
}

// Of every port that carried anything: to the switch, and from it.
std::pair<Loads, Loads> port_loads(const Cluster& cluster, const PlacedJob& job) {
  const PlacedRun run = run_placed(cluster, job);
  return {loads(cluster.topology, run, NodeKind::Gpu, NodeKind::NvSwitch),
          loads(cluster.topology, run, NodeKind::NvSwitch, NodeKind::Gpu)};
}

TEST_CASE("every port of the switch carries what NCCL's kernel moves") {
  for (int n = 2; n <= 16; ++n) {
    const Cluster cluster = nvswitch_server(n);
    for (const int pieces : {1, 3, 8}) {
      const std::int64_t block = std::int64_t{1000} * pieces;
      const std::int64_t size = block * n;
      INFO(n << " GPUs, " << pieces << " pieces");
      const auto ports = [&](Operation operation) {
        return port_loads(cluster, {.algorithm = &kNvls,
                                    .operation = operation,
                                    .size = Bytes(size),
                                    .pieces = pieces,
                                    .root = static_cast<std::uint32_t>(n - 1)});
      };
      REQUIRE(ports(Operation::AllReduce) == std::pair(Loads{size + block}, Loads{size + block}));
      REQUIRE(ports(Operation::ReduceScatter) == std::pair(Loads{size}, Loads{block}));
      REQUIRE(ports(Operation::AllGather) == std::pair(Loads{block}, Loads{size}));
      REQUIRE(ports(Operation::Broadcast) == std::pair(Loads{size}, Loads{size}));
      REQUIRE(ports(Operation::Reduce) == std::pair(Loads{size}, Loads{size}));
    }
  }
}

TEST_CASE("only the root's port is used both ways by broadcast and reduce") {
  const Cluster cluster = nvswitch_server(5);
  for (const Operation operation : {Operation::Broadcast, Operation::Reduce}) {
    const PlacedRun run = run_placed(
        cluster, {.algorithm = &kNvls, .operation = operation, .size = Bytes(1000), .root = 3});
    REQUIRE(run.bytes.size() == 6);
  }
}

// One block takes u = block / bandwidth, the blocks of a piece U = n u; a and b, here equal, are
// the latency to the switch and from it.
TEST_CASE("the time on an idle switch is that of the fullest port and of filling the pipeline") {
  const SimTime a_and_b = kIdleLatency;
  for (int n = 2; n <= 16; ++n) {
    for (const int pieces : {1, 2, 3, 7, 32}) {
      const std::int64_t block = std::int64_t{4} * 90'090;  // 4 us.
      const SimTime u = transfer_time(Bytes(block), kIdleBandwidth);
      const SimTime piece = u * n;
      for (const Fidelity fidelity : kNvlsEngines) {
        INFO(n << " ranks, " << pieces << " pieces, " << to_string(fidelity));
        const auto time = [&](Operation operation) {
          return idle_time({.algorithm = &kNvls,
                            .operation = operation,
                            .ranks = n,
                            .pieces = pieces,
                            .root = 1},
                           Bytes(block * n * pieces), fidelity);
        };
        REQUIRE(time(Operation::ReduceScatter) == piece * pieces + u + a_and_b);
        REQUIRE(time(Operation::AllGather) == piece * pieces + u + a_and_b);
        REQUIRE(time(Operation::Broadcast) == piece * (pieces + 1) + a_and_b);
        REQUIRE(time(Operation::Reduce) == piece * (pieces + 1) + a_and_b);
        const SimTime all_reduce = time(Operation::AllReduce);
        if (pieces == 1) {
          REQUIRE(all_reduce == (piece + u + a_and_b) * 2);
        } else if (fidelity == Fidelity::Flow && pieces > 2 && piece >= u * 3 + a_and_b) {
          REQUIRE(all_reduce == piece * (pieces + 1) + u * (pieces + 3) + a_and_b * 2);
        }
        REQUIRE(all_reduce >= (piece + u) * pieces + a_and_b);
      }
    }
  }
}

TEST_CASE("a message passes the switch once, whatever it does there") {
  // Two links of 350 ns and the switch of 100 ns each way (catalogue), nothing to serialise.
  const Cluster cluster = nvswitch_server(8);
  const auto time = [&](Operation operation) {
    return run_placed(cluster, {.algorithm = &kNvls, .operation = operation}).finish;
  };
  REQUIRE(time(Operation::AllGather) == nanoseconds(800));
  REQUIRE(time(Operation::AllReduce) == nanoseconds(1600));
}

TEST_CASE("the limit of large sizes is (S + S/n) / B") {
  const Bytes size = gib(8);
  for (const int n : {4, 8}) {
    const Cluster cluster = nvswitch_server(n);
    const Bandwidth port =
        cluster.topology.link(cluster.topology.links_from(cluster.gpus[0]).front()).spec.bandwidth;
    const SimTime bound = transfer_time(size + Bytes(size.count() / n), port);
    const SimTime time =
        run_placed(cluster, {.algorithm = &kNvls, .size = size, .pieces = 4096}).finish;
    REQUIRE(time > bound);
    REQUIRE(time / bound < 1.001);
  }
}

TEST_CASE("a port that is slower than the others sets the pace of all") {
  std::vector<LinkSpec> links(4, fabric_link(kIdleBandwidth, SimTime()));
  links[2].bandwidth = Bandwidth(kIdleBandwidth.bits_per_second() / 4);
  const auto schedule =
      make_flat({.algorithm = &kNvls, .operation = Operation::ReduceScatter, .ranks = 4});
  const std::int64_t block = 90'090;
  REQUIRE(run_schedule(uneven_switch(links), *schedule, Bytes(block * 4), Fidelity::Flow).finish ==
          microseconds(4 * 4) + microseconds(4));
}

}  // namespace
}  // namespace trainyard
