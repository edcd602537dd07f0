// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_traffic.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "collectives/placement/aggregation.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

// The size for which the bytes of NVSwitches are counted; what they carry is in proportion to the
// size, but for the rounding of chunks.
constexpr Bytes kMulticastSize = gib(1);

// NVLS and NVLSTree use NVSwitches as the plain algorithms of these names do.
std::optional<Algorithm> multicast_algorithm(const std::optional<nccl::CallPlan>& call) {
  if (call && call->algorithm == nccl::Algorithm::Nvls) {
    return &kNvls;
  }
  return call && call->algorithm == nccl::Algorithm::NvlsTree ? std::optional(&kNvlsTree)
                                                              : std::nullopt;
}

}  // namespace

std::vector<LinkTraffic> traffic_of(const CollectiveResult& run, const std::string& purpose) {
  std::vector<LinkTraffic> traffic;
  for (const LinkUse& use : run.link_use) {
    traffic.push_back({.link = use.link, .parts = {{.purpose = purpose, .bytes = use.bytes}}});
  }
  return traffic;
}

NcclTraffic::NcclTraffic(const Cluster& cluster, Operation operation, RankId root)
    : cluster_(cluster), operation_(operation), root_(root) {}

const std::vector<LinkUse>& NcclTraffic::multicast(Algorithm algorithm) {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find(multicasts_, algorithm, &Multicast::algorithm);
  if (found != multicasts_.end()) {
    return found->uses;
  }
  Multicast made{.algorithm = algorithm, .uses = {}};
  Routing routing(cluster_.topology, cluster_.routing);
  if (supports(algorithm, operation_) && !placement_error(cluster_, routing, algorithm)) {
    made.uses = link_use_of(cluster_, routing,
                            {.operation = operation_,
                             .algorithm = algorithm,
                             .size = kMulticastSize,
                             .root = root_,
                             .fidelity = Fidelity::Analytical});
    std::erase_if(made.uses, [&](const LinkUse& use) {
      return cluster_.topology.link(use.link).spec.kind != LinkKind::NvLink;
    });
  }
  multicasts_.push_back(std::move(made));
  return multicasts_.back().uses;
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
  if (const std::optional<Algorithm> plain = multicast_algorithm(call)) {
    const double share =
        static_cast<double>(size.count()) / static_cast<double>(kMulticastSize.count());
    for (const LinkUse& use : multicast(*plain)) {
      add(use.link, share * static_cast<double>(use.bytes.count()));
    }
  }
  return traffic;
}

}  // namespace trainyard
