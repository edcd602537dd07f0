// SPDX-License-Identifier: Apache-2.0
#include "network/sharing/load_sharing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <queue>

#include "network/sharing/fabric_cuts.h"
#include "sim/check.h"
#include "topology/graph/path.h"
#include "topology/routing/fabric_router.h"

namespace trainyard {
namespace {

// Progressive filling. The share of a link is always computed from all loads on it, in their
// order, and never updated: what else is solved beside it leaves no trace in it.
class Filling {
 public:
  Filling(const Topology& topology, std::span<const Load> loads) {
    for (const Load& load : loads) {
      for (const LinkWeight& one : load) {
        links_.push_back(one.link);
      }
    }
    std::sort(links_.begin(), links_.end());
    links_.erase(std::unique(links_.begin(), links_.end()), links_.end());
    members_.resize(links_.size());
    for (const LinkId link : links_) {
      capacities_.push_back(
          static_cast<double>(topology.link(link).spec.bandwidth.bits_per_second()));
    }
    for (std::size_t index = 0; index < loads.size(); ++index) {
      for (const LinkWeight& one : loads[index]) {
        members_[place_of(one.link)].push_back({.load = index, .weight = one.weight});
      }
    }
    rates_.assign(loads.size(), std::numeric_limits<double>::infinity());
  }

  std::vector<double> run() && {
    using Entry = std::pair<double, std::size_t>;  // Share, then link.
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
    for (std::size_t link = 0; link < links_.size(); ++link) {
      queue.emplace(share(link), link);
    }
    while (!queue.empty()) {
      const auto [known, link] = queue.top();
      queue.pop();
      if (!rises(link)) {
        continue;
      }
      // Shares only rise when other links stop their loads.
      const double now = share(link);
      if (now > known) {
        queue.emplace(now, link);
        continue;
      }
      for (const Member& member : members_[link]) {
        rates_[member.load] = std::min(rates_[member.load], now);
      }
    }
    return std::move(rates_);
  }

 private:
  struct Member {
    std::size_t load;
    double weight;
  };

  [[nodiscard]] std::size_t place_of(LinkId link) const {
    return static_cast<std::size_t>(std::lower_bound(links_.begin(), links_.end(), link) -
                                    links_.begin());
  }
  [[nodiscard]] bool has_rate(const Member& member) const {
    return rates_[member.load] < std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] bool rises(std::size_t link) const {
    return std::any_of(members_[link].begin(), members_[link].end(),
                       [&](const Member& member) { return !has_rate(member); });
  }
  [[nodiscard]] double share(std::size_t link) const {
    double left = capacities_[link];
    double weights = 0.0;
    for (const Member& member : members_[link]) {
      if (has_rate(member)) {
        left -= member.weight * rates_[member.load];
      } else {
        weights += member.weight;
      }
    }
    return std::max(0.0, left) / weights;
  }

  std::vector<LinkId> links_;
  std::vector<double> capacities_;
  std::vector<std::vector<Member>> members_;
  std::vector<double> rates_;
};

// Compares by more than rounding.
bool is_less(double a, double b) {
  constexpr double kRounding = 1e-9;
  return a < b * (1.0 - kRounding);
}

// Returns what is left of the links of the loads from `begin` to `end` on which there are others.
std::vector<std::pair<LinkId, Bandwidth>> capacities_left(const Topology& topology,
                                                          std::span<const Load> loads,
                                                          std::span<const double> rates,
                                                          std::size_t begin, std::size_t end) {
  std::map<LinkId, std::pair<double, double>> used;  // Use by its own loads, and by the others.
  for (std::size_t load = begin; load < end; ++load) {
    for (const LinkWeight& one : loads[load]) {
      used[one.link].first += one.weight * rates[load];
    }
  }
  for (std::size_t load = 0; load < loads.size(); ++load) {
    for (const LinkWeight& one : loads[load]) {
      const auto found = used.find(one.link);
      if (found != used.end() && (load < begin || load >= end)) {
        found->second.second += one.weight * rates[load];
      }
    }
  }
  std::vector<std::pair<LinkId, Bandwidth>> left;
  for (const auto& [link, use] : used) {
    if (use.second > 0.0) {
      const auto whole = static_cast<double>(topology.link(link).spec.bandwidth.bits_per_second());
      const double rest = std::min(whole, std::max({whole - use.second, use.first, 1.0}));
      left.emplace_back(link, Bandwidth(std::llround(rest)));
    }
  }
  return left;
}

// All at the same time.
class RunningGroups {
 public:
  RunningGroups(const Topology& topology, std::span<const std::vector<Load>> groups)
      : topology_(topology), groups_(groups) {
    for (const std::vector<Load>& group : groups) {
      first_.push_back(loads_.size());
      loads_.insert(loads_.end(), group.begin(), group.end());
    }
    first_.push_back(loads_.size());
    rates_ = shared_rates(topology, loads_);
  }

