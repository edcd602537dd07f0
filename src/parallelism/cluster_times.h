// SPDX-License-Identifier: Apache-2.0
// Times of collectives and transfers on the GPUs of a cluster: each group of ranks is a job of its
// own, alone on the cluster. What was asked once is remembered.
//
// Groups of one kind that work at once (the data ranks of each tensor rank) do not see each other:
// on rails and in NVSwitches they have ports of their own.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "hw/catalogue.h"
#include "nccl/communicator.h"
#include "nccl/profile.h"
#include "network/network.h"
#include "parallelism/group_times.h"
#include "topology/cluster.h"

namespace trainyard {

// The server that each rank's GPU is in.
[[nodiscard]] std::vector<int> servers_of_gpus(const Cluster& cluster);

class ClusterTimes final : public GroupTimes {
 public:
  // As NCCL would run collectives, by its event model.
  struct Nccl {
    const Catalogue& catalogue;
    const nccl::Profile& profile;
    std::optional<Fidelity> engine = {};  // Between nodes; none: the event model's own ports.
  };
  // `runtime`: NCCL; without it links and latencies only, at that fidelity: rings, and direct
  // messages for alltoall and sendrecv. The cluster and what `runtime` refers to must outlive this.
  ClusterTimes(const Cluster& cluster, std::optional<Nccl> runtime, Fidelity fidelity);

  // Throw ConfigError where NCCL or the routing cannot, and for what never ends.
  [[nodiscard]] SimTime collective(Operation operation, const std::vector<int>& ranks,
                                   Bytes size) override;
  [[nodiscard]] SimTime transfer(int from, int to, Bytes size) override;

  // Asked for, and of these simulated.
  [[nodiscard]] std::size_t calls() const { return calls_; }
  [[nodiscard]] std::size_t simulated() const { return collectives_.size() + transfers_.size(); }
  // In what these were beyond the rows of the profile, where it was fitted to those of one machine.
  [[nodiscard]] const std::set<std::string>& beyond_profile() const { return beyond_profile_; }
  // By rank.
  [[nodiscard]] const std::vector<int>& servers() const { return server_of_rank_; }
  // By rank: an NVSwitch that joins servers, else the server.
  [[nodiscard]] const std::vector<int>& domains() const { return domain_of_rank_; }

 private:
  // Of the ranks that are in group_.
  [[nodiscard]] const nccl::Communicator& communicator(const std::vector<int>& ranks);
  [[nodiscard]] SimTime with_nccl(Operation operation, const std::vector<int>& ranks, Bytes size);
  [[nodiscard]] SimTime plain(Operation operation, Bytes size) const;

  const Cluster& whole_;
  Cluster group_;  // Of whole_, the ranks in question.
  std::optional<Nccl> runtime_;
  Fidelity fidelity_;
  std::vector<int> server_of_rank_;
  std::vector<int> domain_of_rank_;
  std::map<std::vector<int>, nccl::Communicator> communicators_;
  std::map<std::tuple<Operation, std::vector<int>, Bytes>, SimTime> collectives_;
  std::map<std::tuple<int, int, Bytes>, SimTime> transfers_;
  std::set<std::string> beyond_profile_;
  std::size_t calls_ = 0;
};

}  // namespace trainyard
