// SPDX-License-Identifier: Apache-2.0
#include "report/html/html_links.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "parallelism/run/resources.h"
#include "report/formats/json.h"
#include "sim/check.h"
#include "topology/graph/switch_graph.h"

namespace trainyard {
namespace {

// The sum over links of one resource within a unit.
struct InsideSum {
  double busiest = 0.0;
  double sum = 0.0;
  int links = 0;
};

struct EdgeSum {
  double forth = 0.0;
  double back = 0.0;
  int forth_links = 0;
  int back_links = 0;
};

// Four digits are enough for a colour and a tooltip.
double rounded(double use) {
  constexpr double kParts = 1e4;
  return static_cast<double>(std::min(1'000'000LL, std::llround(use * kParts))) / kParts;
}

class Drawing {
 public:
  explicit Drawing(const Topology& topology)
      : topology_(topology), graph_(topology), resources_(topology) {}

  void add(LinkId id, Bytes bytes, SimTime time) {
    const Link& link = topology_.link(id);
    const double use = transfer_time(bytes, link.spec.bandwidth) / time;
    const std::size_t from = unit_of(link.source);
    const std::size_t to = unit_of(link.target);
    if (from == to) {
      InsideSum& sum = inside_[{from, resources_.of(id).title}];
      sum.busiest = std::max(sum.busiest, use);
      sum.sum += use;
      ++sum.links;
      return;
    }
    EdgeSum& edge = edges_[{std::min(from, to), std::max(from, to)}];
    double& busiest = from < to ? edge.forth : edge.back;
    busiest = std::max(busiest, use);
    ++(from < to ? edge.forth_links : edge.back_links);
  }

  [[nodiscard]] HtmlLinks take() {
    HtmlLinks made;
    for (const auto& [key, sum] : inside_) {
      units_[key.first]["inside"].push_back(
          Json::array({key.second, rounded(sum.busiest), rounded(sum.sum / sum.links)}));
    }
    // Numbers follow the order of the topology, not of the traffic.
    std::vector<int> numbers(units_.size());
    for (const auto& [key, unit] : by_key_) {
      numbers[unit] = static_cast<int>(made.units.size());
      made.units.push_back(std::move(units_[unit]));
    }
    for (const auto& [ends, sum] : edges_) {
      made.edges.push_back(
          Json::array({numbers[ends.first], numbers[ends.second], rounded(sum.forth),
                       rounded(sum.back), std::max(sum.forth_links, sum.back_links)}));
    }
    return made;
  }

 private:
  // Servers by number, then what stands in none by node.
  [[nodiscard]] std::size_t unit_of(NodeId id) {
    const Node& node = topology_.node(id);
    const auto key =
        node.server ? std::make_pair(0, node.server->value()) : std::make_pair(1, id.value());
    const auto [entry, is_new] = by_key_.try_emplace(key, units_.size());
    if (is_new) {
      const auto index = node.server ? std::nullopt : graph_.index_of(id);
      const auto tier = index ? graph_.tier(*index) : std::nullopt;
      units_.push_back(
          {{"name", node.server ? "server " + std::to_string(node.server->value()) : node.name},
           {"level", node.server ? 0 : 1 + static_cast<int>(tier.value_or(0))},
           {"inside", Json::array()}});
    }
    return entry->second;
  }

  const Topology& topology_;
  SwitchGraph graph_;
  LinkResources resources_;
  std::vector<Json> units_;
  std::map<std::pair<int, std::uint32_t>, std::size_t> by_key_;
  std::map<std::pair<std::size_t, std::string>, InsideSum> inside_;
  std::map<std::pair<std::size_t, std::size_t>, EdgeSum> edges_;
};

}  // namespace

HtmlLinks html_links(const Topology& topology, std::span<const LinkTraffic> traffic, SimTime time) {
  CHECK(time > SimTime(), "links are busy for a share of a time that passes");
  Drawing drawing(topology);
  for (const LinkTraffic& each : traffic) {
    drawing.add(each.link, each.total(), time);
  }
  return drawing.take();
}

HtmlLinks html_links(const Topology& topology, std::span<const LinkUse> uses, SimTime time) {
  CHECK(time > SimTime(), "links are busy for a share of a time that passes");
  Drawing drawing(topology);
  for (const LinkUse& each : uses) {
    if (each.bytes > Bytes(0)) {
      drawing.add(each.link, each.bytes, time);
    }
  }
  return drawing.take();
}

}  // namespace trainyard
