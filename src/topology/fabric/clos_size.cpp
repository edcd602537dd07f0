// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric/clos_size.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace trainyard {
namespace {

// About 1 GB of memory.
constexpr std::int64_t kMaxCables = 8'000'000;

int ceiling(int value, int divisor) {
  return (value + divisor - 1) / divisor;
}

// Returns how many of `all` ports may lead down at most.
int ports_down(int all, double oversubscription) {
  return static_cast<int>(all * oversubscription / (1.0 + oversubscription));
}

int ports_up(int down, double oversubscription) {
  return std::max(1, static_cast<int>(std::ceil(down / oversubscription - 1e-9)));
}

// The least number from `least` on that divides `links`, of which there are at least as many.
int spread_evenly(int links, int min) {
  while (links % min != 0) {
    ++min;
  }
  return min;
}

}  // namespace

ClosSizer::ClosSizer(const FabricContext& context, const ClosForm& form, ClosSpec& spec)
    : context_(context),
      keys_(context.keys),
      form_(form),
      spec_(spec),
      servers_(static_cast<int>(context.servers.size())) {
  int min = std::numeric_limits<int>::max();
  for (const ServerSpec* server : context.servers) {
    nics_ = std::max(nics_, server->nics);
    min = std::min(min, server->nics);
  }
  equal_nics_ = min == nics_;
  if (spec.rails && !equal_nics_) {
    place("template")
        .fail(fmt::format("rail-optimised needs servers with equally many NICs, found {} and {}; "
                          "use the template clos",
                          min, nics_));
  }
  if (!form_.is_single) {
    read_ports();
  }
  spec.leaves_per_group = (spec.rails ? nics_ : 1) * spec.tors;
}

ConfigNode ClosSizer::place(std::string_view key) const {
  return context_.node().optional(key).value_or(context_.node());
}

void ClosSizer::read_ports() {
  int min = std::numeric_limits<int>::max();
  int max = 0;
  for (const ServerSpec* server : context_.servers) {
    if (server->nics > 0) {
      min = std::min(min, server->nic_ports);
      max = std::max(max, server->nic_ports);
    }
  }
  spec_.planes = keys_.planes;
  if (min != max && (spec_.planes > 1 || keys_.is_dual_tor)) {
    const bool has_planes = context_.node().optional("planes").has_value();
    place(has_planes ? "planes" : "dual_tor")
        .fail(fmt::format("needs NICs with equally many ports, found {} and {}", min, max));
  }
  if (min % spec_.planes != 0) {
    place("planes").fail(fmt::format("a divisor of the {} ports of a NIC", min),
                         place("planes").found());
  }
  if (keys_.is_dual_tor) {
    spec_.tors = min / spec_.planes;
    if (spec_.tors == 1) {
      place("dual_tor")
          .fail(
              fmt::format("a NIC of {} ports has one port a plane, and two leaves need two", min));
    }
  }
}

int ClosSizer::ports_on_leaf(const ServerSpec& server) const {
  return spec_.rails ? 1 : server.nics;
}

bool ClosSizer::needs_spines() const {
  const bool joins_all = !spec_.rails || nics_ == 1;  // One leaf has a port of every NIC.
  return !joins_all || spec_.leaves > spec_.leaves_per_group;
}

bool ClosSizer::needs_cores() const {
  return spec_.leaves > spec_.spine.ports;
}

void ClosSizer::place_servers() {
  fill_leaves(leaf_limit());
  if (form_.is_single && spec_.leaves > 1) {
    fail_size(1, fmt::format("one {} of {} ports", spec_.leaf.name, spec_.leaf.ports));
  }
}

ClosSizer::LeafLimit ClosSizer::leaf_limit() const {
  const int ports = spec_.leaf.ports;
  const int per_server = spec_.rails ? 1 : nics_;
  if (form_.is_single) {
    return {ports, servers_};
  }
  if (keys_.nodes_per_leaf) {
    const int servers = *keys_.nodes_per_leaf;
    if (servers * per_server > ports) {
      const ConfigNode given = place("nodes_per_leaf");
      given.fail(fmt::format("at most {}, the ports of {} over those of a server",
                             ports / per_server, spec_.leaf.name),
                 given.found());
    }
    return {ports, servers};
  }
  if (!spec_.rails || nics_ == 1) {
    std::int64_t all = 0;
    for (const ServerSpec* server : context_.servers) {
      all += ports_on_leaf(*server);
    }
    if (all <= ports) {
      return {ports, servers_};
    }
  }
  const int down = ports_down(ports, keys_.oversubscription);
  if (down < per_server) {
    place("leaf").fail(
        fmt::format("{} has {} ports, too few for the {} NICs of a server and their uplinks",
                    spec_.leaf.name, ports, per_server));
  }
  return {down, servers_};
}

