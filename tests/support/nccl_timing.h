// SPDX-License-Identifier: Apache-2.0
// Timed communicators for tests of the event model. Its constants are those of the shipped profile,
// which change whenever they are fitted: tests compute from them what they expect.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing_state.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "support/built_clusters.h"

namespace trainyard::nccl {

[[nodiscard]] inline const Profile& default_profile() {
  static const Profile instance = Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  return instance;
}

using Variables = std::map<std::string, std::string>;

// "Ring", "LL128": what NCCL shall take, over at most so many channels.
[[nodiscard]] inline Variables forced(const std::string& algorithm, const std::string& protocol,
                                      int channels = 64) {
  return {{"NCCL_ALGO", algorithm},
          {"NCCL_PROTO", protocol},
          {"NCCL_MAX_NCHANNELS", std::to_string(channels)}};
}

// A cluster with its communicator. Options of NCCL are variables, as a user would set them.
struct TimedJob {
  explicit TimedJob(Cluster cluster_in, const Variables& variables = {})
      : cluster(std::move(cluster_in)),
        environment(Environment::parse(variables)),
        communicator(
            make_communicator(job_nodes(cluster, Domains::Joined), {.environment = environment})
                .communicator) {}
  TimedJob(const TimedJob&) = delete;
  TimedJob& operator=(const TimedJob&) = delete;

  [[nodiscard]] Timer timer(const LaunchMode& mode = {},
                            const Profile& profile = default_profile()) const {
    return {cluster, communicator, profile, environment, mode};
  }
  [[nodiscard]] Timer::State state(const LaunchMode& mode = {},
                                   const Profile& profile = default_profile()) const {
    return {cluster, communicator, profile, environment, mode};
  }
  // `size` as nccl-tests counts it.
  [[nodiscard]] CallPlan plan(Function function, Bytes size) const {
    const bool by_rank = function == Function::AllGather || function == Function::ReduceScatter;
    return plan_call(communicator, environment, function,
                     by_rank ? Bytes(size.count() / communicator.ranks) : size);
  }

  const Cluster cluster;
  const Environment environment;
  const Communicator communicator;
};

// Whether two calls differ in their bytes alone.
[[nodiscard]] inline bool alike(const CallPlan& a, const CallPlan& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol && a.channels == b.channels &&
         a.threads == b.threads && !a.parts.empty() && !b.parts.empty() &&
         a.parts.front().chunk == b.parts.front().chunk;
}

// GB/s of algorithm bandwidth.
[[nodiscard]] inline double bandwidth(Bytes size, SimTime time) {
  return static_cast<double>(size.count()) / time.seconds() / 1e9;
}

}  // namespace trainyard::nccl
