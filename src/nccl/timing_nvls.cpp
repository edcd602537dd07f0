// SPDX-License-Identifier: Apache-2.0
// NVLS, NVLSTree and PAT, loop by loop.
#include <algorithm>
#include <bit>
#include <cmath>

#include "nccl/timing_state.h"
#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

SimTime scaled(SimTime time, double factor) {
  return SimTime(static_cast<std::int64_t>(static_cast<double>(time.picoseconds()) * factor));
}

// What the switch makes each GPU send and receive for a byte that it reduces or gathers: all of it
// one way, and the share of one of `heads` the other.
double nvls_traffic(Function function, int heads) {
  return function == Function::AllReduce ? 1.0 + 1.0 / heads : 1.0;
}

const NvlsProfile& profile_of_nvls(const GpuProfile& gpu) {
  if (!gpu.nvls) {
    throw ConfigError("configs/nccl/profile.yaml: expected `nvls` for this generation of GPUs");
  }
  return *gpu.nvls;
}

struct NvlsLoops {
  std::int64_t bytes = 0;  // Of all, as the operation counts them.
  std::int64_t loop = 0;   // Of one loop over all channels.
  [[nodiscard]] double count() const {
    return std::ceil(static_cast<double>(bytes) / static_cast<double>(loop));
  }
};

NvlsLoops nvls_loops(const CallPlan& plan, int heads) {
  const std::int64_t chunk = plan.parts.empty() ? 1 : plan.parts.front().chunk.count();
  std::int64_t bytes = plan.bytes.count();
  if (plan.function != Function::AllReduce) {
    bytes *= heads;
  }
  return {.bytes = bytes, .loop = std::max<std::int64_t>(1, plan.channels * heads * chunk)};
}

}  // namespace

SimTime Timer::State::nvls(const CallPlan& plan) {
  const int heads = std::max(1, communicator.nvls_heads);
  const NvlsLoops loops = nvls_loops(plan, heads);
  const Bandwidth rate = scale_up_rate().scaled(profile_of_nvls(gpu).link);
  const SimTime carried =
      scaled(transfer_time(Bytes(loops.bytes), rate), nvls_traffic(plan.function, heads));
  // With more heads a block has more of them to wait for: 6 us for 8 heads of B200 became about
  // 48 us for 32, a power of 1.5.
  const double sync = loops.count() * std::pow(heads / 8.0, heads > 8 ? 1.5 : 1.0);
  return profile_of_nvls(gpu).base + carried + scaled(profile_of_nvls(gpu).sync, sync);
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
  const NvlsLoops loops = nvls_loops(plan, heads);
  const Bandwidth rate = scale_up_rate().scaled(profile_of_nvls(gpu).link);
  const NodeNetwork node = node_network();
  const double crossings = communicator.nodes == 2 ? 1.0 : 2.0;
  const SimTime inside =
      scaled(transfer_time(Bytes(loops.bytes), rate), nvls_traffic(plan.function, heads));
  const SimTime between = scaled(transfer_time(Bytes(loops.bytes), node.rate), crossings);
  const SimTime sync = scaled(profile.nvls_tree_sync, loops.count());
  // All channels send their first chunks through the same NICs at once, on each level.
  const auto levels =
      static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(communicator.nodes - 1)));
  const Bytes first(std::min(loops.bytes, loops.loop));
  const SimTime hop = network(node.wire.sending_nic).latency[Protocol::Simple] + node.wire.latency +
                      transfer_time(first, node.rate);
  return profile_of_nvls(gpu).base + std::max(inside, between) + sync + hop * (2 * levels);
}

// Each rank sends every block but its own once, through its NIC, and the last one arrives after a
// logarithm of hops.
SimTime Timer::State::pat(const CallPlan& plan) {
  const NodeNetwork node = node_network();
  const auto levels =
      static_cast<std::int64_t>(std::bit_width(static_cast<unsigned>(communicator.ranks - 1)));
  const SimTime hop = network(node.wire.sending_nic).latency[Protocol::Simple] + node.wire.latency;
  const Bytes sent = plan.bytes * (communicator.ranks - 1);
  return profile.pat_base + hop * levels + transfer_time(sent, node.rate);
}

}  // namespace trainyard::nccl
