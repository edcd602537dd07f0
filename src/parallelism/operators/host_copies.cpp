// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/host_copies.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <vector>

#include "network/sharing/load_sharing.h"
#include "network/traffic/transfers.h"
#include "sim/check.h"
#include "topology/graph/path.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

struct CopyRates {
  Bandwidth min = {};
  SimTime latency = {};  // Latency of the longest path.
};

CopyRates rates_of(const Cluster& cluster, std::span<const Transfer> copies) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<Load> loads;
  CopyRates result;
  for (const Transfer& copy : copies) {
    std::vector<LinkId> path;
    CHECK(routing.route(copy.source, copy.target, 0, path), "a way to the nearest memory");
    result.latency = std::max(result.latency, path_latency(cluster.topology, path));
    Load load;
    for (const LinkId link : path) {
      load.push_back({.link = link, .weight = 1.0});
    }
    merge(load);
    loads.push_back(std::move(load));
  }
  const std::vector<double> rates = shared_rates(cluster.topology, loads);
  result.min = Bandwidth(std::llround(*std::min_element(rates.begin(), rates.end())));
  return result;
}

}  // namespace

SimTime HostRates::copy_to_host(Bytes size) const {
  return size.count() == 0 ? SimTime() : latency + transfer_time(size, to_host);
}

SimTime HostRates::copy_to_gpu(Bytes size) const {
  return size.count() == 0 ? SimTime() : latency + transfer_time(size, to_gpu);
}

// Each memory has one link, to its CPU.
Bandwidth min_memory(const Topology& topology, std::span<const NodeId> memories) {
  std::map<NodeId, std::int64_t> users;
  for (const NodeId memory : memories) {
    ++users[memory];
  }
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  for (const auto& [memory, count] : users) {
    const Link& link = topology.link(topology.links_from(memory).front());
    min = std::min(min, link.spec.bandwidth.bits_per_second() / count);
  }
  return Bandwidth(min);
}

HostRates host_rates(const Cluster& cluster) {
  const std::vector<Transfer> down = host_transfers(cluster, HostDirection::FromGpu);
  std::vector<NodeId> memories;
  for (const Transfer& copy : down) {
    memories.push_back(copy.target);
  }
  const CopyRates to_host = rates_of(cluster, down);
  const CopyRates to_gpu = rates_of(cluster, host_transfers(cluster, HostDirection::ToGpu));
  return {.to_host = to_host.min,
          .to_gpu = to_gpu.min,
          .memory = min_memory(cluster.topology, memories),
          .latency = std::max(to_host.latency, to_gpu.latency)};
}

std::optional<HostRates> host_rates_for(const ParallelPlan& plan, const Cluster& cluster) {
  return plan.offload.any() ? std::optional(host_rates(cluster)) : std::nullopt;
}

}  // namespace trainyard