void ClosSizer::fill_leaves(const LeafLimit& limit) {
  int group = 0;
  int ports = 0;
  int servers = 0;
  for (const ServerSpec* server : context_.servers) {
    const int more = ports_on_leaf(*server);
    if (ports + more > limit.ports || servers == limit.servers) {
      ++group;
      ports = 0;
      servers = 0;
    }
    ports += more;
    ++servers;
    spec_.group_of_server.push_back(group);
    spec_.ports_per_leaf = std::max(spec_.ports_per_leaf, ports);
    spec_.servers_per_leaf = std::max(spec_.servers_per_leaf, servers);
  }
  spec_.leaves = (group + 1) * spec_.leaves_per_group;
  spec_.leaves_per_pod = spec_.leaves;
}

void ClosSizer::fail_size(int groups, const std::string& fabric) const {
  const auto max =
      std::ranges::count_if(spec_.group_of_server, [&](int group) { return group < groups; });
  const std::string servers = equal_nics_ ? fmt::format("at most {} servers of {} NICs", max, nics_)
                                          : fmt::format("at most the first {} servers", max);
  const bool may_add_core = spec_.tiers == 2 && keys_.tiers == 0;
  context_.nodes.fail(
      fmt::format("{} fit {}, found {}: lower nodes{} take switches with more "
                  "ports{}",
                  servers, fabric, servers_, may_add_core ? "," : " or",
                  may_add_core ? " or give a core" : ""));
}

void ClosSizer::size_two_tiers() {
  spec_.tiers = 2;
  size_uplinks();
  const int ports = spec_.spine.ports;
  if (spec_.leaves > ports && ports < spec_.leaves_per_group) {
    place("spine").fail(fmt::format("{} has {} ports, and {} leaves need one each",
                                    spec_.spine.name, ports, spec_.leaves));
  }
  if (spec_.leaves > ports) {
    fail_size(ports / spec_.leaves_per_group,
              fmt::format("two tiers of {} below {} of {} ports", spec_.leaf.name, spec_.spine.name,
                          ports));
  }
  size_spines(ports);
  check_cables();
}

void ClosSizer::size_uplinks() {
  const int used = spec_.ports_per_leaf;
  spec_.uplinks = keys_.uplinks.value_or(ports_up(used, keys_.oversubscription));
  if (used + spec_.uplinks > spec_.leaf.ports) {
    place("uplinks").fail(
        fmt::format("{} ports down and {} up are more than the {} ports of "
                    "{}",
                    used, spec_.uplinks, spec_.leaf.ports, spec_.leaf.name));
  }
}

// `ports` of a spine lead down; a number that the user gives may use all.
void ClosSizer::size_spines(int ports) {
  const int leaves = spec_.leaves_per_pod;
  const bool given = keys_.spines.has_value();
  int spines = keys_.spines.value_or(0);
  if (given && spec_.uplinks % spines != 0) {
    place("spines").fail(fmt::format("a divisor of the {} uplinks of a leaf", spec_.uplinks),
                         place("spines").found());
  }
  if (given && leaves * (spec_.uplinks / spines) > spec_.spine.ports) {
    place("spines").fail(
        fmt::format("{} leaves of {} uplinks need more than the {} ports of each of {} "
                    "spines",
                    leaves, spec_.uplinks, spec_.spine.ports, spines));
  }
  if (!given) {
    spines = spread_evenly(spec_.uplinks, ceiling(leaves * spec_.uplinks, ports));
  }
  spec_.spines = spines * spec_.pods;
}

