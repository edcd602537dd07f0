// SPDX-License-Identifier: Apache-2.0
// Counts what a training step puts on each link of the cluster instead of timing it: all groups of
// all kinds of parallelism with the bytes that step_traffic.h gives them, as rings, all-to-alls and
// messages on the routes that they take. Unlike the times of groups, which are of each group alone,
// this sees all that meet on a link.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/software_profile.h"
#include "sim/ids.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The bytes of one purpose: "tensor", "context", "expert", "data" or "pipeline".
struct PurposeBytes {
  std::string purpose;
  Bytes bytes;

  friend auto operator<=>(const PurposeBytes&, const PurposeBytes&) = default;
};

struct LinkTraffic {
  LinkId link;
  std::vector<PurposeBytes> parts;  // Parts by name; at least one, each more than nothing.
  [[nodiscard]] Bytes total() const;
};

// Limit beyond which GPUs are refused: every group is routed.
inline constexpr int kMaxCountedRanks = 4096;

// The paths by which an alltoall gets from one server to another.
enum class ExchangeWays : std::uint8_t {
  Direct,  // From each GPU to each other.
  Rails,   // Over NVLink to the GPU whose NIC is the receiver's like, as NCCL does (PXN).
};

// Links that carry anything in one step, by id. Tokens are spread evenly over experts; what is
// computed again makes its traffic again. In NVSwitches that add up (NVLS) less goes over NVLink.
// Throws ConfigError where ranks cannot reach each other.
[[nodiscard]] std::vector<LinkTraffic> step_link_traffic(const Cluster& cluster, const Model& model,
                                                         const ParallelPlan& plan,
                                                         const SoftwareProfile& software,
                                                         ExchangeWays ways);

}  // namespace trainyard
