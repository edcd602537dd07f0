// SPDX-License-Identifier: Apache-2.0
// How long a call of HCCL takes on an otherwise idle cluster: its schedule on the executor, with
// what each of its tasks costs before its bytes start.
//
//   time = call + copied / memory + the sum over loops of the time of the schedule
//   a message inside a server   two signals, before and after, and a copy: 2 notify + copy
//   a message between servers   a signal and a message: 2 rdma; the signal behind it rides along
//
// Loops follow one another, with nothing in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/hccl/hccl_choice.h"
#include "collectives/hccl/hccl_profile.h"
#include "network/contract/network.h"
#include "network/packet/packet_options.h"
#include "sim/trace.h"

namespace trainyard {

struct HcclCall {
  Operation operation = Operation::AllReduce;
  Bytes size;  // In the sense of nccl-tests; see aligned_size (collectives/run/run.h).
  Fidelity fidelity = Fidelity::Flow;
  PacketOptions packet = roce_options();
  TraceRecorder* trace = nullptr;  // Gets the first loop, from the start of its tasks.
};

struct HcclTiming {
  SimTime time = {};
  std::uint64_t messages = 0;                 // Those of all loops.
  std::uint64_t fingerprint = 0;              // Fingerprint of the first loop.
  std::vector<LinkUse> link_use = {};         // The load of all loops.
  std::optional<std::string> complaint = {};  // See CollectiveResult.
};

// The plan is that of choose_hccl() for the call. Throws ConfigError if two ranks cannot reach each
// other, or for more messages than are held.
[[nodiscard]] HcclTiming time_hccl(const Cluster& cluster, const HcclMachine& machine,
                                   const HcclPlan& plan, const HcclProfile& profile,
                                   const HcclCall& call);

}  // namespace trainyard
