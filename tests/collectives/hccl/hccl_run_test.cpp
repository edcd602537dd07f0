// SPDX-License-Identifier: Apache-2.0
// Closed forms of calls on shipped clusters, to the picosecond: everybody does the same at the same
// time, on links that nobody shares.
#include "support/catch.h"

#include "collectives/hccl/hccl_run.h"

#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

// Costs that cannot be taken for each other.
const HcclProfile kProfile{.call = microseconds(100),
                           .notify = nanoseconds(300),
                           .copy = nanoseconds(50),
                           .long_copy = nanoseconds(70),
                           .rdma = microseconds(11),
                           .memory = Bandwidth(1'000'000'000'000)};

Cluster servers(int nodes) {
  return shipped_cluster("ascend-910b", {.nodes = nodes});
}

HcclTiming timed(const Cluster& cluster, Operation operation, Bytes size,
                 const std::vector<std::string>& variables = {}) {
  const HcclMachine machine = hccl_machine(cluster);
  const HcclPlan plan = choose_hccl(machine, HcclEnvironment::parse(variables), operation, size);
  return time_hccl(cluster, machine, plan, kProfile, {.operation = operation, .size = size});
}

const LinkSpec& hccs(const Cluster& cluster) {
  for (const LinkId link : cluster.topology.links_from(cluster.gpus[0])) {
    if (cluster.topology.link(link).target == cluster.gpus[1]) {
      return cluster.topology.link(link).spec;
    }
  }
  FAIL("no link");
  return cluster.topology.links().front().spec;
}

}  // namespace

TEST_CASE("on one server each phase is a copy over each link", "[collectives][hccl]") {
  const Cluster cluster = servers(1);
  const LinkSpec& link = hccs(cluster);
  for (const Bytes size : {mib(1), mib(64), gib(1)}) {
    const Bytes share(size.count() / 8);
    const SimTime phase = kProfile.notify * 2 +
                          (share < kib(512) ? kProfile.copy : kProfile.long_copy) +
                          transfer_time(share, link.bandwidth) + link.latency;
    const SimTime rest = kProfile.call + transfer_time(share * 2, kProfile.memory);
    INFO(to_string(size));
    REQUIRE(timed(cluster, Operation::AllGather, size).time == rest + phase);
    REQUIRE(timed(cluster, Operation::ReduceScatter, size).time == rest + phase);
    REQUIRE(timed(cluster, Operation::AllReduce, size).time == rest + phase * 2);
  }
  REQUIRE(timed(cluster, Operation::AllReduce, kib(8)).messages == 14);
}

TEST_CASE("a recorded call of HCCL takes as long and has each message", "[collectives][hccl]") {
  const Cluster cluster = servers(2);
  const HcclMachine machine = hccl_machine(cluster);
  const HcclPlan plan =
      choose_hccl(machine, HcclEnvironment::parse({}), Operation::AllGather, mib(1));
  TraceRecorder recorder;
  const HcclTiming recorded =
      time_hccl(cluster, machine, plan, kProfile,
                {.operation = Operation::AllGather, .size = mib(1), .trace = &recorder});
  REQUIRE(recorded.time == timed(cluster, Operation::AllGather, mib(1)).time);
  REQUIRE(recorder.spans().size() == recorded.messages);
}

TEST_CASE("loops follow one another", "[collectives][hccl]") {
  const Cluster cluster = servers(2);
  const std::vector<std::string> ring{"HCCL_ALGO=level0:NA;level1:ring", "HCCL_BUFFSIZE=4"};
  const std::vector<std::string> whole{"HCCL_ALGO=level0:NA;level1:ring"};
  const auto time = [&](Bytes size, const std::vector<std::string>& variables) {
    return timed(cluster, Operation::AllReduce, size, variables).time;
  };
  // Without what is once for a call, and what is in proportion to the size.
  const auto of_schedule = [&](Bytes size, const std::vector<std::string>& variables) {
    return time(size, variables) - kProfile.call - transfer_time(size * 2, kProfile.memory);
  };
  REQUIRE(of_schedule(mib(12), ring) == of_schedule(mib(4), whole) * 3);
  REQUIRE(of_schedule(mib(14), ring) ==
          of_schedule(mib(4), whole) * 3 + of_schedule(mib(2), whole));
}

TEST_CASE("steps between servers cost a signal and a message each", "[collectives][hccl]") {
  const Cluster cluster = servers(4);
  HcclProfile slower = kProfile;
  slower.rdma += microseconds(1);
  const HcclMachine machine = hccl_machine(cluster);
  const auto difference = [&](const std::string& algorithm) {
    const std::vector<std::string> variables{"HCCL_ALGO=level0:NA;level1:" + algorithm};
    const HcclCall call{.operation = Operation::AllGather, .size = kib(64)};
    const HcclPlan plan =
        choose_hccl(machine, HcclEnvironment::parse(variables), call.operation, call.size);
    return time_hccl(cluster, machine, plan, slower, call).time -
           time_hccl(cluster, machine, plan, kProfile, call).time;
  };
  REQUIRE(difference("ring") == microseconds(3 * 2));
  REQUIRE(difference("NHR") == microseconds(2 * 2));
  REQUIRE(difference("H-D_R") == microseconds(2 * 2));
}

TEST_CASE("more ranks than steps are held for are refused", "[collectives][hccl]") {
  const Cluster cluster = servers(1);
  HcclMachine machine = hccl_machine(cluster);
  machine.shape.servers = 512;
  const HcclPlan plan = choose_hccl(machine, {}, Operation::AllReduce, mib(1));
  REQUIRE_THROWS_WITH(time_hccl(cluster, machine, plan, kProfile, {.size = mib(1)}),
                      "--runtime hccl: expected at most 2048 ranks, found 4096");
}

}  // namespace trainyard
