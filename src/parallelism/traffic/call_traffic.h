// SPDX-License-Identifier: Apache-2.0
// Counts the bytes that calls of groups of ranks put on links: as NCCL runs them, by the algorithm
// that it takes for each size and the ways of its channels, or as plain rings and direct messages.
//
// Switches that add up, NVSwitches for NVLS and those of the fabric for CollNet, carry what they do
// for the plain algorithms of that kind.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/schedule/operation.h"
#include "nccl/search/search_memory.h"
#include "nccl/timing/profile.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/types.h"
#include "network/sharing/load_sharing.h"
#include "parallelism/traffic/group_shapes.h"
#include "parallelism/traffic/link_bytes.h"
#include "sim/ids.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard {

// Returns what the switches of an algorithm of NCCL that add up carry for each byte of a call, in
// the sense of nccl-tests; nothing for other algorithms, and where the cluster cannot do it.
// `routing` is of the cluster.
[[nodiscard]] Load switched_traffic(const Cluster& cluster, Routing& routing,
                                    nccl::Algorithm algorithm, Operation operation, RankId root);

// Calls of one operation and size, in the sense of nccl-tests.
struct RepeatedCall {
  Operation operation = Operation::AllReduce;
  Bytes size = {};

  friend auto operator<=>(const RepeatedCall&, const RepeatedCall&) = default;
};
using RepeatedCalls = std::map<RepeatedCall, double>;  // With how often each is made.

// NCCL with these speeds, or links alone: what runs calls.
struct CallRuntime {
  const nccl::Profile* nccl = nullptr;
  nccl::Version version = nccl::kNewestVersion;
};

class CallTraffic {
 public:
  // The cluster and the profile must outlive this.
  CallTraffic(const Cluster& cluster, const CallRuntime& runtime);

  // `purpose` must outlive this, as text. Throw ConfigError where there is no way.
  void add_calls(std::string_view purpose, std::vector<int> ranks, const RepeatedCalls& calls);
  void add_message(std::string_view purpose, int from, int to, double bytes);
  // Links that carry anything, by id.
  [[nodiscard]] std::vector<LinkTraffic> take() const;

 private:
  void add(std::string_view purpose, const Load& of_byte, double bytes);
  // Both of the ranks that part_ has been left.
  void add_plain(std::string_view purpose, const RepeatedCalls& calls);
  void add_nccl(std::string_view purpose, const std::vector<int>& ranks,
                const RepeatedCalls& calls);
  void add_run(std::string_view purpose, Operation operation, double bytes);
  [[nodiscard]] const nccl::Communicator& communicator_of(const std::vector<int>& ranks);

  const Cluster& whole_;
  Cluster part_;
  CallRuntime runtime_;
  std::vector<int> domain_of_rank_;
  Routing routing_;  // One for all groups: switches that choose see all connections.
  GroupShapes shapes_;
  nccl::SearchMemory searches_;
  std::map<std::vector<int>, nccl::Communicator> communicators_;  // Indexed by shape.
  std::vector<LinkId> path_;
  std::map<std::uint32_t, std::map<std::string_view, double>> bytes_;  // Indexed by link.
};

}  // namespace trainyard
