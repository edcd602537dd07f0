// SPDX-License-Identifier: Apache-2.0
// Times calls of NCCL by several communicators that run side by side, each from its start on.
//
// While the same calls run, each goes on as fast as if these ran all the time: by its own event
// model, with what max-min sharing leaves it of the links on which others are
// (network/sharing/load_sharing.h), as groups of a training step do (cluster_times.h). Where a call
// begins or ends, these times change, and what is done stays done, so that a call ends when
//
//     sum over the spans between such moments of (length of the span / time of the call in it) = 1
//
// Links between GPUs count as well, since calls may have GPUs in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "nccl/search/search_memory.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/init.h"
#include "nccl/tuning/tuner_csv.h"
#include "network/sharing/load_sharing.h"
#include "parallelism/traffic/group_shapes.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Returns the times that calls would take if those of `running`, in rising order, ran all the time.
using TimesBeside = std::function<std::vector<SimTime>(std::span<const std::size_t> running)>;

// Returns the end of each call.
[[nodiscard]] std::vector<SimTime> ends_side_by_side(std::span<const SimTime> starts,
                                                     const TimesBeside& times);

struct ConcurrentCall {
  std::vector<int> ranks = {};  // Ranks of the cluster, rising, at least two.
  Operation operation = Operation::AllReduce;
  Bytes size = {};                             // As aligned_size() has it.
  const nccl::InitOptions* options = nullptr;  // Those of its communicator.
  SimTime start = {};
};

struct ConcurrentTime {
  const nccl::Communicator* communicator = nullptr;  // Lives as long as the ConcurrentCalls.
  std::optional<nccl::CallPlan> plan = {};           // Nothing for sends and receives.
  SimTime end = {};
  SimTime alone = {};  // The time that it takes while no other runs.
};

// Runs calls, and keeps what runs have in common. One thread may use an object.
class ConcurrentCalls {
 public:
  struct Settings {
    const nccl::Profile& profile;
    nccl::LaunchMode mode = {};
    std::optional<nccl::EngineSettings> engine = {};  // Between nodes; none: ports.
    const nccl::TunerTable* tuner = nullptr;
    nccl::SearchMemory* searches = nullptr;  // Shared with others, if there is one.
  };
  // The cluster and what the settings refer to must outlive this.
  ConcurrentCalls(const Cluster& cluster, const Settings& settings);

  // Throws ConfigError where NCCL or the routing cannot, for CollNet, whose links are not known,
  // and for what never ends.
  [[nodiscard]] std::vector<ConcurrentTime> run(std::span<const ConcurrentCall> calls);
  // Names what calls were beyond the rows of the profile, where it was fitted to those of one
  // machine.
  [[nodiscard]] const std::set<std::string>& beyond_profile() const { return beyond_profile_; }

 private:
  struct Known {
    nccl::Communicator communicator;
    std::int64_t number = 0;
  };
  struct Prepared {
    const ConcurrentCall* call = nullptr;
    const nccl::Communicator* communicator = nullptr;
    std::optional<nccl::CallPlan> plan = {};
    std::vector<Load> loads = {};
    std::vector<std::int64_t> alike = {};  // Equal for those that take as long at equal rates.
    SeesFabric sees_fabric = SeesFabric::Yes;
  };
  using Left = std::vector<std::pair<LinkId, Bandwidth>>;

  [[nodiscard]] const Known& communicator_of(const ConcurrentCall& call);
  // The loads of calls, and what tells apart those that take as long at equal rates.
  struct KnownLoads {
    std::vector<Load> loads;
    std::vector<std::int64_t> signature;
  };
  // The ranks of a call, then all of it that its loads depend on.
  using Use = std::pair<std::vector<int>, std::vector<int>>;

  // Without loads.
  [[nodiscard]] Prepared plan(const ConcurrentCall& call);
  [[nodiscard]] static Use use_of(const Prepared& call);
  [[nodiscard]] KnownLoads loads_of(const Prepared& call);
  [[nodiscard]] std::vector<Prepared> prepare(std::span<const ConcurrentCall> calls);
  [[nodiscard]] std::vector<SimTime> times(std::span<const Prepared> calls,
                                           std::span<const std::size_t> running);
  // `share`: what others leave it, if they take anything.
  [[nodiscard]] SimTime time(const Prepared& call, const GroupShare& share);
  [[nodiscard]] SimTime simulated(const Prepared& call, const GroupShare& share, const Left& left);
  [[nodiscard]] Left links_left(const Prepared& call, const GroupShare& share) const;

  const Cluster& whole_;
  Cluster group_;  // Ranks in question, of whole_.
  Settings settings_;
  std::vector<int> domain_of_rank_;
  Routing routing_;
  ConnectionLoads connections_;
  GroupShapes shapes_;
  nccl::SearchMemory own_searches_;
  std::map<std::pair<const nccl::InitOptions*, std::vector<int>>, Known> communicators_;
  // Loads of all calls of a run, as the ways that some take depend on those before.
  std::map<std::vector<Use>, std::vector<KnownLoads>> known_loads_;
  // Times by likeness, limits, share and links.
  std::map<std::tuple<std::vector<std::int64_t>, std::vector<double>, double, Left>, SimTime>
      known_;
  std::set<std::string> beyond_profile_;
};

}  // namespace trainyard