void ClosSizer::size_three_tiers() {
  spec_.tiers = 3;
  size_uplinks();
  const int group = spec_.leaves_per_group;
  const int down = ports_down(spec_.spine.ports, keys_.spine_oversubscription);
  if (down < group) {
    place("spine").fail(
        fmt::format("{} has {} ports, too few for the {} leaves of a group of servers and "
                    "their uplinks",
                    spec_.spine.name, spec_.spine.ports, group));
  }
  const int leaves = keys_.leaves_per_pod.value_or(down / group * group);
  if (leaves > down || leaves % group != 0) {
    const ConfigNode given = place("leaves_per_pod");
    given.fail(group == 1 ? fmt::format("at most {}, the ports down of a spine", down)
                          : fmt::format("a multiple of {}, the leaves of a group of servers, and "
                                        "at most {}, the ports down of a spine",
                                        group, down),
               given.found());
  }
  spec_.pods = ceiling(spec_.leaves, leaves);
  spec_.leaves_per_pod = std::min(leaves, spec_.leaves);
  const int ports = spec_.core.ports;
  if (spec_.pods > ports) {
    fail_size(ports * leaves / group,
              fmt::format("three tiers of {} below {} below {} of {} ports", spec_.leaf.name,
                          spec_.spine.name, spec_.core.name, ports));
  }
  size_spines(down);
  size_spine_uplinks();
  size_cores();
  check_cables();
}

void ClosSizer::size_spine_uplinks() {
  const int down = spec_.leaves_per_pod * (spec_.uplinks / spec_.spines_per_pod());
  spec_.spine_uplinks = keys_.spine_uplinks.value_or(ports_up(down, keys_.spine_oversubscription));
  if (down + spec_.spine_uplinks > spec_.spine.ports) {
    place("spine_uplinks")
        .fail(fmt::format("{} ports down and {} up are more than the {} ports of "
                          "{}",
                          down, spec_.spine_uplinks, spec_.spine.ports, spec_.spine.name));
  }
}

void ClosSizer::size_cores() {
  const int groups = spec_.spines_per_pod();
  const int uplinks = spec_.spine_uplinks;
  const int ports = spec_.core.ports;
  if (!keys_.cores) {
    spec_.cores = groups * spread_evenly(uplinks, ceiling(spec_.pods * uplinks, ports));
    return;
  }
  spec_.cores = *keys_.cores;
  const ConfigNode given = place("cores");
  if (spec_.cores % groups != 0 || uplinks % std::max(1, spec_.cores / groups) != 0) {
    given.fail(fmt::format("{}, the spines of a pod, times a divisor of the {} uplinks of a spine",
                           groups, uplinks),
               given.found());
  }
  if (spec_.pods * (uplinks / spec_.cores_per_spine()) > ports) {
    given.fail(
        fmt::format("{} spines of {} uplinks need more than the {} ports of each of {} "
                    "cores",
                    spec_.pods, uplinks, ports, spec_.cores_per_spine()));
  }
}

void ClosSizer::size_fat_tree() {
  const int k = keys_.k;
  const ConfigNode node = place("k");
  if (k % 2 != 0) {
    node.fail("an even number", node.found());
  }
  if (k > spec_.leaf.ports) {
    node.fail(fmt::format("at most {}, the ports of {}", spec_.leaf.ports, spec_.leaf.name),
              node.found());
  }
  const int half = k / 2;
  if (nics_ > half) {
    node.fail(fmt::format("a switch has {} ports down, too few for the {} NICs of a server", half,
                          nics_));
  }
  fill_leaves({half, servers_});
  if (spec_.leaves > k * half) {
    fail_size(k * half, fmt::format("the fat tree of k = {}", k));
  }
  spec_.tiers = 3;
  spec_.pods = ceiling(spec_.leaves, half);
  spec_.leaves_per_pod = half;
  spec_.uplinks = half;
  spec_.spines = half * spec_.pods;
  spec_.spine_uplinks = half;
  spec_.cores = half * half;
  check_cables();
}

void ClosSizer::check_cables() const {
  const std::int64_t cables =
      std::int64_t{spec_.leaves} * spec_.uplinks + std::int64_t{spec_.spines} * spec_.spine_uplinks;
  if (cables * spec_.planes > kMaxCables) {
    context_.node().fail(fmt::format("at most {} cables between switches, found {}", kMaxCables,
                                     cables * spec_.planes));
  }
}

}  // namespace trainyard
