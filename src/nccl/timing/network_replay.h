// SPDX-License-Identifier: Apache-2.0
// The replay of replay.h with a Network between the nodes: messages of proxies that have queue
// pairs are carried by an engine, and all else is as there.
//
// A message passes the ports of its sender's node first come, first served, as always; the engine
// has it from when its first byte is at the last of them, and carries what is on the wire, with the
// protocol's flags, from NIC to NIC. When the last byte is there, and not before the sender's ports
// let it go, it has also passed the receiver's ports, if these were free. So without contention an
// engine adds nothing, and the share of the NIC's rate that a plugin reaches is in the NIC's ports
// alone: an engine's links have the rates of the catalogue, with packets their headers besides.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl/timing/replay.h"
#include "network/contract/network.h"
#include "network/engines/network_extras.h"
#include "network/packet/packet_options.h"

namespace trainyard::nccl {

// The engine that stands between the nodes.
struct EngineSettings {
  Fidelity fidelity = Fidelity::Flow;
  PacketOptions packet = roce_options();  // For Fidelity::Packet.
  bool keeps_counters = false;            // Keeps counters of ports, for the outcome; and samples.
  NetworkExtras extras = {};
};

// The report of the engine on all runs so far; statistics, counters, samples and extras of the
// longest alone.
struct EngineOutcome {
  std::uint64_t fingerprint = 0;
  NetworkStats network = {};
  // Reports of Network: why a run never was complete. Its time says nothing.
  std::optional<std::string> complaint = {};
  std::optional<std::vector<PortCounters>> port_counters = {};
  std::optional<PacketSamples> samples = {};
  ExtraResults extras = {};
};

// Runs replay() over an engine of its own. The outcome grows. Zero where there is a complaint.
// Throws ConfigError for NICs without a path.
[[nodiscard]] SimTime replay_over(const EngineSettings& settings, Routing& routing,
                                  const ReplayNetwork& network, std::span<const ReplayLane> lanes,
                                  std::uint64_t max_units, EngineOutcome& outcome,
                                  const ReplayWatch& watch = {});

}  // namespace trainyard::nccl
