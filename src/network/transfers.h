// SPDX-License-Identifier: Apache-2.0
// Transfers between named devices, as bandwidth and latency tests make them.
#pragma once

#include <span>
#include <vector>

#include "network/network.h"
#include "sim/ids.h"
#include "sim/units.h"
#include "topology/cluster.h"

namespace trainyard {

struct Transfer {
  NodeId source;
  NodeId target;
};

// Every pair of GPUs, in both orders or in that of their ranks. Throws ConfigError for one GPU.
enum class Pairs { Ordered, Unordered };
[[nodiscard]] std::vector<Transfer> peer_transfers(const Cluster& cluster, Pairs pairs);
// Between each GPU and the host memory nearest to it. Throws ConfigError where there is none.
enum class HostDirection { ToGpu, FromGpu };
[[nodiscard]] std::vector<Transfer> host_transfers(const Cluster& cluster, HostDirection direction);
// Each transfer, followed by its opposite.
[[nodiscard]] std::vector<Transfer> with_opposites(std::span<const Transfer> transfers);

// One connection for each transfer, all of which begin to send `size` bytes at once, on the flow
// engine or another one. The time at which each is complete, in the order given. Throws ConfigError
// where no path leads.
[[nodiscard]] std::vector<SimTime> run_transfers(const Cluster& cluster,
                                                 std::span<const Transfer> transfers, Bytes size,
                                                 Fidelity fidelity = Fidelity::Flow);

// In GB/s, of equal transfers that began at once: what they carried until the last was complete.
[[nodiscard]] double total_gigabytes_per_second(std::span<const SimTime> times, Bytes size);

}  // namespace trainyard
