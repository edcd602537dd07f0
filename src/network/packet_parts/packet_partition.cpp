// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_partition.h"

#include <algorithm>
#include <limits>
#include <span>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

class Cutter {
 public:
  Cutter(const Topology& topology, std::uint32_t parts)
      : topology_(topology), parts_(parts), part_(topology.node_count(), kNone) {}

  std::vector<std::uint32_t> cut() {
    cut_servers();
    std::vector<std::uint32_t> level = next_level();
    while (!level.empty()) {
      place(level);
      level = next_level();
    }
    std::ranges::replace(part_, kNone, 0U);  // No link leads there.
    return part_;
  }

 private:
  struct Group {
    std::uint32_t first_switch = kNone;
    std::vector<std::uint32_t> nodes = {};
    std::uint64_t links = 0;
  };

  [[nodiscard]] std::span<const LinkId> links_from(std::uint32_t node) const {
    return topology_.links_from(NodeId(node));
  }
  [[nodiscard]] const Node& node(std::uint32_t number) const {
    return topology_.node(NodeId(number));
  }

  // Servers, and nodes of no server that are no switches.
  [[nodiscard]] std::vector<Group> groups() const {
    std::vector<Group> all(topology_.server_count());
    for (std::uint32_t number = 0; number < topology_.node_count(); ++number) {
      const auto server = node(number).server;
      if (!server && node(number).kind == NodeKind::Switch) {
        continue;
      }
      Group& group = server ? all[server->value()] : all.emplace_back();
      group.nodes.push_back(number);
      group.links += links_from(number).size();
      for (const LinkId link : links_from(number)) {
        const NodeId target = topology_.link(link).target;
        if (topology_.node(target).kind == NodeKind::Switch && !topology_.node(target).server) {
          group.first_switch = std::min(group.first_switch, target.value());
        }
      }
    }
    return all;
  }

  void cut_servers() {
    std::vector<Group> all = groups();
    std::stable_sort(all.begin(), all.end(), [](const Group& a, const Group& b) {
      return a.first_switch < b.first_switch;
    });
    std::uint64_t total = 0;
    for (const Group& group : all) {
      total += group.links;
    }
    total = std::max<std::uint64_t>(total, 1);
    std::uint64_t before = 0;
    for (const Group& group : all) {
      // The middle of the group decides.
      const std::uint64_t place = (2 * before + group.links) * parts_ / (2 * total);
      const auto part = static_cast<std::uint32_t>(std::min<std::uint64_t>(place, parts_ - 1));
      for (const std::uint32_t number : group.nodes) {
        part_[number] = part;
      }
      before += group.links;
    }
  }

  // Nodes that are not placed but have a neighbour that is.
  [[nodiscard]] std::vector<std::uint32_t> next_level() const {
    std::vector<std::uint32_t> level;
    for (std::uint32_t number = 0; number < part_.size(); ++number) {
      const auto links = links_from(number);
      const bool is_next =
          part_[number] == kNone && std::any_of(links.begin(), links.end(), [&](LinkId link) {
            return part_[topology_.link(link).target.value()] != kNone;
          });
      if (is_next) {
        level.push_back(number);
      }
    }
    return level;
  }

  // No part gets more than its share of the links of a level.
  void place(const std::vector<std::uint32_t>& level) {
    std::uint64_t total = 0;
    for (const std::uint32_t number : level) {
      total += links_from(number).size();
    }
    const std::uint64_t share = (total + parts_ - 1) / parts_;
    std::vector<std::uint64_t> load(parts_);
    std::vector<std::uint32_t> chosen;
    for (const std::uint32_t number : level) {
      std::vector<std::uint64_t> near(parts_);
      for (const LinkId link : links_from(number)) {
        const std::uint32_t part = part_[topology_.link(link).target.value()];
        if (part != kNone) {
          ++near[part];
        }
      }
      std::uint32_t best = kNone;
      for (std::uint32_t part = 0; part < parts_; ++part) {
        const bool is_better = best == kNone || near[part] > near[best] ||
                               (near[part] == near[best] && load[part] < load[best]);
        if (load[part] < share && is_better) {
          best = part;
        }
      }
      CHECK(best != kNone, "no part has room for a switch");
      load[best] += links_from(number).size();
      chosen.push_back(best);
    }
    for (std::size_t i = 0; i < level.size(); ++i) {
      part_[level[i]] = chosen[i];
    }
  }

  const Topology& topology_;
  std::uint32_t parts_;
  std::vector<std::uint32_t> part_;  // Indexed by node.
};

}  // namespace

std::vector<std::uint32_t> cut_into_parts(const Topology& topology, std::uint32_t parts) {
  CHECK(parts > 0, "a fabric in no parts");
  return Cutter(topology, parts).cut();
}

}  // namespace trainyard
