// SPDX-License-Identifier: Apache-2.0
// One collective on a shipped cluster, as the command line runs it.
#include "support/catch.h"

#include "collectives/run.h"

#include <filesystem>
#include <string>

namespace trainyard {
namespace {

using namespace literals;

const std::filesystem::path kConfigs = std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs";

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
}

TEST_CASE("every collective runs on a cluster, repeats itself, and is faster if nothing contends") {
  const Cluster cluster = load("dgx-h100", 2);
  for (const Operation operation : kOperations) {
    for (const Algorithm algorithm : algorithms_for(operation)) {
      INFO(to_string(algorithm) << " " << to_string(operation));
      CollectiveJob job;
      job.operation = operation;
      job.algorithm = algorithm;
      job.size = 1_MiB;
      job.root = RankId(3);
      const CollectiveResult flow = run_collective(cluster, job);
      REQUIRE(flow.time > SimTime());
      REQUIRE(flow.network.messages > 0);
      REQUIRE(flow.bottleneck.has_value());
      REQUIRE(flow.bottleneck->utilisation > 0.0);
      REQUIRE(flow.bottleneck->utilisation <= 1.0);
      REQUIRE(run_collective(cluster, job).fingerprint == flow.fingerprint);
      job.fidelity = Fidelity::Analytical;
      REQUIRE(run_collective(cluster, job).time <= flow.time);
    }
  }
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
  pairs.algorithm = Algorithm::Direct;
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

}  // namespace
}  // namespace trainyard