  [[nodiscard]] GroupShare share_of(const GroupClass& of) const {
    GroupShare result{.group = slowest(of.groups)};
    const std::size_t begin = first_[result.group];
    const std::size_t end = first_[result.group + 1];
    std::vector<Load> own = groups_[result.group];
    if (of.sees_fabric == SeesFabric::No) {
      for (Load& load : own) {
        load = without_fabric(topology_, load);
      }
    }
    const std::vector<double> alone = shared_rates(topology_, own);
    for (std::size_t load = begin; load < end; ++load) {
      const bool is_limited = is_less(rates_[load], alone[load - begin]);
      result.limits.push_back(is_limited ? rates_[load] : std::numeric_limits<double>::infinity());
      result.is_limited = result.is_limited || is_limited;
    }
    if (result.is_limited) {
      const double min_alone = *std::min_element(alone.begin(), alone.end());
      result.share = std::min(1.0, min_rate(result.group) / min_alone);
      result.left = capacities_left(topology_, loads_, rates_, begin, end);
    }
    return result;
  }

 private:
  [[nodiscard]] double min_rate(std::size_t group) const {
    double min = std::numeric_limits<double>::infinity();
    for (std::size_t load = first_[group]; load < first_[group + 1]; ++load) {
      min = std::min(min, rates_[load]);
    }
    return min;
  }
  [[nodiscard]] std::size_t slowest(std::span<const std::size_t> members) const {
    CHECK(!members.empty(), "a class has a group");
    std::size_t found = members.front();
    for (const std::size_t group : members) {
      if (is_less(min_rate(group), min_rate(found))) {
        found = group;
      }
    }
    return found;
  }

  const Topology& topology_;
  std::span<const std::vector<Load>> groups_;
  std::vector<Load> loads_;         // Loads of all groups.
  std::vector<std::size_t> first_;  // First load of each group, and the number of loads at the end.
  std::vector<double> rates_;       // Indexed by load.
};

}  // namespace

void merge(Load& load) {
  std::stable_sort(load.begin(), load.end(),
                   [](const LinkWeight& a, const LinkWeight& b) { return a.link < b.link; });
  std::size_t kept = 0;
  for (const LinkWeight& one : load) {
    if (kept > 0 && load[kept - 1].link == one.link) {
      load[kept - 1].weight += one.weight;
    } else {
      load[kept++] = one;
    }
  }
  load.resize(kept);
}

void LoadSum::add(const Load& load) {
  for (const LinkWeight& one : load) {
    CHECK(one.weight > 0.0, "a load has weight on each of its links");
    weights_[one.link.value()] += one.weight;
  }
}

Load LoadSum::total() const {
  Load load;
  for (std::uint32_t id = 0; id < weights_.size(); ++id) {
    if (weights_[id] > 0.0) {
      load.push_back({.link = LinkId(id), .weight = weights_[id]});
    }
  }
  return load;
}

std::vector<double> shared_rates(const Topology& topology, std::span<const Load> loads) {
  return Filling(topology, loads).run();
}

std::vector<GroupShare> group_shares(const Topology& topology,
                                     std::span<const std::vector<Load>> groups,
                                     std::span<const GroupClass> classes) {
  const RunningGroups running(topology, groups);
  std::vector<GroupShare> shares;
  for (const GroupClass& of : classes) {
    shares.push_back(running.share_of(of));
  }
  return shares;
}

ConnectionLoads::ConnectionLoads(Routing& routing) : routing_(routing) {
  if (!routing.policy().spreads()) {
    return;
  }
  has_fabric_ = routing.fabric().numbers_paths();
  RoutingOptions options = routing.options();
  options.policy = has_fabric_ ? RoutingPolicy::Spray : RoutingPolicy::Static;
  counted_.emplace(routing.topology(), options);
  paths_.emplace(*counted_);
}

void ConnectionLoads::restart() {
  latencies_.clear();
  if (counted_) {
    paths_.emplace(*counted_);
  }
}

std::vector<SimTime> ConnectionLoads::take_latencies() {
  return std::exchange(latencies_, {});
}

bool ConnectionLoads::add(const ConnectionSpec& spec, double weight, Load& load) {
  Routing& routing = counted_ ? *counted_ : routing_;
  std::vector<std::uint32_t> numbers = {0};
  if (paths_ && has_fabric_) {
    numbers = paths_->next(spec);
  }
  std::vector<LinkId> path;
  for (const std::uint32_t number : numbers) {
    const bool is_first = number == numbers.front();
    if (!routing.route(spec.source, spec.target, spec.flow_label, path, number, spec.nic_turns)) {
      return false;
    }
    if (is_first) {
      latencies_.push_back(path_latency(routing.topology(), path));
    }
    for (const LinkId link : path) {
      if (has_fabric_ || !is_between_switches(routing.topology(), link)) {
        load.push_back({.link = link, .weight = weight / static_cast<double>(numbers.size())});
      }
    }
  }
  return true;
}

}  // namespace trainyard
