// SPDX-License-Identifier: Apache-2.0
// One collective on a shipped cluster, as the command line runs it.
#include "support/catch.h"

#include "collectives/run/run.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/placement/aggregation.h"
#include "support/paths.h"
#include "support/servers.h"

namespace trainyard {
namespace {

using namespace literals;

const std::filesystem::path kConfigs = source_dir() / "configs";

Cluster load(const std::string& name, int nodes, std::optional<int> gpus_per_node = {}) {
  static const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  return load_cluster(kConfigs / "clusters" / (name + ".yaml"), catalogue,
                      {.nodes = nodes, .gpus_per_node = gpus_per_node});
}

TEST_CASE("sizes are rounded as nccl-tests rounds them: parts of ranks to 16 bytes") {
  for (const Operation operation : {Operation::AllGather, Operation::ReduceScatter,
                                    Operation::AllToAll, Operation::Scatter, Operation::Gather}) {
    REQUIRE(aligned_size(operation, 100_B, 4) == 64_B);
    REQUIRE(aligned_size(operation, 63_B, 4) == 0_B);
    REQUIRE(aligned_size(operation, 64_B, 4) == 64_B);
    REQUIRE(aligned_size(operation, 1_GiB, 8) == 1_GiB);
  }
  for (const Operation operation :
       {Operation::AllReduce, Operation::Broadcast, Operation::Reduce, Operation::SendReceive}) {
    REQUIRE(aligned_size(operation, 101_B, 4) == 101_B);
  }
  REQUIRE(aligned_size(Operation::Barrier, 101_B, 4) == 0_B);
}

TEST_CASE("a ring uses all NICs of a GPU that has several, whatever the number of ranks") {
  for (const char* name : {"aws-p5", "aws-p5en"}) {  // 32 NICs of 100 Gb/s, 16 of 200.
    for (const int nodes : {2, 3, 4}) {
      INFO(name << " " << nodes);
      const Cluster cluster = load(name, nodes);
      const CollectiveJob job{.size = 1_GiB};
      const double seconds = run_collective(cluster, job).time / microseconds(1) * 1e-6;
      const double busbw =
          static_cast<double>(job.size.count()) / seconds * bus_factor(job.operation, 8 * nodes);
      REQUIRE(busbw > 0.97 * 400e9 * 0.97);
      REQUIRE(busbw <= 400e9 * 0.97);
    }
  }
}

// In the graph of q = 5 each cable carries, one way, the traffic between its own ends and that of
// the two-cable paths that pass it, 6 into it and 6 out of it: 13 pairs of switches of 4 GPUs each.
TEST_CASE("algorithms with one partner at a time use all NICs of a GPU that has several") {
  const Cluster cluster = load("aws-p5", 4, 1);
  struct Case {
    Algorithm algorithm;
    Operation operation;
  };
  for (const auto& [algorithm, operation] :
       {Case{&kDirect, Operation::SendReceive}, Case{&kPairwise, Operation::AllToAll},
        Case{&kBruck, Operation::AllToAll}, Case{&kHalvingDoubling, Operation::AllReduce},
        Case{&kHalvingDoublingFar, Operation::AllReduce},
        Case{&kRecursiveDoubling, Operation::AllReduce}}) {
    CollectiveJob job{.operation = operation, .algorithm = algorithm, .size = 256_MiB};
    const SimTime by_all = run_collective(cluster, job).time;
    job.channels = 1;
    INFO(to_string(algorithm) << " " << to_string(operation));
    REQUIRE(run_collective(cluster, job).time / by_all > 3.9);
    REQUIRE(run_collective(cluster, job).time / by_all < 4.01);
  }
}

TEST_CASE("links carry what connections send on their routes, in every engine") {
  const auto require_equal = [](const std::vector<LinkUse>& one,
                                const std::vector<LinkUse>& other) {
    REQUIRE(one.size() == other.size());
    REQUIRE(std::equal(one.begin(), one.end(), other.begin(), [](const auto& a, const auto& b) {
      return a.link == b.link && a.bytes == b.bytes;
    }));
  };
  for (const auto& [name, nodes] : {std::pair("dgx-h100", 3), std::pair("hgx-h100-clos", 16)}) {
    const Cluster cluster = load(name, nodes, 2);
    for (const Operation operation : {Operation::AllReduce, Operation::AllGather}) {
      for (const Algorithm algorithm : algorithms_for(operation)) {
        Routing routing(cluster.topology, cluster.routing);
        if (placement_error(cluster, routing, algorithm)) {
          continue;
        }
        INFO(name << " " << to_string(operation) << " " << to_string(algorithm));
        CollectiveJob job{.operation = operation, .algorithm = algorithm, .size = 192_KiB};
        const std::vector<LinkUse> counted = link_use_of(cluster, routing, job);
        REQUIRE_FALSE(counted.empty());
        std::vector<Fidelity> engines{Fidelity::Analytical, Fidelity::Flow};
        if (algorithm == &kRing || algorithm == &kHierarchical) {
          engines.push_back(Fidelity::Packet);
        }
        for (const Fidelity fidelity : engines) {
          job.fidelity = fidelity;
          require_equal(counted, run_collective(cluster, job).link_use);
        }
      }
    }
  }
}

// A head sends one message for each edge that leaves it, of its part of what the channel has.
TEST_CASE("nvls-tree spreads the messages of each head evenly over its NICs") {
  for (const int nodes : {2, 3, 5}) {
    const Cluster cluster = load("aws-p5", nodes);
    const CollectiveResult run =
        run_collective(cluster, {.algorithm = &kNvlsTree, .size = 1_GiB, .keeps_counters = true});
    const Bytes message(gib(1).count() / (run.channels * 8));
    std::map<NodeId, Bytes> sent;  // By NIC.
    Bytes all;
    for (const LinkUse& use : run.link_use) {
      const Link& link = cluster.topology.link(use.link);
      if (link.spec.kind == LinkKind::Network &&
          cluster.topology.node(link.source).kind == NodeKind::Nic) {
        sent[link.source] += use.bytes;
        all += use.bytes;
      }
    }
    INFO(nodes);
    REQUIRE(all == gib(1) * (2 * (nodes - 1)));  // All data, both ways on each edge.
    const Routing routing(cluster.topology, cluster.routing);
    for (const NodeId gpu : cluster.gpus) {
      Bytes min = gib(1);
      Bytes max;
      for (const NodeId nic : routing.nics(gpu)) {
        min = std::min(min, sent[nic]);
        max = std::max(max, sent[nic]);
      }
      REQUIRE(max - min <= message + kib(4));  // Pieces are cut to whole bytes.
      REQUIRE(min > Bytes(0));
    }
  }
}

TEST_CASE("an all-to-all on a slim fly is limited by cables that all carry as much") {
  const Cluster cluster = load("slim-fly-q5", 200);
  const CollectiveJob job{.operation = Operation::AllToAll, .algorithm = &kDirect, .size = 64_MiB};
  const double seconds = run_collective(cluster, job).time / microseconds(1) * 1e-6;
  const double part = static_cast<double>(aligned_size(job.operation, job.size, 200).count()) / 200;
  const double bound = 13 * 16 * part / (0.96 * 50e9);
  REQUIRE(seconds > bound);
  REQUIRE(seconds < 1.01 * bound);
}

TEST_CASE("every collective runs on a cluster, repeats itself, and is faster if nothing contends") {
  const Cluster cluster = load("dgx-h100", 2);
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      INFO(to_string(algorithm) << " " << to_string(operation));
      if (placement_error(cluster, Routing(cluster.topology, cluster.routing), algorithm)) {
        continue;  // nvls does not lead between servers; see below.
      }
      const bool has_bytes = operation != Operation::Barrier;
      CollectiveJob job;
      job.operation = operation;
      job.algorithm = algorithm;
      job.size = 1_MiB;
      job.root = RankId(3);
      const CollectiveResult flow = run_collective(cluster, job);
      REQUIRE(flow.time > SimTime());
      REQUIRE(flow.network.messages > 0);
      REQUIRE(flow.bottleneck.has_value() == has_bytes);
      if (has_bytes) {
        REQUIRE(flow.bottleneck->utilisation > 0.0);
        REQUIRE(flow.bottleneck->utilisation <= 1.0);
      }
      REQUIRE(run_collective(cluster, job).fingerprint == flow.fingerprint);
      job.fidelity = Fidelity::Analytical;
      REQUIRE(run_collective(cluster, job).time <= flow.time);
    }
  }
}

