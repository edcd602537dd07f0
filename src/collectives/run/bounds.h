// SPDX-License-Identifier: Apache-2.0
// Lower bounds on the time of a collective on a cluster, whatever the algorithm.
//
// - Latency: no operation ends before news have come from where they must to the rank that is
//   farthest, passed on by whatever is on the way: from the root (to it, for reduce and gather),
//   otherwise from rank 0. For sendrecv, which nothing passes on, it is the latency of the route
//   from rank r to r + 1. None for alltoallv.
// - Bandwidth: what a rank must send or receive goes through its links, what a server must through
//   the links that leave it. Of S bytes over n ranks, a group of g ranks (a rank or a server) must
//     all_reduce      send and receive S
//     all_gather      send S g/n, receive S (n-g)/n; reduce_scatter the reverse
//     alltoall        send and receive S g (n-g)/n; alltoallv what the matrix says
//     broadcast       receive S, or send S if the root is in it; reduce the reverse
//     sendrecv        send and receive S, the ranks being in a row
//     scatter         receive S g/n, or send S (n-g)/n if the root is in it; gather the reverse
//   and if no switch adds up, all groups together must send 2 (G-1) S for all_reduce, G their
//   number: of every byte, G-1 contributions must meet and G-1 groups must get the result
//   (Patarasuk, Yuan, JPDC 69, 2009).
// The bound is the greater of the two. Switches of the fabric are taken to carry anything.
#pragma once

#include <vector>

#include "collectives/schedule/operation.h"
#include "collectives/schedule/traffic_matrix.h"
#include "sim/ids.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct LowerBound {
  SimTime latency;
  SimTime bandwidth;
  [[nodiscard]] SimTime time() const { return latency < bandwidth ? bandwidth : latency; }
};

class CollectiveBounds {
 public:
  // The matrix, of alltoallv, must outlive it.
  CollectiveBounds(const Cluster& cluster, Operation operation, RankId root,
                   const TrafficMatrix* matrix = nullptr);
  // The size in the sense of nccl-tests.
  [[nodiscard]] LowerBound at(Bytes size) const;

 private:
  struct Group {
    int first = 0;  // First of its ranks, which are in a row.
    int count = 0;
    Bandwidth out{};
    Bandwidth in{};
  };
  struct Demand {
    Bytes out{};
    Bytes in{};
  };

  void add_groups(const Cluster& cluster);
  [[nodiscard]] SimTime farthest(const Cluster& cluster) const;
  [[nodiscard]] Demand demand(const Group& group, Bytes size) const;
  [[nodiscard]] SimTime time_of(const std::vector<Group>& groups, Bytes size) const;

  Operation operation_;
  int root_;
  int ranks_;
  const TrafficMatrix* matrix_;
  bool adds_in_network_ = false;
  std::vector<Group> by_rank_;
  std::vector<Group> by_server_;
  SimTime latency_;
};

}  // namespace trainyard
