// SPDX-License-Identifier: Apache-2.0
// What holds for all algorithms: the host's part, and that a timer remembers nothing that shows.
#include "support/catch.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "nccl/types/release.h"
#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

Cluster hopper_servers_timing(int nodes) {
  return shipped_cluster("dgx-h100", {.nodes = nodes});
}

// As NCCL would plan it on the same machine if told so.
CallPlan forced_plan(int nodes, Function function, const char* algorithm, const char* protocol,
                     Bytes size) {
  const TimedJob job(hopper_servers_timing(nodes), forced(algorithm, protocol));
  const CallPlan plan = job.plan(function, size);
  REQUIRE(to_string(plan.algorithm) == algorithm);
  REQUIRE(to_string(plan.protocol) == protocol);
  return plan;
}

// One of each kind.
std::vector<CallPlan> plans_of_two_nodes() {
  return {forced_plan(2, Function::AllReduce, "Tree", "LL128", mib(4)),
          forced_plan(2, Function::AllReduce, "NVLSTree", "Simple", mib(64)),
          forced_plan(2, Function::Broadcast, "Ring", "Simple", mib(4)),
          forced_plan(2, Function::AllReduce, "Ring", "LL", kib(64)),
          forced_plan(2, Function::AllGather, "Ring", "LL128", mib(1)),
          forced_plan(2, Function::AllReduce, "Tree", "Simple", mib(64))};
}

}  // namespace

TEST_CASE("a timer that is given another profile times as a new one would", "[nccl][timing]") {
  Profile other = default_profile();
  other.gpus.at("hopper").simple_rate = gigabytes_per_second(5);
  other.networks.at("rdma").rate = 0.5;
  const TimedJob job(hopper_servers_timing(2));
  Timer used = job.timer();
  Timer fresh = job.timer({}, other);
  for (const CallPlan& plan : plans_of_two_nodes()) {
    const SimTime before = used.collective(plan).time;
    used.use(other);
    REQUIRE(used.collective(plan).time == fresh.collective(plan).time);
    used.use(default_profile());
    REQUIRE(used.collective(plan).time == before);
  }
}

TEST_CASE("times depend neither on calls before nor on their order", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(2));
  const std::vector<CallPlan> plans = plans_of_two_nodes();
  std::vector<SimTime> alone;
  for (const CallPlan& plan : plans) {
    alone.push_back(job.timer().collective(plan).time);
  }
  const SimTime exchange = job.timer().point_to_point(Operation::AllToAll, mib(16)).time;
  std::vector<std::size_t> order(plans.size());
  std::iota(order.begin(), order.end(), 0);
  Timer forwards = job.timer();
  for (const std::size_t i : order) {
    INFO(i);
    REQUIRE(forwards.collective(plans[i]).time == alone[i]);
    REQUIRE(forwards.point_to_point(Operation::AllToAll, mib(16)).time == exchange);
  }
  std::reverse(order.begin(), order.end());
  Timer backwards = job.timer();
  for (const std::size_t i : order) {
    INFO(i);
    REQUIRE(backwards.collective(plans[i]).time == alone[i]);
    REQUIRE(backwards.collective(plans[i]).time == alone[i]);
  }
}

TEST_CASE("a call in a row of calls takes no longer than one by itself", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(2));
  Timer row = job.timer();
  Timer alone = job.timer({.back_to_back = false});
  for (const CallPlan& plan : plans_of_two_nodes()) {
    const Timing by_itself = alone.collective(plan);
    REQUIRE(row.collective(plan).time <= by_itself.time);
    REQUIRE(by_itself.time == by_itself.host + by_itself.device);
  }
}

TEST_CASE("a process with several GPUs launches for each of them", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(1));
  const CallPlan plan = forced_plan(1, Function::AllReduce, "Ring", "LL", Bytes(1024));
  SimTime before;
  for (const int gpus : {2, 4, 8}) {
    const Timing timing = job.timer({.gpus_per_process = gpus}).collective(plan);
    const LaunchProfile& launch = default_profile().launch;
    REQUIRE(timing.host >= launch.shared_process + launch.per_gpu * gpus);
    REQUIRE(timing.host > before);
    before = timing.host;
    // The longer one, and up to a tenth more where both are equal.
    const SimTime longer = std::max(timing.device, timing.host);
    REQUIRE(timing.time >= longer);
    REQUIRE(timing.time / longer < 1.1);
  }
}

