// SPDX-License-Identifier: Apache-2.0
// Times of collectives and transfers on the GPUs of a cluster. Each group of ranks is a job of its
// own; of a plan that it knows (use_plan), all groups of a kind work at the same time, as the data
// ranks of each tensor rank do, and a collective takes as long as for the slowest of them, with
// what the others leave it of links that they share. Rates are those of one max-min solve over all
// of them (network/sharing/load_sharing.h). Traffic that shares no link takes as long as alone, to
// the picosecond.
//
// Groups that would take equally long at equal rates are a class: they stand alike on like servers
// (group_shapes.h), NCCL decides the same for them, their connections are equally long one by one,
// and they load links of equal rates within servers. Of each class the group with the least rate is
// run, so that the answer is the same whichever group of a kind is asked for, and whatever was
// asked before. What was asked once is remembered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collectives/hccl/hccl_profile.h"
#include "nccl/search/search_memory.h"
#include "nccl/timing/profile.h"
#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/communicator.h"
#include "nccl/tuning/init.h"
#include "network/contract/network.h"
#include "network/sharing/load_sharing.h"
#include "parallelism/model/concurrent_groups.h"
#include "parallelism/traffic/group_shapes.h"
#include "parallelism/traffic/group_times.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The server that each rank's GPU is in.
[[nodiscard]] std::vector<int> servers_of_gpus(const Cluster& cluster);

class ClusterTimes final : public GroupTimes {
 public:
  // Runs collectives as NCCL would, by its event model.
  struct Nccl {
    const nccl::Profile& profile;
    std::optional<Fidelity> engine = {};  // Between nodes; none: the event model's own ports.
    nccl::Version version = nccl::kNewestVersion;
    nccl::SearchMemory* searches = nullptr;  // Shared with others; none: one of its own.
  };
  // `runtime`: NCCL; without it links and latencies only, at that fidelity: rings, and direct
  // messages for alltoall and sendrecv. The cluster and what `runtime` refers to must outlive this.
  ClusterTimes(const Cluster& cluster, std::optional<Nccl> runtime, Fidelity fidelity);

  // Without NCCL, collectives as HCCL runs them, if not null; what groups share is as of rings.
  // Before the first question; the profile must outlive this.
  void use_hccl(const HcclProfile* profile) { hccl_ = profile; }

  // A plan with one rank for each GPU.
  void use_plan(const ParallelPlan& plan) override;

  // Throw ConfigError where NCCL or the routing cannot, and for what never ends.
  [[nodiscard]] SimTime collective(Operation operation, const std::vector<int>& ranks,
                                   Bytes size) override;
  [[nodiscard]] SimTime transfer(int from, int to, Bytes size) override;

  // Asked for, and of these simulated, once or beside each kind of neighbour: others were known.
  [[nodiscard]] std::size_t calls() const { return calls_; }
  [[nodiscard]] std::size_t simulated() const { return simulated_; }
  // The least share of its own rate that a group of the plan, or a message, has beside the others
  // of its kind; 1 where none of those asked for shares a link that it fills.
  [[nodiscard]] double min_share() const { return asked_->min_share; }
  // Names what these were beyond the rows of the profile, where it was fitted to those of one
  // machine.
  [[nodiscard]] const std::set<std::string>& beyond_profile() const { return beyond_profile_; }
  // Servers by rank.
  [[nodiscard]] const std::vector<int>& servers() const { return server_of_rank_; }
  // Domains by rank: an NVSwitch that joins servers, else the server.
  [[nodiscard]] const std::vector<int>& domains() const { return domain_of_rank_; }

 private:
  using Groups = ConcurrentGroups::Groups;
  // Identifies how a call uses its links: operation or algorithm, and sizes where they matter.
  using Use = std::vector<std::int64_t>;
  // The shape of groups that use equal places of like servers.
  struct Shape {
    std::optional<nccl::Communicator> communicator = {};
    int alike = 0;  // The number of all shapes that take equally long but for their NICs.
    std::map<Use, bool> is_empty = {};  // Whether calls are on no link that others may use.
  };
  // The slowest group of a class; an index into shares_ if others take something from it.
  struct Slowest {
    std::vector<int> ranks;
    std::optional<std::size_t> share = {};
    std::size_t group = 0;  // Its place among all.
    // Key of a message: equal for those that take as long alone.
    std::vector<std::int64_t> alike = {};
  };

