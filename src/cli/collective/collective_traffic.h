// SPDX-License-Identifier: Apache-2.0
// The bytes that a collective puts on links, by either runtime.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectives/run/run.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/call_plan.h"
#include "parallelism/traffic/call_traffic.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

[[nodiscard]] std::vector<LinkTraffic> traffic_of(std::span<const LinkUse> uses,
                                                  const std::string& purpose);

// The traffic of calls of NCCL: what the channels carry by their own ways, with the flags of LL and
// LL128, and what switches that add up do (switched_traffic()).
// The cluster must outlive the object, which several threads may ask at once.
class NcclTraffic {
 public:
  NcclTraffic(const Cluster& cluster, Operation operation, RankId root);

  // `call`: nothing for operations that are made of sends and receives. `timer` is of the
  // communicator that the call is of.
  [[nodiscard]] std::vector<LinkTraffic> of(const std::optional<nccl::CallPlan>& call, Bytes size,
                                            nccl::Timer& timer);

 private:
  [[nodiscard]] const Load& switched(nccl::Algorithm algorithm);

  const Cluster& cluster_;
  Operation operation_;
  RankId root_;
  std::mutex mutex_;
  // For each byte; guarded by the mutex, and what is there stays as it is.
  std::map<nccl::Algorithm, Load> switched_;
};

}  // namespace trainyard