TEST_CASE("a CUDA graph never costs more than the launches of the same host", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(1));
  const CallPlan plan = forced_plan(1, Function::AllReduce, "Ring", "LL", Bytes(1024));
  for (const int gpus : {1, 4, 8}) {
    const Timing eager = job.timer({.gpus_per_process = gpus}).collective(plan);
    const Timing graph = job.timer({.gpus_per_process = gpus, .cuda_graph = true}).collective(plan);
    REQUIRE(graph.host / eager.host == Approx(default_profile().launch.graph).margin(1e-6));
    REQUIRE(graph.device == eager.device);
    REQUIRE(graph.time <= eager.time);
  }
}

TEST_CASE("before 2.9 a process with several GPUs launches them together", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(1));
  const CallPlan plan = forced_plan(1, Function::AllReduce, "Ring", "LL", Bytes(1024));
  REQUIRE(release(Version::V2_8).launches_together);
  REQUIRE_FALSE(release(Version::V2_10).launches_together);
  Communicator old = job.communicator;
  old.version = Version::V2_8;
  Timer before(job.cluster, old, default_profile(), job.environment, {.gpus_per_process = 8});
  const Timing then = before.collective(plan);
  REQUIRE(then.host == default_profile().launch.together * 8);
  REQUIRE(then.time == then.host + then.device);
  const Timing now = job.timer({.gpus_per_process = 8}).collective(plan);
  REQUIRE(now.time < now.host + now.device);
}

TEST_CASE("before 2.13 the host spends time on each channel of each GPU", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(1));
  Communicator old = job.communicator;
  old.version = Version::V2_12;
  Timer before(job.cluster, old, default_profile(), job.environment, {.gpus_per_process = 8});
  Timer now = job.timer({.gpus_per_process = 8});
  CallPlan plan = forced_plan(1, Function::AllReduce, "Ring", "LL", Bytes(1024));
  plan.channels = 1;
  const SimTime one = before.collective(plan).host;
  const SimTime one_now = now.collective(plan).host;
  REQUIRE(one < one_now);
  plan.channels = 16;
  // Measured with 2.10.3 on eight A100: 58.5 to 60.3 us with 16 channels, 34.4 to 36.4 with one.
  const SimTime more = before.collective(plan).host - one;
  REQUIRE(more.microseconds() == Approx(24.5).margin(1.5));
  const SimTime more_now = now.collective(plan).host - one_now;
  REQUIRE(more_now * 7 == more);
}

TEST_CASE("a long kernel hides the host", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(1));
  const CallPlan plan = forced_plan(1, Function::AllReduce, "Ring", "Simple", gib(1));
  const Timing one = job.timer().collective(plan);
  const Timing all = job.timer({.gpus_per_process = 8}).collective(plan);
  REQUIRE(one.device == all.device);
  REQUIRE(all.time / one.time == Approx(1.0).margin(0.001));
}

TEST_CASE("the base of a kernel depends on the protocol, and each channel adds to it",
          "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(1));
  const Profile& profile = default_profile();
  for (const Protocol protocol : kProtocols) {
    const CallPlan plan = forced_plan(1, Function::AllReduce, "Ring",
                                      std::string(to_string(protocol)).c_str(), mib(1));
    REQUIRE(job.timer().collective(plan).device == profile.ring_base[protocol] +
                                                       profile.per_channel * plan.channels +
                                                       job.state().ring(plan));
  }
}

TEST_CASE("shares of channels are those of the plan", "[nccl][timing]") {
  CallPlan plan;
  plan.parts = {{.channels = 2, .bytes = Bytes(100), .chunk = Bytes(64)},
                {.channels = 1, .bytes = Bytes(7), .chunk = Bytes(16)}};
  const std::vector<ChannelPart> shares = channel_shares(plan);
  REQUIRE(shares.size() == 3);
  REQUIRE(shares[1].bytes == Bytes(100));
  REQUIRE(shares[2].bytes == Bytes(7));
  REQUIRE(shares[2].chunk == Bytes(16));
}

TEST_CASE("few lanes are replayed longer than many", "[nccl][timing]") {
  const TimedJob job(hopper_servers_timing(1));
  const Timer::State state = job.state();
  REQUIRE(state.units_one_by_one(1) > state.units_one_by_one(4'000));
  REQUIRE(state.units_one_by_one(1'000'000) >= 2);
}

}  // namespace trainyard::nccl
