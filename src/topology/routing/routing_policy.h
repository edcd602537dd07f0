// SPDX-License-Identifier: Apache-2.0
// The routing policies of fabrics: one row each. Code asks a row for a trait, never for the policy.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainyard {

enum class RoutingPolicy : std::uint8_t { EcmpHash, Static, Valiant, Adaptive, Spray };

// The rule that decides among equally good links: a hash of the flow and the seed, the index of the
// target (of the path, where packets are sprayed), or the least load.
enum class LinkChoice : std::uint8_t { Hash, Index, Load };

struct PolicyTraits {
  RoutingPolicy policy;
  std::string_view name;  // In cluster files.
  LinkChoice choice;
  bool sprays = false;      // The packets of one message take all equally good paths at once.
  bool is_valiant = false;  // Routes go through a switch or group that a hash draws.
  std::string_view seedless = {};  // Why the seed has no effect; empty where it has one.

  // Switches choose by load, so that routes depend on those made before.
  [[nodiscard]] constexpr bool switches_choose() const { return choice == LinkChoice::Load; }
  // Switches spread over all paths what one path lacks.
  [[nodiscard]] constexpr bool spreads() const { return sprays || switches_choose(); }
  // A flow keeps to one shortest path, whatever the load, so that flows may collide.
  [[nodiscard]] constexpr bool keeps_shortest_path() const { return !spreads() && !is_valiant; }
};

// In the order of the enumerators.
inline constexpr std::array kRoutingPolicies = {
    PolicyTraits{.policy = RoutingPolicy::EcmpHash, .name = "ecmp", .choice = LinkChoice::Hash},
    PolicyTraits{.policy = RoutingPolicy::Static,
                 .name = "static",
                 .choice = LinkChoice::Index,
                 .seedless = "the cluster routes statically"},
    PolicyTraits{.policy = RoutingPolicy::Valiant,
                 .name = "valiant",
                 .choice = LinkChoice::Hash,
                 .is_valiant = true},
    PolicyTraits{.policy = RoutingPolicy::Adaptive, .name = "adaptive", .choice = LinkChoice::Load},
    PolicyTraits{.policy = RoutingPolicy::Spray,
                 .name = "spray",
                 .choice = LinkChoice::Index,
                 .sprays = true,
                 .seedless = "the cluster sprays over all paths"},
};

[[nodiscard]] constexpr const PolicyTraits& traits(RoutingPolicy policy) {
  return kRoutingPolicies[static_cast<std::size_t>(policy)];
}
static_assert(std::ranges::all_of(kRoutingPolicies, [](const PolicyTraits& row) {
  return traits(row.policy).name == row.name;
}));

// As cluster files write it.
[[nodiscard]] constexpr std::string_view to_string(RoutingPolicy policy) {
  return traits(policy).name;
}

}  // namespace trainyard
