// SPDX-License-Identifier: Apache-2.0
#include "topology/server/part_costs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "hw/parts/sourced_reader.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr double kLeast = 1e-6;
constexpr double kMostWatts = 1e6;
constexpr double kMostPrice = 1e12;
constexpr double kMostYears = 100.0;

constexpr std::array kPaidFor{NodeKind::Gpu, NodeKind::Cpu, NodeKind::Nic, NodeKind::NvSwitch,
                              NodeKind::Switch};

void read_number(const ConfigNode& parent, std::string_view key,
                 const std::optional<SourcedReader>& sources, double most,
                 std::optional<double>& number) {
  if (parent.optional(key)) {
    const ConfigNode value = sources ? sources->value(parent, key) : parent.required(key);
    number = value.as_number(kLeast, most);
  }
}

void check_known(const ConfigNode& part, const std::string& name,
                 std::span<const std::string> known) {
  if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
    const std::optional<std::string> nearest = nearest_word(name, known);
    part.fail(fmt::format("expected a part of the catalogue or of the cluster, found {}{}",
                          in_quotes(name),
                          nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : ""));
  }
}

}  // namespace

void PartCosts::read(ConfigDocument& document, std::span<const std::string> known) {
  const ConfigNode root = document.root();
  std::optional<SourcedReader> sources;
  if (root.optional("sources")) {
    sources.emplace(root);
  }
  if (const auto node = root.optional("currency")) {
    currency = node->as_string();
  }
  read_number(root, "kwh", std::nullopt, kMostPrice, kwh);
  read_number(root, "years", std::nullopt, kMostYears, years);
  if (const auto list = root.optional("parts")) {
    for (const auto& [name, node] : list->entries()) {
      check_known(node, name, known);
      PartCost& part = parts[name];
      read_number(node, "watts", sources, kMostWatts, part.watts);
      read_number(node, "idle_watts", sources, kMostWatts, part.idle_watts);
      read_number(node, "price", sources, kMostPrice, part.price);
      if (part.idle_watts && part.watts && *part.idle_watts > *part.watts) {
        node.fail("idle_watts: expected at most the watts of the part, found more");
      }
      if (part.price && currency.empty()) {
        node.fail("price: expected a currency in the file, found none");
      }
    }
  }
  if (kwh && currency.empty()) {
    root.fail("kwh: expected a currency in the file, found none");
  }
  document.finish();
}

std::vector<CountedPart> counted_parts(const Topology& topology, const PartCosts& costs) {
  std::map<std::pair<std::size_t, std::string>, std::size_t> counts;
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    const Node& node = topology.node(NodeId(index));
    const auto kind = std::find(kPaidFor.begin(), kPaidFor.end(), node.kind);
    if (kind != kPaidFor.end()) {
      ++counts[{static_cast<std::size_t>(kind - kPaidFor.begin()), topology.parts()[node.part]}];
    }
  }
  std::vector<CountedPart> parts;
  for (const auto& [key, count] : counts) {
    const auto known = costs.parts.find(key.second);
    parts.push_back({.kind = kPaidFor.at(key.first),
                     .part = key.second.empty() ? "unnamed" : key.second,
                     .count = count,
                     .cost = known == costs.parts.end() ? PartCost() : known->second});
  }
  return parts;
}

CostTotals totals_of(const std::vector<CountedPart>& parts) {
  CostTotals totals;
  for (const CountedPart& part : parts) {
    const auto count = static_cast<double>(part.count);
    const PartCost& cost = part.cost;
    const bool is_gpu = part.kind == NodeKind::Gpu;
    if (cost.watts) {
      const double limit = count * *cost.watts;
      const double idle = count * cost.idle_watts.value_or(*cost.watts);
      totals.watts += limit;
      totals.idle_watts += idle;
      totals.gpu_watts += is_gpu ? limit : 0.0;
      totals.gpu_idle_watts += is_gpu ? idle : 0.0;
      if (is_gpu && !cost.idle_watts) {
        totals.without_idle.push_back(part.part);
      }
    } else {
      totals.without_watts.push_back(part.part);
    }
    if (cost.price) {
      totals.price += count * *cost.price;
    } else {
      totals.without_price.push_back(part.part);
    }
  }
  return totals;
}

ClusterCosts cluster_costs(const Topology& topology, PartCosts costs) {
  ClusterCosts made{.costs = std::move(costs), .parts = {}, .totals = {}};
  made.parts = counted_parts(topology, made.costs);
  made.totals = totals_of(made.parts);
  return made;
}

}  // namespace trainyard
