// SPDX-License-Identifier: Apache-2.0
// Finds out whether a network is one that the templates of tiers build (src/topology/fabric/
// clos.h). Switches whose hosts are the same set of ports are leaves, what joins leaves are spines,
// what joins spines are cores, and every rule of the templates is checked: no cable remains that a
// template would not lay, and none is missing.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "topology/exchange/simulated_network.h"

namespace trainyard {
namespace {

using Node = std::uint32_t;
using Neighbours = std::map<Node, int>;  // Neighbours of one node and the number of cables.

// Neighbours that all have equally many cables.
struct EvenLinks {
  std::set<Node> ends;
  int copies = 0;
  [[nodiscard]] bool operator==(const EvenLinks&) const = default;
};
std::optional<EvenLinks> even(const Neighbours& neighbours) {
  EvenLinks links;
  for (const auto& [node, copies] : neighbours) {
    if (links.copies != 0 && copies != links.copies) {
      return std::nullopt;
    }
    links.copies = copies;
    links.ends.insert(node);
  }
  return links;
}

class ShapeFinder {
 public:
  explicit ShapeFinder(const SimulatedNetwork& network) : network_(network) {}

  std::optional<TierShape> find() {
    if (!sort_into_tiers() || !has_equal_nics()) {
      return std::nullopt;
    }
    // The rate of a cable is that of the slower port, and a switch has ports of one rate.
    const auto& tiers = shape_.tiers;
    if (tiers.size() == 3 && tiers[1].rate < tiers[0].rate && tiers[1].rate < tiers[2].rate) {
      return std::nullopt;
    }
    for (const bool rails : {false, true}) {
      for (const int planes : {1, shape_.ports_per_nic}) {
        shape_.rails = rails;
        shape_.planes = planes;
        if (deal_ports() && find_spines() && find_cores()) {
          return shape_;
        }
      }
    }
    return std::nullopt;
  }

 private:
  struct Links {
    Neighbours up;
    Neighbours down;
  };

  // Tiers of switches by their distance from hosts, each with equal cables below.
  bool sort_into_tiers() {
    constexpr int kUnknown = 3;
    std::vector<int> tier(network_.hosts + network_.switch_delays.size(), kUnknown);
    std::fill_n(tier.begin(), network_.hosts, -1);
    for (int level = 0; level < kUnknown; ++level) {
      for (const auto& cable : network_.cables) {
        const Node low = tier[cable.from] <= tier[cable.to] ? cable.from : cable.to;
        const Node high = low == cable.from ? cable.to : cable.from;
        if (tier[low] == level - 1 && tier[high] == kUnknown) {
          tier[high] = level;
        }
      }
    }
    links_.resize(tier.size());
    for (const auto& cable : network_.cables) {
      const auto [low, high] = std::minmax(tier[cable.from], tier[cable.to]);
      if (high == kUnknown || high != low + 1) {
        return false;
      }
      const auto level = static_cast<std::size_t>(high);
      shape_.tiers.resize(std::max(shape_.tiers.size(), level + 1));
      TierShape::Tier& below = shape_.tiers[level];
      if (below.rate == Bandwidth()) {
        below.rate = cable.rate;
        below.cable_delay = cable.delay;
      }
      if (below.rate != cable.rate || below.cable_delay != cable.delay) {
        return false;
      }
      const Node lower = tier[cable.from] < tier[cable.to] ? cable.from : cable.to;
      ++links_[lower].up[lower == cable.from ? cable.to : cable.from];
      ++links_[lower == cable.from ? cable.to : cable.from].down[lower];
    }
    return has_equal_switches(tier);
  }

  bool has_equal_switches(const std::vector<int>& tier) {
    members_.resize(shape_.tiers.size());
    for (Node node = network_.hosts; node < tier.size(); ++node) {
      const auto level = static_cast<std::size_t>(tier[node]);
      if (level >= members_.size()) {
        return false;
      }
      members_[level].push_back(node);
      TierShape::Tier& here = shape_.tiers[level];
      const SimTime delay = network_.switch_delays[node - network_.hosts];
      if (members_[level].size() > 1 && delay != here.switch_delay) {
        return false;
      }
      here.switch_delay = delay;
      here.ports_down = std::max(here.ports_down, count(links_[node].down));
      here.ports_up = std::max(here.ports_up, count(links_[node].up));
    }
    return !members_.empty();
  }
  static int count(const Neighbours& neighbours) {
    int sum = 0;
    for (const auto& [node, copies] : neighbours) {
      sum += copies;
    }
    return sum;
  }

  // Each NIC has as many ports as the first, on leaves of their own.
  bool has_equal_nics() {
    const std::size_t ports = links_[0].up.size();
    shape_.ports_per_nic = static_cast<int>(ports);
    return std::all_of(links_.begin(), links_.begin() + network_.hosts, [&](const Links& host) {
      const std::optional<EvenLinks> links = even(host.up);
      return links && links->copies == 1 && links->ends.size() == ports;
    });
  }

