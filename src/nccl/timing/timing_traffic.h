// SPDX-License-Identifier: Apache-2.0
// Counts what a call puts on each link, by the paths that the event model takes: all cables of an
// adapter, the GPU that hands data to a NIC (PXN), host memory where it stages.
#pragma once

#include <memory>

#include "nccl/timing/timing.h"
#include "network/sharing/load_sharing.h"

namespace trainyard::nccl {

class CallTraffic {
 public:
  // All must outlive this.
  CallTraffic(const Cluster& cluster, const Communicator& communicator, const Profile& profile,
              const Environment& environment);
  CallTraffic(const CallTraffic&) = delete;
  CallTraffic& operator=(const CallTraffic&) = delete;
  ~CallTraffic();

  // Bytes on the wire of each link, with the flags of LL and LL128. For NVLSTree it is what goes
  // between nodes; nothing for NVLS and CollNet, whose switches add up. `root`: of Broadcast and
  // Reduce.
  [[nodiscard]] Load of(const CallPlan& plan, int root = 0);
  // Returns the load of an operation of this size in the sense of nccl-tests, made of sends and
  // receives: from each rank to all others, or to 64 of them that represent all.
  [[nodiscard]] Load of(Operation operation, Bytes size);

 private:
  std::unique_ptr<Timer::State> state_;
};

}  // namespace trainyard::nccl
