// SPDX-License-Identifier: Apache-2.0
// NVLS, NVLSTree and PAT, loop by loop.
#include <algorithm>
#include <bit>

#include "nccl/timing/timing_state.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

SimTime scaled(SimTime time, double factor) {
  return SimTime(static_cast<std::int64_t>(static_cast<double>(time.picoseconds()) * factor));
}

// Returns what the switch makes each GPU send and receive for a byte that it reduces or gathers:
// all of it one way, and the share of one of `heads` the other.
double nvls_traffic(Function function, int heads) {
  return function == Function::AllReduce ? 1.0 + 1.0 / heads : 1.0;
}

const NvlsProfile& profile_of_nvls(const GpuProfile& gpu) {
  if (!gpu.nvls) {
    throw ConfigError("configs/nccl/profile.yaml: expected `nvls` for this generation of GPUs");
  }
  return *gpu.nvls;
}

Bytes first_chunk(const CallPlan& plan) {
  return plan.parts.empty() ? Bytes(1) : std::max(Bytes(1), plan.parts.front().chunk);
}

// NVIDIA/nccl, src/device/all_reduce.h: of the 20 warps of a block some reduce, and in a tree some
// broadcast; the others are divided into those that scatter and those, not more, that gather.
int gathering_threads(int ranks, bool tree) {
  const int reduce_and_broadcast = tree ? 5 + 4 : ranks <= 6 ? 7 : 5;
  return (20 - reduce_and_broadcast) / 2 * 32;
}

}  // namespace

HeadLoops head_loops(const CallPlan& plan, int heads) {
  const std::int64_t bytes =
      plan.bytes.count() * (plan.function == Function::AllReduce ? 1 : heads);
  const std::int64_t channels = std::max(1, plan.channels);
  return {.bytes = (bytes + channels - 1) / channels,
          .loop = std::max<std::int64_t>(1, heads * first_chunk(plan).count())};
}

SimTime pipelined(const HeadLoops& loops, const std::function<LoopTime(std::int64_t)>& time_of) {
  const std::int64_t full = loops.bytes / loops.loop;
  const std::int64_t rest = loops.bytes % loops.loop;
  const LoopTime first = time_of(full > 0 ? loops.loop : rest);
  SimTime time = first.all;
  if (full > 0) {
    time += first.slowest * (full - 1);
    if (rest > 0) {
      time += time_of(rest).slowest;
    }
  }
  return time;
}

SimTime Timer::State::nvls(const CallPlan& plan) {
  const int heads = std::max(1, communicator.nvls_heads);
  const NvlsProfile& profile_nvls = profile_of_nvls(gpu);
  const Bandwidth rate = scale_up_rate().scaled(profile_nvls.link);
  const Bandwidth copying = block_rate(plan, gathering_threads(communicator.ranks, false));
  const double traffic = nvls_traffic(plan.function, heads);
  // AllGather has nothing to scatter, ReduceScatter nothing to gather.
  const int copies = plan.function == Function::AllReduce ? 2 : 1;
  const auto time_of = [&](std::int64_t bytes) {
    const SimTime copy = profile_nvls.head_cost * heads + transfer_time(Bytes(bytes), copying);
    const SimTime link = scaled(transfer_time(Bytes(bytes * plan.channels), rate), traffic);
    return LoopTime{.all = copy * copies + link, .slowest = std::max(copy, link)};
  };
  return profile.ring_base[Protocol::Simple] + pipelined(head_loops(plan, heads), time_of);
}

// The kernel works on the buffers of the users themselves: no copies, no loops to be in step.
SimTime Timer::State::symmetric(Bytes size) {
  if (communicator.nvls_heads == 0 || communicator.nodes > 1) {
    throw ConfigError("symmetric memory is modelled on one node with NVLS only");
  }
  const Bandwidth rate = scale_up_rate().scaled(profile_of_nvls(gpu).link);
  return profile_of_nvls(gpu).symmetric_base +
         scaled(transfer_time(size, rate), nvls_traffic(Function::AllReduce, communicator.ranks));
}

SimTime Timer::State::nvls_tree(const CallPlan& plan) {
  const int heads = std::max(1, communicator.nvls_heads);
  const NvlsProfile& profile_nvls = profile_of_nvls(gpu);
  const HeadLoops loops = head_loops(plan, heads);
  const Bandwidth rate = scale_up_rate().scaled(profile_nvls.link);
  const Bandwidth copying = block_rate(plan, gathering_threads(communicator.ranks, true));
  const double crossings = communicator.nodes == 2 ? 1.0 : 2.0;
  NodeNetwork node = node_network(plan, crossings);
  if (engine) {
    node.rate = node.rate.scaled(1.0 / slowdown(nvls_tree_flows(plan), first_chunk(plan)));
  }
  const double traffic = nvls_traffic(plan.function, heads);
  const auto time_of = [&](std::int64_t bytes) {
    const Bytes all(bytes * plan.channels);
    const SimTime copy = profile_nvls.head_cost * heads + transfer_time(Bytes(bytes), copying);
    const SimTime link = scaled(transfer_time(all, rate), traffic);
    // Over the NICs, all channels at once as through the switch.
    const SimTime between =
        scaled(transfer_time(all, node.rate), crossings) + profile.nvls_tree_sync;
    return LoopTime{.all = copy * 2 + link, .slowest = std::max({copy, link, between})};
  };
  // Data go up and down the levels of the tree, with a block at both ends of each that waits and
  // posts. Channels send their first chunks through the same NICs at once: on two nodes half of
  // them up and half down, on more all of them into those that have two children.
  const auto levels =
      static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(communicator.nodes - 1)));
  const Bytes first(std::min(loops.bytes, loops.loop) * plan.channels);
  const SimTime hop = network(node.wire.sender.nic).latency[Protocol::Simple] + node.wire.latency +
                      gpu.simple_cost + scaled(transfer_time(first, node.rate), crossings / 2.0);
  return profile.ring_base[Protocol::Simple] + pipelined(loops, time_of) + hop * (2 * levels) +
         gpu.simple_cost;
}

// Each rank sends every block but its own once, through its NIC, and the last one arrives after a
// logarithm of hops.
SimTime Timer::State::pat(const CallPlan& plan) {
  NodeNetwork node = node_network(plan, communicator.ranks - 1);
  if (engine) {
    node.rate = node.rate.scaled(1.0 / slowdown(pat_flows(plan), first_chunk(plan)));
  }
  const auto levels =
      static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(communicator.ranks - 1)));
  const SimTime hop = network(node.wire.sender.nic).latency[Protocol::Simple] + node.wire.latency;
  const Bytes sent = plan.bytes * (communicator.ranks - 1);
  return profile.pat_base + hop * levels + transfer_time(sent, node.rate);
}

}  // namespace trainyard::nccl
