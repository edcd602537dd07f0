// SPDX-License-Identifier: Apache-2.0
// Transfers between named devices, as bandwidth and latency tests make them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "network/contract/network.h"
#include "network/packet/packet_options.h"
#include "sim/ids.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct Transfer {
  NodeId source;
  NodeId target;
};

// Every pair of GPUs, in both orders or in that of their ranks. Throws ConfigError for one GPU.
enum class Pairs { Ordered, Unordered };
[[nodiscard]] std::vector<Transfer> peer_transfers(const Cluster& cluster, Pairs pairs);
// Transfers between each GPU and the host memory nearest to it. Throws ConfigError where there is
// none.
enum class HostDirection { ToGpu, FromGpu };
[[nodiscard]] std::vector<Transfer> host_transfers(const Cluster& cluster, HostDirection direction);
// Each transfer, followed by its opposite.
[[nodiscard]] std::vector<Transfer> with_opposites(std::span<const Transfer> transfers);

struct TransferSettings {
  Bytes size{};
  Fidelity fidelity = Fidelity::Flow;
  PacketOptions packet = roce_options();  // For Fidelity::Packet.
};

struct TransferTimes {
  std::vector<SimTime> times;  // At which each is complete, in the order given.
  // Reports of Network: why some never were complete, in which case the times say nothing; and of
  // its ports.
  std::optional<std::string> complaint;
  std::optional<std::vector<PortCounters>> port_counters;
  std::optional<PacketSamples> samples;
};

// One connection for each transfer, all of which begin to send at once. Throws ConfigError where no
// path leads.
[[nodiscard]] TransferTimes time_transfers(const Cluster& cluster,
                                           std::span<const Transfer> transfers,
                                           const TransferSettings& settings);
// The times of transfers of `size` bytes on the flow engine.
[[nodiscard]] std::vector<SimTime> run_transfers(const Cluster& cluster,
                                                 std::span<const Transfer> transfers, Bytes size);

// Returns the GB/s of equal transfers that began at once: what they carried until the last was
// complete.
[[nodiscard]] double total_gigabytes_per_second(std::span<const SimTime> times, Bytes size);

}  // namespace trainyard
