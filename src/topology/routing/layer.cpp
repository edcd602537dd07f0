// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/layer.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();

}  // namespace

Layer::Layer(const Topology& topology, const ForwardsNode& forwards, const LinkCost& cost)
    : topology_(topology), core_of_node_(topology.node_count()) {
  collect_links(forwards, cost);
  find_components();
  order_endpoints();
  find_levels();
  fields_.resize(cores_.size());
}

void Layer::collect_links(const ForwardsNode& forwards, const LinkCost& cost) {
  std::vector<std::pair<std::uint32_t, Access>> up;
  std::vector<std::pair<std::uint32_t, Access>> down;
  std::vector<std::pair<std::uint32_t, Direct>> direct;
  std::vector<std::pair<std::uint32_t, CoreLink>> from;
  std::vector<std::pair<std::uint32_t, CoreLink>> to;
  const auto enter_core = [&](NodeId node) {
    if (forwards(topology_.node(node).kind) && !core_of_node_[node.value()]) {
      const auto core = static_cast<std::uint32_t>(cores_.size());
      core_of_node_[node.value()] = core;
      cores_.push_back({.node = node, .component = 0, .position = 0});
      up.push_back({node.value(), {core, 0, std::nullopt}});
      down.push_back({node.value(), {core, 0, std::nullopt}});
    }
    return core_of_node_[node.value()];
  };
  for (std::uint32_t index = 0; index < topology_.link_count(); ++index) {
    const LinkId id(index);
    const Link& link = topology_.link(id);
    const std::uint32_t price = cost(link.spec.kind);
    if (price == 0) {
      continue;
    }
    const auto source = enter_core(link.source);
    const auto target = enter_core(link.target);
    if (source && target) {
      from.push_back({*source, {*target, price, id}});
      to.push_back({*target, {*source, price, id}});
    } else if (target) {
      up.push_back({link.source.value(), {*target, price, id}});
    } else if (source) {
      down.push_back({link.target.value(), {*source, price, id}});
    } else {
      direct.push_back({link.source.value(), {link.target, price, id}});
    }
  }
  std::stable_sort(direct.begin(), direct.end(),
                   [](const auto& a, const auto& b) { return a.second.target < b.second.target; });
  const auto cores = static_cast<std::uint32_t>(cores_.size());
  up_ = Lists<Access>(topology_.node_count(), up);
  down_ = Lists<Access>(topology_.node_count(), down);
  direct_ = Lists<Direct>(topology_.node_count(), direct);
  core_from_ = Lists<CoreLink>(cores, from);
  core_to_ = Lists<CoreLink>(cores, to);
}

void Layer::find_components() {
  std::vector<bool> seen(cores_.size(), false);
  for (std::uint32_t first = 0; first < cores_.size(); ++first) {
    if (seen[first]) {
      continue;
    }
    const auto component = static_cast<std::uint32_t>(components_.size());
    std::vector<std::uint32_t> members = {first};
    seen[first] = true;
    for (std::size_t next = 0; next < members.size(); ++next) {
      const std::uint32_t core = members[next];
      for (const Lists<CoreLink>* lists : {&core_from_, &core_to_}) {
        for (const CoreLink& link : lists->of(core)) {
          if (!seen[link.other]) {
            seen[link.other] = true;
            members.push_back(link.other);
          }
        }
      }
    }
    for (std::uint32_t position = 0; position < members.size(); ++position) {
      cores_[members[position]].component = component;
      cores_[members[position]].position = position;
    }
    components_.push_back(std::move(members));
  }
}