TEST_CASE("nvls runs on one server with a switch that can, and is refused elsewhere in one line") {
  CollectiveJob job;
  job.algorithm = &kNvls;
  job.size = 1_MiB;
  for (const Operation operation :
       {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter, Operation::Broadcast,
        Operation::Reduce}) {
    job.operation = operation;
    const CollectiveResult result = run_collective(load("hgx-b200", 1), job);
    REQUIRE(result.time > SimTime());
    REQUIRE(result.bottleneck->utilisation <= 1.0);
  }
  REQUIRE_THROWS_WITH(run_collective(load("dgx-a100", 1), job),
                      "DGX A100, rail-optimised HDR cannot run nvls: the switch NVSwitch2 "
                      "cannot add up in the network");
}

TEST_CASE("what would be too many pieces, connections or chunks is refused, never cut down") {
  CollectiveJob job;
  job.operation = Operation::Broadcast;
  job.size = 1_MiB;
  job.channels = 1;
  job.piece = 16_B;
  REQUIRE(run_collective(load("dgx-h100", 1), job).pieces == 65'536);
  job.piece = 15_B;
  REQUIRE_THROWS_WITH(
      run_collective(load("dgx-h100", 1), job),
      "--chunk: expected at least 16B for 1MiB (65536 pieces on each of 1 channels), "
      "found 15B");

  CollectiveJob pairs;
  pairs.operation = Operation::AllToAll;
  pairs.algorithm = &kDirect;
  pairs.size = 1_MiB;
  pairs.channels = 64;
  REQUIRE_THROWS_WITH(
      run_collective(load("dgx-h100", 256), pairs),
      "alltoall of 2048 ranks on 64 channels: expected at most 16777216 connections, "
      "found 268435456; use fewer ranks or --channels");

  CollectiveJob ring;
  ring.size = 8_GiB;
  ring.channels = 64;
  ring.piece = 4_KiB;
  REQUIRE_THROWS_WITH(
      run_collective(load("dgx-h100", 256), ring),
      "all_reduce of 2048 ranks on 64 channels: expected at most 2147483648 chunks, "
      "found 4294967296; use a larger --chunk or fewer --channels");
}

TEST_CASE("pieces that would take hours are refused with the least that would not") {
  CollectiveJob job;
  job.size = 1_GiB;
  job.piece = 32_KiB;
  // 256 ranks, 8 channels: 1,044,480 transfers for each of 4,096 pieces.
  REQUIRE_THROWS_WITH(
      run_collective(load("dgx-h100", 32), job),
      "--chunk: expected at least 522248B for all_reduce of 1GiB by 256 ranks (at most 268435456 "
      "transfers), found 32KiB, which makes 4278190080 transfers");
  // What it says is taken, and pieces are not blamed where they change nothing.
  job.size = 1_MiB;
  job.piece = 4_KiB;
  REQUIRE(run_collective(load("dgx-h100", 2), job).pieces == 32);
}

TEST_CASE("channels and pieces can be given") {
  const Cluster cluster = load("dgx-h100", 1);
  CollectiveJob job;
  job.operation = Operation::Broadcast;
  job.size = 1_MiB;
  job.channels = 3;
  job.piece = 100'000_B;
  const CollectiveResult result = run_collective(cluster, job);
  REQUIRE(result.channels == 3);
  REQUIRE(result.pieces == 4);  // 349,525 bytes a channel.
  REQUIRE(result.network.messages == 3 * 4 * 7);
}

TEST_CASE("a single rank takes no time and has no bottleneck") {
  const Cluster cluster = load("dgx-h100", 1, 1);
  CollectiveJob job;
  job.size = 1_MiB;
  const CollectiveResult result = run_collective(cluster, job);
  REQUIRE(result.time == SimTime());
  REQUIRE_FALSE(result.bottleneck.has_value());
}

TEST_CASE("a run that loses messages has a complaint instead of a time, and its counters") {
  const Cluster cluster = load("h100-1gpu-400g", 8);
  CollectiveJob job{.operation = Operation::Gather,
                    .algorithm = &kDirect,
                    .size = 8_MiB,
                    .fidelity = Fidelity::Packet,
                    .keeps_counters = true};
  const CollectiveResult whole = run_collective(cluster, job);
  REQUIRE(!whole.complaint);
  REQUIRE(whole.time > SimTime());
  REQUIRE(!whole.port_counters->empty());
  job.packet.pfc = false;
  job.packet.buffer = 50'000_B;
  job.packet.control = CongestionControl::None;
  job.keeps_counters = false;
  const CollectiveResult broken = run_collective(cluster, job);
  REQUIRE(broken.complaint.value().find("packets were lost") != std::string::npos);
  REQUIRE(broken.network.packets.drops > 0);
  REQUIRE(!broken.bottleneck);
  REQUIRE(!broken.port_counters);
}

TEST_CASE("progress counts what is received and changes nothing") {
  const Cluster cluster = load("dgx-h100", 8);
  const CollectiveJob job{.size = 1_GiB};
  const std::uint64_t fingerprint = run_collective(cluster, job).fingerprint;
  TransferProgress progress;
  const CollectiveResult result = run_collective(cluster, job, &progress);
  REQUIRE(result.fingerprint == fingerprint);
  REQUIRE(progress.runs == 1);
  REQUIRE(progress.all == result.network.messages);
  REQUIRE(progress.done == progress.all / 4'096 * 4'096);
  REQUIRE(progress.done > 0);
}

TEST_CASE("a trace is filled and changes nothing") {
  const Cluster cluster = load("dgx-h100", 1);
  CollectiveJob job;
  job.size = 1_MiB;
  const CollectiveResult plain = run_collective(cluster, job);
  TraceRecorder trace;
  job.trace = &trace;
  REQUIRE(run_collective(cluster, job).fingerprint == plain.fingerprint);
  REQUIRE(trace.spans().size() == plain.network.messages);
}

// Every operation with every algorithm that the cluster can run, kept within the contract by
// run_collective itself.
void require_all_run(const Cluster& cluster) {
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      INFO(to_string(algorithm) << " " << to_string(operation));
      if (placement_error(cluster, Routing(cluster.topology, cluster.routing), algorithm)) {
        continue;
      }
      CollectiveJob job;
      job.operation = operation;
      job.algorithm = algorithm;
      job.size = 1_MiB;
      job.root = RankId(static_cast<std::uint32_t>(cluster.gpus.size() - 1));
      const CollectiveResult flow = run_collective(cluster, job);
      REQUIRE(flow.time > SimTime());
      REQUIRE(run_collective(cluster, job).fingerprint == flow.fingerprint);
      job.fidelity = Fidelity::Analytical;
      REQUIRE(run_collective(cluster, job).time <= flow.time);
    }
  }
}

