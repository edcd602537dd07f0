// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/timing_gpu_links.h"

#include <algorithm>
#include <iterator>

#include "nccl/timing/timing_state.h"

namespace trainyard::nccl {
namespace {

Timer::State state_of(const CommunicatorPlace& place) {
  return {place.cluster, place.communicator, place.profile, place.environment, {},
          std::nullopt,  &place.routing};
}

// Sums take all bytes from each GPU and bring a head its part back; copies go the other way round.
void add_multicast(const CommunicatorPlace& place, const CallPlan& plan, std::vector<Load>& loads) {
  if (plan.algorithm != Algorithm::Nvls && plan.algorithm != Algorithm::NvlsTree) {
    return;
  }
  const Topology& topology = place.cluster.topology;
  const auto bytes = static_cast<double>(plan.bytes.count());
  const double sums = plan.function == Function::AllGather ? 0.0 : bytes;
  const double copies = plan.function == Function::ReduceScatter ? 0.0 : bytes;
  const double heads = std::max(1, place.communicator.nvls_heads);
  Load& load = loads.empty() ? loads.emplace_back() : loads.front();
  const auto add = [&](const std::vector<LinkId>& links, double weight) {
    for (const LinkId link : links) {
      load.push_back({.link = link, .weight = weight / static_cast<double>(links.size())});
    }
  };
  for (const NodeId device : place.cluster.gpus) {
    std::vector<LinkId> there;
    std::vector<LinkId> back;
    for (const LinkId link : topology.links_from(device)) {
      const NodeId peer = topology.link(link).target;
      if (topology.node(peer).kind == NodeKind::NvSwitch) {
        there.push_back(link);
        std::ranges::copy_if(topology.links_from(peer), std::back_inserter(back),
                             [&](LinkId id) { return topology.link(id).target == device; });
      }
    }
    add(there, sums + copies / heads);
    add(back, copies + sums / heads);
  }
  merge(load);
}

}  // namespace

std::vector<Load> loads_with_gpu_links(const CommunicatorPlace& place, const CallPlan& plan,
                                       ConnectionLoads& connections) {
  Timer::State state = state_of(place);
  std::vector<Load> loads =
      state.loads(state.flows_of(plan), Timer::State::LinkShares::AsReachedWithGpus, connections);
  add_multicast(place, plan, loads);
  return loads;
}

std::vector<Load> loads_with_gpu_links(const CommunicatorPlace& place, Operation operation,
                                       ConnectionLoads& connections) {
  return state_of(place).loads(operation, Timer::State::LinkShares::AsReachedWithGpus, connections);
}

}  // namespace trainyard::nccl
