// SPDX-License-Identifier: Apache-2.0
// Computes the rates of copies between GPUs and host memory while all GPUs of a cluster make them
// at once, each with the memory nearest to it: PCIe shared below a switch, links between sockets,
// and the memory itself are those of the topology, shared max-min fairly
// (network/sharing/load_sharing.h). Ranks wait for each other, so that the GPU that gets least
// counts. The traffic of NICs meanwhile is not counted.
#pragma once

#include <optional>
#include <span>

#include "parallelism/model/parallel_plan.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct HostRates {
  Bandwidth to_host = {};  // Rates of one GPU.
  Bandwidth to_gpu = {};
  Bandwidth memory = {};  // Rate of a host memory, for each of the GPUs that are nearest to it.
  SimTime latency = {};   // One way.

  [[nodiscard]] SimTime copy_to_host(Bytes size) const;
  [[nodiscard]] SimTime copy_to_gpu(Bytes size) const;
};

// Returns the rate that the slowest of these host memories leaves each of its users; each stands
// once for each use.
[[nodiscard]] Bandwidth min_memory(const Topology& topology, std::span<const NodeId> memories);

// Throws ConfigError where a GPU reaches no host memory.
[[nodiscard]] HostRates host_rates(const Cluster& cluster);
// The same where the plan needs them; nothing otherwise.
[[nodiscard]] std::optional<HostRates> host_rates_for(const ParallelPlan& plan,
                                                      const Cluster& cluster);

}  // namespace trainyard
