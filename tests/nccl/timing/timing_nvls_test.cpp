// SPDX-License-Identifier: Apache-2.0
// NVLS, NVLSTree and PAT. A loop more or less makes steps, so times are compared only where chunks
// are the same.
#include "support/catch.h"

#include <cstdint>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

Cluster hopper_servers(int nodes) {
  return shipped_cluster("dgx-h100", {.nodes = nodes});
}

Cluster single_gpus(int nodes) {
  return shipped_cluster("h100-1gpu-400g", {.nodes = nodes});
}

void require_rising(const TimedJob& job, Function function) {
  Timer timer = job.timer();
  CallPlan before;
  SimTime time_before;
  int compared = 0;
  for (std::int64_t size = 1 << 16; size <= std::int64_t{1} << 33; size *= 2) {
    const CallPlan plan = job.plan(function, Bytes(size));
    const SimTime time = timer.collective(plan).device;
    INFO(to_string(function) << " " << size);
    if (alike(plan, before)) {
      REQUIRE(time >= time_before);
      ++compared;
    }
    before = plan;
    time_before = time;
  }
  REQUIRE(compared > 5);
}

}  // namespace

TEST_CASE("more bytes by NVLS, NVLSTree or PAT take no less time", "[nccl][timing]") {
  require_rising(TimedJob(hopper_servers(1), forced("NVLS", "Simple")), Function::AllReduce);
  require_rising(TimedJob(hopper_servers(1), forced("NVLS", "Simple")), Function::AllGather);
  require_rising(TimedJob(hopper_servers(2), forced("NVLSTree", "Simple")), Function::AllReduce);
  require_rising(TimedJob(single_gpus(4), forced("PAT", "Simple")), Function::ReduceScatter);
}

TEST_CASE("NVLS carries all bytes and the share of one head over the port of each GPU",
          "[nccl][timing]") {
  const TimedJob job(hopper_servers(1), forced("NVLS", "Simple"));
  Timer::State state = job.state();
  const double heads = job.communicator.nvls_heads;
  REQUIRE(heads == 8);
  const double port = state.scale_up_rate().scaled(state.gpu.nvls->link).gigabytes_per_second();
  const double through =
      bandwidth(gib(8), state.nvls(job.plan(Function::AllReduce, gib(8)))) * (1.0 + 1.0 / heads);
  REQUIRE(through <= port);
  REQUIRE(through >= 0.8 * port);
  // Gathering, the switch multicasts: every byte comes in once.
  const double gathered = bandwidth(gib(8), state.nvls(job.plan(Function::AllGather, gib(8))));
  REQUIRE(gathered <= port);
  REQUIRE(gathered >= 0.7 * port);
}

TEST_CASE("one loop of NVLS is copied in, carried by the links and copied out", "[nccl][timing]") {
  const TimedJob job(hopper_servers(1), forced("NVLS", "Simple"));
  Timer::State state = job.state();
  const CallPlan plan = job.plan(Function::AllReduce, kib(64));
  const SimTime base = default_profile().ring_base[Protocol::Simple];
  const SimTime copies = state.gpu.nvls->head_cost * (2 * job.communicator.nvls_heads);
  REQUIRE(state.nvls(plan) >= base + copies);
  REQUIRE(state.nvls(plan) <= base + copies + microseconds(2));
}

TEST_CASE("each further loop of NVLS takes what its slowest stage does", "[nccl][timing]") {
  const TimedJob job(hopper_servers(1), forced("NVLS", "Simple"));
  Timer::State state = job.state();
  const CallPlan plan = job.plan(Function::AllReduce, mib(256));
  const CallPlan twice = job.plan(Function::AllReduce, mib(512));
  REQUIRE(alike(plan, twice));
  const Bytes loop = plan.parts.front().chunk * job.communicator.nvls_heads;
  // Chunks of 64 KiB: a block takes longer to copy its part, with seven warps of the twenty, than
  // the links to carry that of all blocks.
  const SimTime copy = state.gpu.nvls->head_cost * job.communicator.nvls_heads +
                       transfer_time(loop, state.block_rate(plan, 7 * 32));
  const Bandwidth link = state.scale_up_rate().scaled(state.gpu.nvls->link);
  REQUIRE(copy > transfer_time(loop * plan.channels, link));
  const auto loops = mib(256).count() / (loop.count() * plan.channels);
  REQUIRE(state.nvls(twice) - state.nvls(plan) == copy * loops);
}

TEST_CASE("an NVLSTree carries its bytes once over the NICs of two nodes, twice over those of more",
          "[nccl][timing]") {
  for (const int nodes : {2, 4}) {
    const TimedJob job(hopper_servers(nodes), forced("NVLSTree", "Simple"));
    Timer::State state = job.state();
    const double nics = state.node_network().rate.gigabytes_per_second();
    const double crossings = nodes == 2 ? 1.0 : 2.0;
    const double through =
        bandwidth(gib(8), state.nvls_tree(job.plan(Function::AllReduce, gib(8)))) * crossings;
    INFO(nodes << " nodes: " << through << " of " << nics);
    REQUIRE(through <= nics);
    REQUIRE(through >= 0.5 * nics);
  }
}

TEST_CASE("an NVLSTree of more nodes is deeper, and its first chunks share NICs on each level",
          "[nccl][timing]") {
  const auto tiny = [](int nodes) {
    const TimedJob job(hopper_servers(nodes), forced("NVLSTree", "Simple"));
    return job.state().nvls_tree(job.plan(Function::AllReduce, kib(64)));
  };
  const SimTime hop = default_profile().networks.at("rdma").latency[Protocol::Simple] +
                      default_profile().gpus.at("hopper").simple_cost;
  REQUIRE((tiny(4) - tiny(2)) / (hop * 2) == Approx(1.0).margin(0.2));
  REQUIRE((tiny(8) - tiny(4)) / (hop * 2) == Approx(1.0).margin(0.2));
}

TEST_CASE("each doubling of the ranks costs PAT a hop", "[nccl][timing]") {
  const auto tiny = [](int nodes) {
    const TimedJob job(single_gpus(nodes), forced("PAT", "Simple"));
    return job.state().pat(job.plan(Function::AllGather, Bytes(16 * nodes)));
  };
  const SimTime hop = default_profile().networks.at("rdma").latency[Protocol::Simple];
  REQUIRE((tiny(4) - tiny(2)) / hop == Approx(1.0).margin(0.2));
  REQUIRE((tiny(8) - tiny(4)) / hop == Approx(1.0).margin(0.2));

  const TimedJob job(single_gpus(4), forced("PAT", "Simple"));
  Timer::State state = job.state();
  const double nic = state.node_network().rate.gigabytes_per_second();
  const Bytes size = gib(4);
  const double through = bandwidth(size, state.pat(job.plan(Function::AllGather, size))) * 3 / 4;
  REQUIRE(through <= nic);
  REQUIRE(through >= 0.9 * nic);
}

}  // namespace trainyard::nccl
