// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that stand alike in a cluster, so that what holds for one of them holds for all.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "topology/cluster/cluster.h"
#include "topology/cluster/server_kinds.h"
#include "topology/routing/routing.h"

namespace trainyard {

class GroupShapes {
 public:
  // `domain_of_rank`: the NVLink domain of each. All must outlive this.
  GroupShapes(const Cluster& cluster, std::span<const int> domain_of_rank, Routing& routing);

  // Returns for each rank, in rising order, the kind of its server, which of the group's servers
  // and domains it is in, and its place in the server: groups of equal shape use equal places of
  // like servers.
  [[nodiscard]] std::vector<int> shape(const std::vector<int>& ranks) const;
  // The same for more groups: of places all that tells apart is how the GPUs of a server reach each
  // other, and what links they have. On an NVSwitch all are alike. Ways to NICs are not looked at.
  [[nodiscard]] std::vector<int> joints(const std::vector<int>& ranks);

 private:
  // Returns for each rank the kind of server, and the server and domain of the group.
  [[nodiscard]] std::vector<std::vector<int>> seats(const std::vector<int>& ranks) const;
  [[nodiscard]] int place(int rank) const;
  [[nodiscard]] int joint(std::span<const int> ranks);
  // Kind, rate and latency.
  [[nodiscard]] std::array<std::int64_t, 3> words_of(LinkId id) const;
  void describe_device(NodeId device, std::vector<std::int64_t>& text) const;
  void describe_way(NodeId from, NodeId to, std::vector<std::int64_t>& text);

  const Cluster& cluster_;
  std::span<const int> domain_of_rank_;
  Routing& routing_;
  ServerKinds kinds_;
  std::map<std::vector<int>, int> joint_of_places_;  // Kind of server, then places.
  std::map<std::vector<std::int64_t>, int> joints_;  // Numbers of what was described.
};

}  // namespace trainyard
