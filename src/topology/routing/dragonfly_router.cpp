// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/dragonfly_router.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/check.h"
#include "topology/routing/dragonfly_dependencies.h"

namespace trainyard {

DragonflyRouter::DragonflyRouter(const Topology& topology, const RoutingOptions& options)
    : AccessRouter(topology, options),
      size_(options.fabric.group_size),
      leaves_(options.fabric.group_leaves),
      groups_(options.fabric.switches / options.fabric.group_size),
      may_misroute_(may_misroute(traits(options.policy))) {
  const std::uint32_t switches = options.fabric.switches;
  CHECK(switches == groups_ * size_, "the groups of a dragonfly are not equal");
  std::vector<std::pair<std::uint32_t, LinkId>> inside;
  std::vector<std::pair<std::uint32_t, LinkId>> between;
  std::vector<std::pair<std::uint32_t, LinkId>> out;
  for (const LinkId link : access_.trunks()) {
    const std::uint32_t from = source(link);
    const std::uint32_t to = target(link);
    out.emplace_back(from, link);
    if (group(from) == group(to)) {
      CHECK(is_joined(from, to), "two leaves or two spines of a group are joined");
      inside.emplace_back(from * size_ + to % size_, link);
    } else {
      between.emplace_back(group(from) * groups_ + group(to), link);
    }
  }
  locals_ = Lists<LinkId>(switches * size_, inside);
  globals_ = Lists<LinkId>(groups_ * groups_, between);
  out_ = Lists<LinkId>(switches, out);
  for (std::uint32_t at = 0; at < switches; ++at) {
    const std::uint32_t first = group(at) * size_;
    for (std::uint32_t other = first; other < first + size_; ++other) {
      is_healthy_ = is_healthy_ && (!is_joined(at, other) || !locals(at, other).empty());
    }
  }
  for (std::uint32_t from = 0; from < groups_; ++from) {
    for (std::uint32_t to = 0; to < groups_; ++to) {
      is_healthy_ = is_healthy_ && (from == to || !globals(from, to).empty());
    }
  }
}

std::uint32_t DragonflyRouter::source(LinkId link) const {
  return *access_.number(topology_.link(link).source);
}

std::uint32_t DragonflyRouter::target(LinkId link) const {
  return *access_.number(topology_.link(link).target);
}

std::optional<std::uint32_t> DragonflyRouter::local_hops(std::uint32_t from,
                                                         std::uint32_t to) const {
  if (from == to) {
    return 0;
  }
  if (!locals(from, to).empty()) {
    return 1;
  }
  const std::uint32_t first = group(from) * size_;
  for (std::uint32_t middle = first; middle < first + size_; ++middle) {
    if (!locals(from, middle).empty() && !locals(middle, to).empty()) {
      return 2;
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> DragonflyRouter::minimal_hops(std::uint32_t from, LinkId global,
                                                           std::uint32_t to) const {
  const auto before = local_hops(from, source(global));
  const auto after = local_hops(target(global), to);
  return before && after ? std::optional(*before + 1 + *after) : std::nullopt;
}

bool DragonflyRouter::append_local(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                   std::vector<LinkId>& path) {
  if (from == to) {
    return true;
  }
  if (const auto direct = locals(from, to); !direct.empty()) {
    path.push_back(chooser.pick(access_.node(from), direct, 1));
    return true;
  }
  const std::uint32_t first = group(from) * size_;
  candidates_.clear();
  for (std::uint32_t middle = first; middle < first + size_; ++middle) {
    if (!locals(middle, to).empty()) {
      const auto links = locals(from, middle);
      candidates_.insert(candidates_.end(), links.begin(), links.end());
    }
  }
  if (candidates_.empty()) {
    return false;
  }
  path.push_back(chooser.pick(access_.node(from), candidates_, 1));
  const std::uint32_t middle = target(path.back());
  path.push_back(chooser.pick(access_.node(middle), locals(middle, to), 1));
  return true;
}

std::optional<LinkId> DragonflyRouter::choose_global(std::uint32_t from, std::uint32_t to_group,
                                                     std::optional<std::uint32_t> to,
                                                     const Chooser& chooser) {
  candidates_.clear();
  std::uint32_t min = std::numeric_limits<std::uint32_t>::max();
  for (const LinkId global : globals(group(from), to_group)) {
    const auto hops = minimal_hops(from, global, to.value_or(target(global)));
    if (hops && *hops <= min) {
      if (*hops < min) {
        candidates_.clear();
      }
      min = *hops;
      candidates_.push_back(global);
    }
  }
  if (candidates_.empty()) {
    return std::nullopt;
  }
  return chooser.pick(access_.node(from), candidates_, 1);
}

bool DragonflyRouter::append_minimal(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                     std::vector<LinkId>& path) {
  if (group(from) == group(to)) {
    return append_local(from, to, chooser, path);
  }
  const auto global = choose_global(from, group(to), to, chooser);
  if (!global || !append_local(from, source(*global), chooser, path)) {
    return false;
  }
  path.push_back(*global);
  return append_local(target(*global), to, chooser, path);
}

// Falls back on the minimal path where there is nothing to go round by.
bool DragonflyRouter::append_valiant(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                     std::vector<LinkId>& path) {
  const std::size_t before = path.size();
  if (group(from) == group(to)) {
    const std::uint32_t middle = group(from) * size_ + chooser.draw(size_);
    const bool is_between = leaves_ == 0 && from != to && middle != from && middle != to &&
                            !locals(from, middle).empty() && !locals(middle, to).empty();
    return is_between ? append_local(from, middle, chooser, path) &&
                            append_local(middle, to, chooser, path)
                      : append_minimal(from, to, chooser, path);
  }
  if (groups_ > 2) {
    std::uint32_t middle = chooser.draw(groups_ - 2);
    middle += middle >= std::min(group(from), group(to)) ? 1 : 0;
    middle += middle >= std::max(group(from), group(to)) ? 1 : 0;
    const auto global = choose_global(from, middle, std::nullopt, chooser);
    if (global && append_local(from, source(*global), chooser, path)) {
      path.push_back(*global);
      if (append_minimal(target(*global), to, chooser, path)) {
        return true;
      }
    }
    path.resize(before);
  }
  return append_minimal(from, to, chooser, path);
}

bool DragonflyRouter::append_adaptive(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                      std::vector<LinkId>& path) {
  indirect_.clear();
  const bool has_indirect = append_valiant(from, to, chooser, indirect_);
  minimal_.clear();
  if (!append_minimal(from, to, chooser, minimal_)) {
    return false;
  }
  const bool goes_round = has_indirect && chooser.load(indirect_) < chooser.load(minimal_);
  const std::vector<LinkId>& chosen = goes_round ? indirect_ : minimal_;
  path.insert(path.end(), chosen.begin(), chosen.end());
  return true;
}

bool DragonflyRouter::append_shortest(std::uint32_t from, std::uint32_t to,
                                      std::vector<LinkId>& path) const {
  std::vector<std::optional<LinkId>> reached_by(groups_ * size_);
  std::vector<std::uint32_t> queue = {from};
  for (std::size_t next = 0; next < queue.size() && !reached_by[to]; ++next) {
    for (const LinkId link : out_.of(queue[next])) {
      const std::uint32_t other = target(link);
      if (other != from && !reached_by[other]) {
        reached_by[other] = link;
        queue.push_back(other);
      }
    }
  }
  if (!reached_by[to]) {
    return false;
  }
  const std::size_t before = path.size();
  for (std::uint32_t at = to; at != from; at = source(*reached_by[at])) {
    path.push_back(*reached_by[at]);
  }
  std::reverse(path.begin() + static_cast<std::ptrdiff_t>(before), path.end());
  return true;
}

bool DragonflyRouter::append_between(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                     std::vector<LinkId>& path) {
  const std::size_t before = path.size();
  const PolicyTraits& policy = chooser.policy();
  if (policy.is_valiant          ? append_valiant(from, to, chooser, path)
      : policy.switches_choose() ? append_adaptive(from, to, chooser, path)
                                 : append_minimal(from, to, chooser, path)) {
    return true;
  }
  path.resize(before);
  return append_shortest(from, to, path);
}

void DragonflyRouter::virtual_channels(std::span<const LinkId> path,
                                       std::vector<std::uint8_t>& channels) const {
  channels.assign(path.size(), 0);
  int channel = 0;
  std::optional<std::uint32_t> turned_at;  // Where the last link ended, if it was local.
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const Link& link = topology_.link(path[hop]);
    const auto from = access_.number(link.source);
    const auto to = access_.number(link.target);
    if (!from || !to) {
      continue;
    }
    const bool is_local = group(*from) == group(*to);
    if (is_local && turned_at) {
      const bool fits = leaves_ != 0 && is_leaf(*turned_at) == (channel > 0);
      channel += fits ? 0 : 1;
    }
    channels[hop] = static_cast<std::uint8_t>(std::min(channel, channels_ - 1));
    channel += is_local ? 0 : 1;
    turned_at = is_local ? to : std::nullopt;
  }
}

// The most hops of minimal paths between leaves of two groups. With leaves that no global link
// leaves from or arrives at on both sides, the path has all three parts.
int DragonflyRouter::groups_apart(std::uint32_t from, std::uint32_t to) const {
  std::vector<bool> leaves(size_, false);
  std::vector<bool> arrives(size_, false);
  for (const LinkId global : globals(from, to)) {
    leaves[source(global) % size_] = true;
    arrives[target(global) % size_] = true;
  }
  const std::uint32_t last = leaves_ == 0 ? size_ : leaves_;
  const auto misses = [&](const std::vector<bool>& gateways) {
    return std::find(gateways.begin(), gateways.begin() + last, false) != gateways.begin() + last;
  };
  if (misses(leaves) && misses(arrives)) {
    return 3;
  }
  std::uint32_t farthest = 0;
  for (std::uint32_t first = from * size_; first < from * size_ + last; ++first) {
    for (std::uint32_t second = to * size_; second < to * size_ + last; ++second) {
      std::uint32_t min = 3;
      for (const LinkId global : globals(from, to)) {
        min = std::min(min, minimal_hops(first, global, second).value_or(min));
      }
      farthest = std::max(farthest, min);
    }
  }
  return static_cast<int>(farthest);
}

std::optional<int> DragonflyRouter::diameter() const {
  bool is_known = is_healthy_ && !may_misroute_;
  for (std::uint32_t at = 0; at < groups_ * size_; ++at) {
    is_known = is_known && (!is_leaf(at) || !access_.ups_of(at).empty());
  }
  if (!is_known) {
    return std::nullopt;
  }
  const bool several = leaves_ == 0 ? size_ > 1 : leaves_ > 1;
  int farthest = !several ? 0 : leaves_ == 0 ? 1 : 2;
  for (std::uint32_t from = 0; from < groups_ && farthest < 3; ++from) {
    for (std::uint32_t to = 0; to < groups_ && farthest < 3; ++to) {
      farthest = from == to ? farthest : std::max(farthest, groups_apart(from, to));
    }
  }
  return farthest;
}

bool DragonflyRouter::has_minimal(std::uint32_t from, std::uint32_t to) const {
  if (group(from) == group(to)) {
    return local_hops(from, to).has_value();
  }
  return std::ranges::any_of(globals(group(from), group(to)), [&](LinkId global) {
    return minimal_hops(from, global, to).has_value();
  });
}

// Pairs that only the search joins.
void DragonflyRouter::add_searched(DependencyGraph& graph) {
  std::vector<LinkId> path;
  std::vector<std::uint8_t> channels;
  for (std::uint32_t from = 0; from < groups_ * size_; ++from) {
    for (std::uint32_t to = 0; to < groups_ * size_; ++to) {
      path.clear();
      if (!is_leaf(from) || !is_leaf(to) || has_minimal(from, to) ||
          !append_shortest(from, to, path)) {
        continue;
      }
      virtual_channels(path, channels);
      for (std::size_t hop = 0; hop + 1 < path.size(); ++hop) {
        graph.add(graph.buffer(path[hop], channels[hop]),
                  graph.buffer(path[hop + 1], channels[hop + 1]));
      }
    }
  }
}

void DragonflyRouter::add_dependencies(DependencyGraph& graph) {
  const DragonflyRules rules{.has_spines = leaves_ != 0,
                             .channels = channels_,
                             .global_hops = may_misroute_ ? 2 : 1,
                             .misroutes = may_misroute_,
                             .is_whole = is_healthy_};
  DragonflyDependencies dependencies(graph, rules, groups_ * size_);
  for (std::uint32_t at = 0; at < groups_ * size_; ++at) {
    dependencies.add_endpoints(at, access_.ups_of(at), access_.downs_of(at));
    for (const LinkId link : out_.of(at)) {
      const std::uint32_t to = target(link);
      dependencies.add_link(link, at, to, group(at) == group(to), is_leaf(to));
    }
  }
  if (!is_healthy_) {
    add_searched(graph);
  }
}

}  // namespace trainyard