void Layer::order_endpoints() {
  component_endpoints_.resize(components_.size());
  std::vector<std::pair<std::uint32_t, NodeId>> order;  // Sorted by first core node, then by id.
  for (std::uint32_t index = 0; index < topology_.node_count(); ++index) {
    const NodeId node(index);
    if (core_of_node_[index]) {
      continue;
    }
    for (const Access& access : down_.of(index)) {
      std::vector<NodeId>& members = component_endpoints_[cores_[access.core].component];
      if (members.empty() || members.back() != node) {
        members.push_back(node);
      }
    }
    if (!down_.of(index).empty()) {
      order.push_back({down_.of(index).front().core, node});
    } else if (!up_.of(index).empty() || !direct_.of(index).empty()) {
      order.push_back({kUnreachable, node});
    }
  }
  std::sort(order.begin(), order.end());
  for (const auto& [core, node] : order) {
    endpoints_.push_back(node);
  }
}

// Level 0 are the core nodes with endpoints, level 1 their neighbours, and so on. A path that goes
// up from level 0 has chosen among as many links as such a node has upwards; the choice at level 1
// must look at what is left of the target's index after that (D-mod-k: Zahavi, Fat-trees routing
// and node ordering providing contention free traffic for MPI global collectives, 2011).
void Layer::find_levels() {
  std::vector<std::uint32_t> queue;
  std::vector<bool> seen(cores_.size(), false);
  const auto enter = [&](std::uint32_t core, std::uint32_t level) {
    if (!seen[core]) {
      seen[core] = true;
      cores_[core].level = level;
      queue.push_back(core);
    }
  };
  for (const NodeId node : endpoints_) {
    for (const Access& access : down_.of(node.value())) {
      enter(access.core, 0);
    }
  }
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const CoreLink& link : core_to_.of(queue[next])) {
      enter(link.other, cores_[queue[next]].level + 1);
    }
  }
  std::vector<LevelCount> counts;
  std::vector<std::uint32_t> targets;
  for (const std::uint32_t core : queue) {
    const std::uint32_t level = cores_[core].level;
    counts.resize(std::max<std::size_t>(counts.size(), level + 1));
    targets.clear();
    for (const CoreLink& link : core_from_.of(core)) {
      if (cores_[link.other].level > level) {
        targets.push_back(link.other);
      }
    }
    counts[level].add(targets);
  }
  for (const LevelCount& count : counts) {
    level_links_.push_back(count.links());
  }
}

std::vector<NodeId> Layer::around(NodeId node, const std::vector<bool>& wanted) const {
  std::vector<NodeId> targets;
  const auto enter = [&](NodeId target) {
    if (wanted[target.value()]) {
      targets.push_back(target);
    }
  };
  for (const Direct& direct : direct_.of(node.value())) {
    enter(direct.target);
  }
  std::optional<std::uint32_t> last;
  for (const Access& access : up_.of(node.value())) {
    const std::uint32_t component = cores_[access.core].component;
    if (component != last) {
      std::ranges::for_each(component_endpoints_[component], enter);
    }
    last = component;
  }
  std::ranges::sort(targets);
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  return targets;
}

// All candidates whose cost is the least seen so far; the caller keeps the last cost's.
template <typename Visit>
void Layer::for_each_candidate(NodeId source, NodeId target, const Visit& visit) {
  const auto direct = direct_.of(source.value());
  if (!direct.empty()) {
    const auto first =
        std::lower_bound(direct.begin(), direct.end(), target,
                         [](const Direct& link, NodeId node) { return link.target < node; });
    for (auto link = first; link != direct.end() && link->target == target; ++link) {
      visit(Candidate{link->cost, &*link, nullptr, nullptr});
    }
  }
  for (const Access& up : up_.of(source.value())) {
    for (const Access& down : down_.of(target.value())) {
      const std::uint32_t between = core_distance(up.core, down.core);
      if (between != kUnreachable) {
        visit(Candidate{up.cost + between + down.cost, nullptr, &up, &down});
      }
    }
  }
}

std::optional<std::uint32_t> Layer::cost(NodeId source, NodeId target) {
  std::optional<std::uint32_t> min;
  for_each_candidate(source, target, [&](const Candidate& candidate) {
    min = std::min(min.value_or(candidate.cost), candidate.cost);
  });
  return min;
}

