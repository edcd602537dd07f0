// SPDX-License-Identifier: Apache-2.0
// Predicts how long NCCL's collectives take: the event model (docs/models/nccl-timing.md).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nccl/timing/network_replay.h"
#include "nccl/timing/profile.h"
#include "nccl/timing/wiring.h"
#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "network/sharing/load_sharing.h"
#include "sim/trace.h"
#include "topology/cluster/cluster.h"

namespace trainyard::nccl {

// The settings of the program that calls NCCL.
struct LaunchMode {
  int gpus_per_process = 1;
  bool cuda_graph = false;
  // Calls follow one another without waiting, as in nccl-tests, and the time is that between two of
  // them. Otherwise one call by itself, with its launch.
  bool back_to_back = true;
};

struct Timing {
  SimTime time;    // Time that nccl-tests would print.
  SimTime device;  // Time of the kernel, from its start on the first rank to its end on the last.
  SimTime host;    // Time of launching, which back to back runs beside the kernel.
  // Set where an engine stood between the nodes and carried anything.
  std::optional<EngineOutcome> engine = {};
};

// The rates that calls of other communicators, at the same time, leave those of this one.
struct CallLimits {
  // For rings and trees: the rate of each connection of a channel; bits of the link in a second,
  // infinite where nobody takes anything.
  std::vector<double> channels = {};
  // For what else goes between nodes: the share of the rate that it has alone.
  double share = 1.0;
};

// The times of one communicator on one cluster. Cluster, communicator and environment must outlive
// it.
class Timer {
 public:
  // `engine`: a Network carries what goes between nodes. Without it nodes are ports to one another,
  // and what the fabric lacks is taken from each connection for good (Wiring::fabric_shares).
  // `routing`: as for Wiring.
  Timer(const Cluster& cluster, const Communicator& communicator, const Profile& profile,
        const Environment& environment, const LaunchMode& mode,
        const std::optional<EngineSettings>& engine = std::nullopt, Routing* routing = nullptr);
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer();

  // Other speeds from now on. Wires and rings, which do not depend on them, are kept.
  void use(const Profile& profile);
  // Another engine, or other settings of it; one must stay one, and none none.
  void use(const std::optional<EngineSettings>& engine);

  // Records the thread blocks of calls from now on, from the start of the kernel on, each with the
  // units that it works through: as many as are run one by one, where more of them repeat these.
  // Calls in closed form have no blocks, and those that are the same on all nodes may have those of
  // one. Null records nothing.
  void record(TraceRecorder* trace);

  [[nodiscard]] MachineKind machine() const;

  // Returns what a call puts on links: a load for each channel of rings and trees, as many as the
  // communicator has, or one for all together. Links between GPUs are left out, as are the switches
  // of CollNet.
  [[nodiscard]] std::vector<Load> loads(const CallPlan& plan, ConnectionLoads& connections);
  // Returns the loads of point_to_point().
  [[nodiscard]] std::vector<Load> loads(Operation operation, ConnectionLoads& connections);
  // Returns the bytes of a call on the wire of each link, with the flags of LL and LL128, by the
  // paths of the event model: all cables of an adapter, the GPU that hands data to a NIC (PXN),
  // staging in host memory. For NVLSTree it is what goes between nodes; nothing for NVLS and
  // CollNet, whose switches add up. `root`: of Broadcast and Reduce.
  [[nodiscard]] Load traffic(const CallPlan& plan, int root = 0);
  // Returns the load of an operation of this size in the sense of nccl-tests, made of sends and
  // receives: from each rank to all others, or to 64 of them that represent all.
  [[nodiscard]] Load traffic(Operation operation, Bytes size);
  // Limits calls from now on; there must be no engine. For calls of the kind that the loads were
  // those of.
  void limit(const CallLimits& limits);

  // Times a collective. Throws ConfigError for an algorithm that the event model does not have, or
  // not over an engine, and for jobs that are too large for one. A run that never was complete has
  // a complaint in Timing::engine.
  [[nodiscard]] Timing collective(const CallPlan& plan);
  // Times AllReduce in symmetric memory, by the kernel that reduces and multicasts in the NVSwitch.
  // Throws ConfigError without NVLS or on several nodes.
  [[nodiscard]] Timing symmetric(Bytes size);
  // Times the operation of this size in the sense of nccl-tests, made of sends and receives.
  [[nodiscard]] Timing point_to_point(Operation operation, Bytes size);

  struct State;  // timing_state.h; public for tests.

 private:
  std::unique_ptr<State> state_;
};

}  // namespace trainyard::nccl
