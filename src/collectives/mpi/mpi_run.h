// SPDX-License-Identifier: Apache-2.0
// How long a call of MPI or Gloo takes on an otherwise idle cluster whose ranks are in host memory:
// what each rank copies of its own, then its schedule on CPUs (mpi_executor.h) and, between hosts,
// on a network.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_schedule.h"
#include "network/contract/network.h"
#include "network/packet/packet_options.h"
#include "sim/trace.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct MpiTiming {
  SimTime time = {};
  std::uint64_t messages = 0;
  std::uint64_t fingerprint = 0;
  std::vector<LinkUse> link_use = {};
  std::optional<std::string> complaint = {};  // See CollectiveResult.
};

// The memories of the ranks: rank r is where the host memory nearest to GPU r is. Throws
// ConfigError, which names the runtime, for servers without CPUs.
[[nodiscard]] std::vector<NodeId> mpi_nodes(const Cluster& cluster,
                                            std::string_view runtime = "mpi");

// `name` is what mpi_algorithm() gave, `nodes` what mpi_nodes() gave. Throws ConfigError if two
// ranks cannot reach each other, or for more messages than are held.
[[nodiscard]] MpiTiming time_mpi(const Cluster& cluster, const std::vector<NodeId>& nodes,
                                 std::string_view name, const MpiCall& call, const MpiRules& rules,
                                 const MpiProfile& profile, Fidelity fidelity,
                                 const PacketOptions& packet, TraceRecorder* trace = nullptr);

}  // namespace trainyard
