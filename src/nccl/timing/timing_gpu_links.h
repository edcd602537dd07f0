// SPDX-License-Identifier: Apache-2.0
// The loads of Timer::loads() with the links between GPUs, which it leaves out because no other
// group of a step has any of their GPUs: for calls that share GPUs.
#pragma once

#include <vector>

#include "nccl/timing/profile.h"
#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "network/sharing/load_sharing.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard::nccl {

// A communicator on all ranks of a cluster.
struct CommunicatorPlace {
  const Cluster& cluster;
  const Communicator& communicator;
  const Profile& profile;
  const Environment& environment;
  Routing& routing;  // Routing of the same links.
};

// NVLS and NVLSTree have what goes between GPUs and the NVSwitch that adds up, in one load.
[[nodiscard]] std::vector<Load> loads_with_gpu_links(const CommunicatorPlace& place,
                                                     const CallPlan& plan,
                                                     ConnectionLoads& connections);
[[nodiscard]] std::vector<Load> loads_with_gpu_links(const CommunicatorPlace& place,
                                                     Operation operation,
                                                     ConnectionLoads& connections);

}  // namespace trainyard::nccl