bool Layer::append_by_cables(NodeId source, NodeId target, const Chooser& chooser,
                             std::vector<LinkId>& path) {
  if (!chooser.cables()) {
    return false;
  }
  std::vector<LinkId> direct;
  for (const Direct& link : direct_.of(source.value())) {
    if (link.target == target) {
      direct.push_back(link.link);
    }
  }
  if (!direct.empty()) {
    path.push_back(direct[chooser.cables()->source % direct.size()]);
    return true;
  }
  const auto ups = up_.of(source.value());
  const auto downs = down_.of(target.value());
  if (ups.empty() || downs.empty()) {
    return false;
  }
  const Access& up = ups[chooser.cables()->source % ups.size()];
  const Access& down = downs[chooser.cables()->target % downs.size()];
  if (core_distance(up.core, down.core) == kUnreachable) {
    return false;
  }
  append(Candidate{0, nullptr, &up, &down}, chooser, path);
  return true;
}

bool Layer::append_route(NodeId source, NodeId target, const Chooser& chooser,
                         std::vector<LinkId>& path) {
  if (append_by_cables(source, target, chooser, path)) {
    return true;
  }
  Candidate best{kUnreachable, nullptr, nullptr, nullptr};
  std::uint32_t count = 0;
  for_each_candidate(source, target, [&](const Candidate& candidate) {
    if (candidate.cost < best.cost) {
      best = candidate;
      count = 0;
    }
    count += candidate.cost == best.cost ? 1 : 0;
  });
  if (count == 0) {
    return false;
  }
  std::uint32_t skip = chooser.pick_ports(source, count);
  if (skip > 0) {
    const std::uint32_t min = best.cost;
    ++skip;
    for_each_candidate(source, target, [&](const Candidate& candidate) {
      if (candidate.cost == min && skip > 0 && --skip == 0) {
        best = candidate;
      }
    });
  }
  append(best, chooser, path);
  return true;
}

void Layer::append(const Candidate& candidate, const Chooser& chooser, std::vector<LinkId>& path) {
  if (candidate.direct != nullptr) {
    path.push_back(candidate.direct->link);
    return;
  }
  if (candidate.up->link) {
    path.push_back(*candidate.up->link);
  }
  std::uint32_t core = candidate.up->core;
  const std::uint32_t last = candidate.down->core;
  while (core != last) {
    const Group& group = groups_[field(last)[cores_[core].position].group];
    const std::span links = std::span(group_links_).subspan(group.offset, group.count);
    const LinkId link =
        chooser.pick_above(cores_[core].node, links, std::span(level_links_).first(group.level));
    path.push_back(link);
    core = *core_of_node_[topology_.link(link).target.value()];
  }
  if (candidate.down->link) {
    path.push_back(*candidate.down->link);
  }
}

std::uint32_t Layer::core_distance(std::uint32_t from, std::uint32_t to) {
  if (from == to) {
    return 0;
  }
  if (cores_[from].component != cores_[to].component) {
    return kUnreachable;
  }
  return field(to)[cores_[from].position].distance;
}

const Layer::Field& Layer::field(std::uint32_t target) {
  if (!fields_[target]) {
    fields_[target] = std::make_unique<const Field>(compute_field(target));
  }
  return *fields_[target];
}

void Layer::visit_turns(std::vector<bool>& used, const VisitTurn& visit) {
  std::vector<bool> is_target(cores_.size(), false);
  for (const NodeId endpoint : endpoints_) {
    for (const Access& up : up_.of(endpoint.value())) {
      used[up.link->value()] = true;
    }
    for (const Direct& direct : direct_.of(endpoint.value())) {
      used[direct.link.value()] = true;
    }
    for (const Access& down : down_.of(endpoint.value())) {
      used[down.link->value()] = true;
      is_target[down.core] = true;
    }
  }
  for (std::uint32_t core = 0; core < cores_.size(); ++core) {
    if (is_target[core]) {
      visit_turns_to(core, used, visit);
    }
  }
}