  // Fills `leaves_` in the order of the template.
  bool deal_ports() {
    const auto nics = static_cast<int>(network_.gpus_per_server);
    const auto servers = static_cast<int>(network_.hosts) / nics;
    const Node first = links_[0].up.begin()->first;
    int& together = shape_.nodes_per_leaf;
    for (together = 1; together < servers; ++together) {
      if (!links_[static_cast<Node>(together * nics)].up.contains(first)) {
        break;
      }
    }
    std::map<std::pair<int, int>, Node> leaves;  // Their keys are plane and number.
    const int tors = shape_.ports_per_nic / shape_.planes;
    for (Node host = 0; host < network_.hosts; ++host) {
      const auto nic = static_cast<int>(host) % nics;
      const int group = static_cast<int>(host) / nics / together;
      const int leaf = (shape_.rails ? group * nics + nic : group) * tors;
      int port = 0;
      for (const auto& [node, copies] : links_[host].up) {
        const std::pair key{shape_.planes > 1 ? port : 0, leaf + (shape_.planes > 1 ? 0 : port)};
        if (leaves.emplace(key, node).first->second != node) {
          return false;
        }
        ++port;
      }
    }
    std::set<Node> different;
    leaves_.assign(static_cast<std::size_t>(shape_.planes), {});
    for (const auto& [key, node] : leaves) {
      different.insert(node);
      leaves_[static_cast<std::size_t>(key.first)].push_back(node);
    }
    return different.size() == leaves.size();
  }

  // Cuts leaves into pods, each with spines of its own that all of its leaves have cables to.
  bool find_spines() {
    const auto nics = static_cast<std::size_t>(shape_.rails ? network_.gpus_per_server : 1);
    const std::size_t together =
        nics * static_cast<std::size_t>(shape_.ports_per_nic / shape_.planes);
    const bool needs_spines = nics > 1 || leaves_.front().size() > together;
    if (!needs_spines || shape_.tiers.size() == 1) {
      return !needs_spines && shape_.tiers.size() == 1;
    }
    const std::optional<EvenLinks> first = even(links_[leaves_.front().front()].up);
    const auto other = std::ranges::find_if(
        leaves_.front(), [&](Node leaf) { return even(links_[leaf].up) != first; });
    const auto in_pod = static_cast<std::size_t>(other - leaves_.front().begin());
    if (!first || (other != leaves_.front().end() && in_pod % together != 0)) {
      return false;
    }
    shape_.leaves_per_pod = static_cast<int>(in_pod);
    shape_.spines = static_cast<int>(first->ends.size());
    std::set<Node> taken;
    pods_.clear();
    for (const std::vector<Node>& leaves : leaves_) {
      std::vector<std::set<Node>>& pods = pods_.emplace_back();
      for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
        const std::optional<EvenLinks> links = even(links_[leaves[leaf]].up);
        if (!links || links->copies != first->copies || links->ends.size() != first->ends.size()) {
          return false;
        }
        if (leaf % in_pod != 0) {
          if (links->ends != pods.back()) {
            return false;
          }
        } else if (!take(links->ends, taken)) {
          return false;
        } else {
          pods.push_back(links->ends);
        }
      }
    }
    return true;
  }
  // Returns whether none of `nodes` was taken before.
  static bool take(const std::set<Node>& nodes, std::set<Node>& taken) {
    return std::ranges::all_of(nodes, [&](Node node) { return taken.insert(node).second; });
  }

  // Cores come in groups, and each pod has one spine with cables to all of a group.
  bool find_cores() {
    if (shape_.tiers.size() < 3) {
      return std::ranges::all_of(pods_, [](const auto& pods) { return pods.size() == 1; });
    }
    const std::optional<EvenLinks> first = even(links_[*pods_.front().front().begin()].up);
    std::set<Node> taken;
    for (const std::vector<std::set<Node>>& pods : pods_) {
      std::set<std::set<Node>> groups;
      for (const std::set<Node>& spines : pods) {
        std::set<std::set<Node>> of_pod;
        for (const Node spine : spines) {
          const std::optional<EvenLinks> links = even(links_[spine].up);
          if (!first || !links || links->copies != first->copies ||
              links->ends.size() != first->ends.size() || !of_pod.insert(links->ends).second) {
            return false;
          }
        }
        if (groups.empty()) {
          groups = of_pod;
        }
        if (groups != of_pod) {
          return false;
        }
      }
      for (const std::set<Node>& group : groups) {
        if (!take(group, taken)) {
          return false;
        }
      }
    }
    shape_.cores = shape_.spines * static_cast<int>(first->ends.size());
    return true;
  }

  const SimulatedNetwork& network_;
  TierShape shape_;
  std::vector<Links> links_;                       // Links of each node.
  std::vector<std::vector<Node>> members_;         // Switches of each tier.
  std::vector<std::vector<Node>> leaves_;          // Leaves of each plane, in order.
  std::vector<std::vector<std::set<Node>>> pods_;  // Spines of each pod of each plane.
};

}  // namespace

std::optional<TierShape> shape_of(const SimulatedNetwork& network) {
  return ShapeFinder(network).find();
}

}  // namespace trainyard
