// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_traffic.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <string_view>

#include "topology/routing/routing.h"

namespace trainyard {

std::vector<LinkTraffic> traffic_of(std::span<const LinkUse> uses, const std::string& purpose) {
  std::vector<LinkTraffic> traffic;
  for (const LinkUse& use : uses) {
    traffic.push_back({.link = use.link, .parts = {{.purpose = purpose, .bytes = use.bytes}}});
  }
  return traffic;
}

NcclTraffic::NcclTraffic(const Cluster& cluster, Operation operation, RankId root)
    : cluster_(cluster), operation_(operation), root_(root) {}

const Load& NcclTraffic::switched(nccl::Algorithm algorithm) {
  const std::lock_guard guard(mutex_);
  const auto [known, is_new] = switched_.try_emplace(algorithm);
  if (is_new) {
    Routing routing(cluster_.topology, cluster_.routing);
    known->second = switched_traffic(cluster_, routing, algorithm, operation_, root_);
  }
  return known->second;
}

std::vector<LinkTraffic> NcclTraffic::of(const std::optional<nccl::CallPlan>& call, Bytes size,
                                         nccl::Timer& timer) {
  const std::string purpose =
      fmt::format("{} {}", to_string(operation_),
                  call ? to_string(call->algorithm) : std::string_view("SendRecv"));
  std::vector<LinkTraffic> traffic;
  const auto add = [&](LinkId link, double bytes) {
    traffic.push_back({.link = link, .parts = {}});
    traffic.back().parts.push_back({.purpose = purpose, .bytes = Bytes(std::llround(bytes))});
  };
  for (const LinkWeight& one : call ? timer.traffic(*call, static_cast<int>(root_.value()))
                                    : timer.traffic(operation_, size)) {
    add(one.link, one.weight);
  }
  if (call) {
    for (const LinkWeight& one : switched(call->algorithm)) {
      add(one.link, static_cast<double>(size.count()) * one.weight);
    }
  }
  return traffic;
}

}  // namespace trainyard