void Layer::visit_turns_to(std::uint32_t target, std::vector<bool>& used, const VisitTurn& visit) {
  const std::vector<std::uint32_t>& members = components_[cores_[target].component];
  const Field& distances = field(target);
  std::vector<std::vector<LinkId>> in(members.size());
  std::vector<bool> passed(members.size(), false);
  std::vector<std::uint32_t> queue;
  const auto pass = [&](std::uint32_t core) {
    const std::uint32_t position = cores_[core].position;
    if (!passed[position] && distances[position].distance != kUnreachable) {
      passed[position] = true;
      queue.push_back(core);
    }
  };
  for (const NodeId endpoint : component_endpoints_[cores_[target].component]) {
    for (const Access& up : up_.of(endpoint.value())) {
      pass(up.core);
    }
  }
  const auto out = [&](std::uint32_t core) {
    const Group& group = groups_[distances[cores_[core].position].group];
    return std::span(group_links_).subspan(group.offset, group.count);
  };
  for (std::size_t next = 0; next < queue.size(); ++next) {
    if (queue[next] == target) {
      continue;
    }
    for (const LinkId link : out(queue[next])) {
      const std::uint32_t other = *core_of_node_[topology_.link(link).target.value()];
      used[link.value()] = true;
      in[cores_[other].position].push_back(link);
      pass(other);
    }
  }
  for (const std::uint32_t core : queue) {
    const std::uint32_t position = cores_[core].position;
    visit(in[position], core == target ? std::span<const LinkId>() : out(core),
          distances[position].distance);
  }
}

// Dijkstra against the direction of the links, then the groups of next links that keep to it.
Layer::Field Layer::compute_field(std::uint32_t target) {
  const std::vector<std::uint32_t>& members = components_[cores_[target].component];
  Field field(members.size(), {kUnreachable, 0});
  using Entry = std::pair<std::uint32_t, std::uint32_t>;  // Distance, core node.
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  field[cores_[target].position].distance = 0;
  queue.push({0, target});
  while (!queue.empty()) {
    const auto [distance, core] = queue.top();
    queue.pop();
    if (distance > field[cores_[core].position].distance) {
      continue;
    }
    for (const CoreLink& link : core_to_.of(core)) {
      std::uint32_t& known = field[cores_[link.other].position].distance;
      if (distance + link.cost < known) {
        known = distance + link.cost;
        queue.push({known, link.other});
      }
    }
  }
  std::vector<CoreLink> next;
  for (const std::uint32_t core : members) {
    FieldEntry& entry = field[cores_[core].position];
    next.clear();
    for (const CoreLink& link : core_from_.of(core)) {
      const std::uint32_t rest = field[cores_[link.other].position].distance;
      if (rest != kUnreachable && rest + link.cost == entry.distance) {
        next.push_back(link);
      }
    }
    if (!next.empty()) {
      entry.group = intern_group(core, next);
    }
  }
  return field;
}

std::uint32_t Layer::intern_group(std::uint32_t core, const std::vector<CoreLink>& links) {
  std::vector<LinkId> ids;
  for (const CoreLink& link : links) {
    ids.push_back(link.link);
  }
  const auto [place, is_new] =
      group_index_.try_emplace(std::move(ids), static_cast<std::uint32_t>(groups_.size()));
  if (is_new) {
    const std::uint32_t level = std::min(cores_[core].level, cores_[links.front().other].level);
    groups_.push_back({static_cast<std::uint32_t>(group_links_.size()),
                       static_cast<std::uint32_t>(links.size()), level});
    group_links_.insert(group_links_.end(), place->first.begin(), place->first.end());
  }
  return place->second;
}

}  // namespace trainyard