  // The answers that are known with a plan in use.
  struct PlanAnswers {
    std::optional<ParallelPlan> plan = {};
    std::optional<ConcurrentGroups> concurrent = {};
    std::map<std::tuple<Operation, std::vector<int>, Bytes>, SimTime> collectives = {};
    std::map<std::tuple<int, int, Bytes>, SimTime> messages = {};
    double min_share = 1.0;
  };

  [[nodiscard]] Shape& shape_of(const std::vector<int>& ranks);
  [[nodiscard]] int alike(const std::vector<int>& ranks, const Shape& shape);
  [[nodiscard]] std::optional<nccl::CallPlan> call_plan(const nccl::Communicator& communicator,
                                                        Operation operation, Bytes size) const;
  [[nodiscard]] Use use_of(const Shape& shape, Operation operation, Bytes size) const;
  // Returns whether what times such a call alone sees that links between switches limit it.
  [[nodiscard]] SeesFabric sees_fabric(const Shape& shape, Operation operation, Bytes size) const;
  // Returns what a call of the ranks that group_ has been left puts on links that others may use as
  // well.
  [[nodiscard]] std::vector<Load> loads(const Shape& shape, Operation operation, Bytes size);
  [[nodiscard]] SimTime with_nccl(const Shape& shape, Operation operation, Bytes size,
                                  const Cluster& cluster, const GroupShare* share);
  [[nodiscard]] SimTime plain(Operation operation, Bytes size, const Cluster& cluster) const;

  // Returns the slowest of each class of groups that all run the call, or of messages.
  [[nodiscard]] const std::vector<Slowest>& slowest_of(Operation operation, const Groups& groups,
                                                       Bytes size);
  [[nodiscard]] const std::vector<Slowest>& slowest_messages(const Groups& messages);
  // `keys`: by group, equal for those of a class.
  [[nodiscard]] std::vector<Slowest> slowest_by_class(
      const Groups& groups, const std::vector<std::vector<Load>>& loads,
      const std::vector<std::vector<std::int64_t>>& keys, const std::vector<SeesFabric>& sees);
  [[nodiscard]] const GroupShare* share_at(std::optional<std::size_t> index);
  [[nodiscard]] Cluster with_links_left(const Cluster& cluster, const GroupShare& share) const;
  [[nodiscard]] nccl::InitOptions init_options() const { return {.version = runtime_->version}; }
  // Simulates a group, with what others leave it.
  [[nodiscard]] SimTime simulated_once(Operation operation, const std::vector<int>& ranks,
                                       Bytes size, std::optional<std::size_t> share);
  [[nodiscard]] Load load_of_message(int from, int to);
  [[nodiscard]] SimTime transferred(const Slowest& message, Bytes size);
  [[nodiscard]] SimTime transferred_once(int from, int to, Bytes size,
                                         std::optional<std::size_t> share);
  void restart_loads();

  const Cluster& whole_;
  Cluster group_;  // Ranks in question, of whole_.
  std::optional<Nccl> runtime_;
  const HcclProfile* hccl_ = nullptr;
  Fidelity fidelity_;
  std::vector<int> server_of_rank_;
  std::vector<int> domain_of_rank_;
  // Made when first needed.
  std::optional<Routing> routing_;  // Routing of whole_.
  std::optional<ConnectionLoads> connections_;
  std::optional<GroupShapes> shapes_of_groups_;
  nccl::SearchMemory own_searches_;
  std::map<std::vector<int>, Shape> shapes_;  // As GroupShapes describes them.
  // Shapes by joints: one shape for each number.
  std::map<std::vector<int>, std::vector<const Shape*>> different_shapes_;
  int numbers_ = 0;
  std::vector<GroupShare> shares_;  // Shares that others leave a group.
  std::map<std::pair<std::vector<Use>, Groups>, std::vector<Slowest>> known_slowest_;
  std::map<Groups, std::vector<Slowest>> known_messages_;
  // Times with the index of a share.
  std::map<std::tuple<Operation, std::vector<int>, Bytes, std::optional<std::size_t>>, SimTime>
      collectives_;
  std::map<std::tuple<int, int, Bytes, std::optional<std::size_t>>, SimTime> transfers_;
  std::map<std::pair<std::vector<std::int64_t>, Bytes>, SimTime> alike_;  // Alone.
  PlanAnswers no_plan_;
  std::deque<PlanAnswers> plans_;   // The latest ones.
  PlanAnswers* asked_ = &no_plan_;  // The one in use.
  std::set<std::string> beyond_profile_;
  std::size_t calls_ = 0;
  std::size_t simulated_ = 0;
};

}  // namespace trainyard
