// SPDX-License-Identifier: Apache-2.0
// Sends and receives. A larger call may be faster, because NCCL gives it more channels: times are
// compared only where it does not.
#include "support/catch.h"

#include <cstdint>
#include <optional>

#include "nccl/tuning/point_to_point.h"
#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

Cluster hopper_servers_point(int nodes) {
  return shipped_cluster("dgx-h100", {.nodes = nodes});
}

}  // namespace

TEST_CASE("a send goes at the rate of its blocks until the link is full", "[nccl][timing]") {
  const TimedJob job(hopper_servers_point(1));
  Timer::State state = job.state();
  const double link =
      state.scale_up_rate().scaled(state.gpu.point_to_point_link).gigabytes_per_second();
  for (const Bytes size : {mib(32), mib(256), gib(8)}) {
    const PointToPointPlan plan =
        plan_point_to_point(job.communicator, job.environment, size, false);
    const double blocks = plan.parts * state.gpu.simple_rate.gigabytes_per_second();
    const double seen = bandwidth(size, state.exchange(Operation::SendReceive, size));
    const double limit = std::min(link, blocks);
    INFO(size.count() << " bytes, " << plan.parts << " channels: " << seen << " of " << limit);
    REQUIRE(seen <= limit);
    REQUIRE(seen >= 0.6 * limit);
  }
}

TEST_CASE("where all meet all, two phases use all links", "[nccl][timing][rccl]") {
  const TimedJob job(shipped_cluster("mi300x", {.nodes = 1}));
  Timer::State state = job.state();
  const RcclProfile& rccl = *state.gpu.rccl;
  const CallPlan plan = job.plan(Function::AllReduce, mib(8));
  REQUIRE(plan.algorithm == Algorithm::AllPairs);
  // A part of 1 MiB over a link of its own, there and back.
  const double link = 1e9 * state.scale_up_rate().gigabytes_per_second() * rccl.pairs_link;
  const double expected = rccl.pairs_base.simple.seconds() +
                          2 * (state.gpu.link_latency.simple.seconds() + (1 << 20) / link);
  REQUIRE(state.all_pairs(plan).seconds() == Approx(expected).epsilon(1e-6));
  // To seven others over seven links.
  REQUIRE(state.rate_to_peers(7).bits_per_second() == 7 * state.scale_up_rate().bits_per_second());
  const TimedJob switched(hopper_servers_point(1));
  Timer::State hopper = switched.state();
  REQUIRE(hopper.rate_to_peers(7).bits_per_second() == hopper.scale_up_rate().bits_per_second());
}

TEST_CASE("a kernel of sends has a block for each channel that it uses", "[nccl][timing]") {
  const TimedJob job(hopper_servers_point(1));
  const Timer::State state = job.state();
  // One part for each of the seven peers, or for the one, until parts fill the channels.
  REQUIRE(state.send_channels(Operation::AllToAll, kib(8)) == 7);
  REQUIRE(state.send_channels(Operation::SendReceive, kib(8)) == 1);
  REQUIRE(state.send_channels(Operation::AllToAll, gib(8)) == job.communicator.p2p_channels);
}

TEST_CASE("every send and receive of a call costs its host", "[nccl][timing]") {
  const TimedJob job(hopper_servers_point(1));
  Timer timer = job.timer();
  const LaunchProfile& launch = default_profile().launch;
  REQUIRE(timer.point_to_point(Operation::SendReceive, kib(8)).host ==
          launch.process_per_gpu + launch.per_send * 2);
  REQUIRE(timer.point_to_point(Operation::AllToAll, kib(8)).host ==
          launch.process_per_gpu + launch.per_send * 16);
}

TEST_CASE("more bytes to send over as many channels take no less time", "[nccl][timing]") {
  for (const int nodes : {1, 2}) {
    const TimedJob job(hopper_servers_point(nodes));
    Timer timer = job.timer();
    for (const Operation operation : {Operation::SendReceive, Operation::AllToAll}) {
      std::optional<PointToPointPlan> before;
      SimTime time_before;
      for (std::int64_t size = 1 << 10; size <= std::int64_t{1} << 32; size *= 2) {
        const Bytes share(operation == Operation::SendReceive ? size
                                                              : size / job.communicator.ranks);
        const PointToPointPlan plan =
            plan_point_to_point(job.communicator, job.environment, share, nodes > 1);
        const SimTime time = timer.point_to_point(operation, Bytes(size)).device;
        INFO(nodes << " nodes, " << size << " bytes");
        const bool same = before && before->protocol == plan.protocol &&
                          before->parts == plan.parts && before->chunk == plan.chunk;
        REQUIRE((!same || time >= time_before));
        before = plan;
        time_before = time;
      }
    }
  }
}