TEST_CASE("every collective runs over PCIe alone, on meshes, unequal servers and grids") {
  require_all_run(load("rtx4090-pcie", 1));
  require_all_run(load("dgx-1", 1));
  require_all_run(load("dgx-1", 3, 4));
  require_all_run(cluster_of({{.gpus = 4, .nics = 4}, {.gpus = 6, .nics = 3}}));
  require_all_run(cluster_of({{.gpus = 1, .nics = 1},
                              {.gpus = 8, .nics = 2, .scale_up = TestScaleUp::Pcie},
                              {.gpus = 3, .nics = 3, .scale_up = TestScaleUp::Chain}}));
  require_all_run(grid_cluster({3, 2, 2}, {true, false, false}));
}

double bus_bandwidth(const Cluster& cluster, const CollectiveJob& job) {
  const double size = static_cast<double>(job.size.count());
  return size * 8.0 / run_collective(cluster, job).time.seconds() *
         bus_factor(job.operation, static_cast<int>(cluster.gpus.size()));
}

// A channel's ring enters and leaves each server once, so what its NICs carry each way in
// all_reduce is 2 (N-1)/N S, spread evenly: bus bandwidth is that of the server with fewest NICs.
TEST_CASE("rings over unequal servers have the bus bandwidth of the NICs of the least of them") {
  const auto server = [](int gpus, int nics) { return TestServer{.gpus = gpus, .nics = nics}; };
  struct Case {
    std::vector<TestServer> servers;
    int fewest_nics;
  };
  for (const Case& item :
       {Case{{server(4, 4), server(6, 6)}, 4}, Case{{server(8, 2), server(4, 4), server(3, 3)}, 2},
        Case{{server(1, 1), server(8, 8)}, 1}, Case{{server(6, 3), server(4, 4)}, 3}}) {
    CollectiveJob job;
    job.size = 4_GiB;
    const double ideal =
        static_cast<double>(kTestNic.bits_per_second()) * static_cast<double>(item.fewest_nics);
    const double bandwidth = bus_bandwidth(cluster_of(item.servers), job);
    INFO(bandwidth << " of " << ideal);
    REQUIRE(bandwidth <= ideal * 1.000'001);
    REQUIRE(bandwidth >= ideal * 0.99);
  }
}

// Each of two rings of opposite directions has half of the data, and each of its hops has a link of
// its own: 2 (N-1)/N (S/2) a link, so the bus bandwidth is twice that of a link.
TEST_CASE("rings over an idle torus have twice the bandwidth of a link") {
  for (const Cluster& cluster :
       {grid_cluster({4, 4}, {true, true}), grid_cluster({3, 5}, {true, true}),
        grid_cluster({4, 2, 3}, {true, false, true}), grid_cluster({3, 4}, {false, false})}) {
    CollectiveJob job;
    job.size = 4_GiB;
    const double link = static_cast<double>(kTestNic.bits_per_second());
    const double bandwidth = bus_bandwidth(cluster, job);
    INFO(bandwidth << " of twice " << link);
    REQUIRE(bandwidth <= 2.0 * link * 1.000'001);
    REQUIRE(bandwidth >= 2.0 * link * 0.999);
    job.algorithm = &kHalvingDoubling;
    REQUIRE(bus_bandwidth(cluster, job) < bandwidth);
  }
}

CommunicatorJob pair_job(int first, int second, Bytes size, SimTime start = {}) {
  return {.ranks = {first, second},
          .job = {.operation = Operation::SendReceive, .algorithm = &kDirect, .size = size},
          .start = start};
}

TEST_CASE("a communicator of all ranks takes what the collective takes by itself", "[groups]") {
  const Cluster cluster = load("dgx-h100", 2);
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  for (const Fidelity fidelity : {Fidelity::Flow, Fidelity::Packet}) {
    for (const Algorithm algorithm : {&kRing, &kTree, &kHierarchical}) {
      INFO(to_string(fidelity) << " " << to_string(algorithm));
      const CollectiveJob job{.algorithm = algorithm, .size = 4_MiB, .fidelity = fidelity};
      const SharedRun run = run_together(cluster, std::vector<CommunicatorJob>{{all, job}});
      const CollectiveResult alone = run_collective(cluster, job);
      // With packets, the time of a collective has the last acknowledgements in it.
      REQUIRE(run.ends.front() <= alone.time);
      REQUIRE(alone.time / run.ends.front() < (fidelity == Fidelity::Flow ? 1.0 + 1e-12 : 1.05));
      REQUIRE(run.channels == std::vector{alone.channels});
      REQUIRE(run.network.messages == alone.network.messages);
    }
  }
}

TEST_CASE("communicators on links of their own do not see each other", "[groups]") {
  const Cluster cluster = load("dgx-h100", 2);
  std::vector<CommunicatorJob> jobs;
  for (const int first : {0, 8}) {  // The servers.
    std::vector<int> ranks(8);
    std::iota(ranks.begin(), ranks.end(), first);
    jobs.push_back({.ranks = ranks, .job = {.size = first == 0 ? 3_MiB : 64_MiB}});
  }
  jobs.push_back(pair_job(0, 8, 16_MiB));  // Rails, each with its own NICs.
  jobs.push_back(pair_job(1, 9, 5_MiB, microseconds(7)));
  const SharedRun run = run_together(cluster, jobs);
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    INFO(index);
    const SharedRun alone = run_together(cluster, std::span(&jobs[index], 1));
    REQUIRE(run.ends[index] == alone.ends.front());
  }
}

// All messages that share the link have equal shares of its rate at any time.
TEST_CASE("communicators that share NICs share their rate while they overlap", "[groups]") {
  const Cluster cluster = load("dgx-h100", 2);
  const auto ends_of = [&](const std::vector<CommunicatorJob>& jobs) {
    return run_together(cluster, jobs).ends;
  };
  const SimTime one = ends_of({pair_job(0, 8, 64_MiB)}).front();
  const SimTime twice = ends_of({pair_job(0, 8, 128_MiB)}).front();
  const auto both = ends_of({pair_job(0, 8, 64_MiB), pair_job(0, 8, 64_MiB)});
  REQUIRE(both[0] == both[1]);
  REQUIRE(both[0] / twice == Approx(1.0).epsilon(1e-9));
  // The second begins when half of the first is sent: the first then takes as long again as it
  // had taken for half, twice; the second half of its bytes has the whole rate.
  const SimTime byte_time = twice - one;
  const SimTime half(byte_time.picoseconds() / 2);
  const SimTime latency = one - byte_time;
  const auto late = ends_of({pair_job(0, 8, 64_MiB), pair_job(0, 8, 64_MiB, half)});
  REQUIRE((late[0] - latency) / byte_time == Approx(1.5).epsilon(1e-6));
  REQUIRE((late[1] - latency) / byte_time == Approx(2.0).epsilon(1e-6));
  const auto after = ends_of({pair_job(0, 8, 64_MiB), pair_job(0, 8, 64_MiB, one)});
  REQUIRE(after == std::vector{one, one + one});
}

}  // namespace
}  // namespace trainyard