TEST_CASE("an all-to-all ends when its last chunks are copied out", "[nccl][timing]") {
  const TimedJob job(hopper_servers_point(1));
  Timer::State state = job.state();
  const Bytes size = mib(512);
  const Bytes share(size.count() / 8);
  const PointToPointPlan plan =
      plan_point_to_point(job.communicator, job.environment, share, false);
  const Bandwidth link = state.scale_up_rate().scaled(state.gpu.point_to_point_link);
  const SimTime ports = transfer_time(share * 7, link);
  const SimTime last = state.gpu.simple_cost + transfer_time(plan.chunk, state.gpu.simple_rate);
  const SimTime time = state.exchange(Operation::AllToAll, size);
  REQUIRE(time >= ports + last);
  REQUIRE(time <= ports + last + microseconds(20));
}

TEST_CASE("an all-to-all of several nodes is limited by the NICs of a node", "[nccl][timing]") {
  const TimedJob job(hopper_servers_point(2));
  Timer::State state = job.state();
  const Bytes size = gib(8);
  // Half of what each of eight GPUs sends leaves the node.
  const Bytes out = Bytes(size.count() / 2 * 8);
  const SimTime min = transfer_time(out, state.node_network().rate);
  const SimTime time = state.exchange(Operation::AllToAll, size);
  REQUIRE(time >= min);
  REQUIRE(time / min < 1.5);
}

TEST_CASE("between nodes a send takes longer than inside one", "[nccl][timing]") {
  const TimedJob one(hopper_servers_point(1));
  const TimedJob two(hopper_servers_point(2));
  for (const Bytes size : {Bytes(8), mib(1), gib(1)}) {
    REQUIRE(two.timer().point_to_point(Operation::SendReceive, size).device >
            one.timer().point_to_point(Operation::SendReceive, size).device);
  }
}

TEST_CASE("chunks to another node wait for the turns of the other channels", "[nccl][timing]") {
  // A GPU of one of ten nodes sends by one channel where each has eight, by two where it has four.
  for (const int gpus : {8, 4}) {
    const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 10, .gpus_per_node = gpus}));
    const int channels = gpus == 8 ? 1 : 2;
    REQUIRE(job.communicator.p2p_channels_per_peer == channels);
    Timer::State state = job.state();
    const SimTime turn = default_profile().networks.at("rdma").host_cost * 2 * (channels - 1);
    const Bytes chunk = kib(128);
    const SimTime cycle =
        transfer_time(chunk, state.gpu.simple_rate) + state.gpu.simple_cost + turn;
    const SimTime more = state.exchange(Operation::SendReceive, gib(2)) -
                         state.exchange(Operation::SendReceive, gib(1));
    const auto chunks = static_cast<double>(gib(1).count() / chunk.count() / channels);
    REQUIRE(more.seconds() == Approx(cycle.seconds() * chunks).epsilon(1e-3));
  }
}

TEST_CASE("sends to eight GPUs of another node share the same few blocks", "[nccl][timing]") {
  const TimedJob job(hopper_servers_point(2));
  // With blocks so slow that nothing else counts.
  Profile slow = default_profile();
  slow.gpus.at("hopper").simple_rate = gigabytes_per_second(1);
  Timer::State state = job.state({}, slow);
  const PointToPointPlan plan =
      plan_point_to_point(job.communicator, job.environment, mib(64), true);
  REQUIRE(plan.parts < job.communicator.p2p_channels);
  const SimTime copies = transfer_time(mib(64) * 8, gigabytes_per_second(plan.parts));
  const SimTime time = state.exchange(Operation::AllToAll, gib(1));
  REQUIRE(time >= copies);
  REQUIRE(time / copies < 1.05);
}

TEST_CASE("the last node may have fewer GPUs than the first", "[nccl][timing]") {
  const TimedJob job(
      shipped_cluster("mixed-a100", {.settings = {"servers.0.nodes=1", "servers.1.nodes=1"}}));
  REQUIRE(job.communicator.first_rank == std::vector<int>{0, 8, 12});
  REQUIRE(job.timer().point_to_point(Operation::AllToAll, mib(64)).device > SimTime(0));
}

}  // namespace trainyard::nccl
