// SPDX-License-Identifier: Apache-2.0
#include "topology/server/part_costs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "sim/fields.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr double kMin = 1e-6;
constexpr double kMaxWatts = 1e6;
constexpr double kMaxPrice = 1e12;
constexpr double kMaxYears = 100.0;

constexpr std::array kPaidFor{NodeKind::Gpu, NodeKind::Cpu, NodeKind::Nic, NodeKind::NvSwitch,
                              NodeKind::Switch};

// A number, with its source in a file that cites some.
struct CostKind {
  double max = kMaxPrice;
  bool is_cited = false;
  void read(const Fields& parent, const ConfigNode& node, std::optional<double>& number) const {
    if (is_cited) {
      Cited{Number{kMin, max}}.read(parent, node, number);
    } else {
      number = node.as_number(kMin, max);
    }
  }
  void describe(Schema& schema, std::optional<double>& number) const {
    Number{kMin, max}.describe(schema.alternatives.emplace_back());
    Cited{Number{kMin, max}}.describe(schema.alternatives.emplace_back(), number);
    schema.is_cited = true;
    schema.words = schema.alternatives.front().words;
    for (Schema& one : schema.alternatives) {
      one.is_cited = true;
    }
  }
};

void part_fields(Fields& fields, PartCost& part, bool is_cited, const std::string& currency) {
  fields.optional("watts", part.watts, CostKind{kMaxWatts, is_cited}, "Power at its limit.");
  fields.optional("idle_watts", part.idle_watts, CostKind{kMaxWatts, is_cited},
                  "Power while it waits: that of its limit.");
  fields.optional("price", part.price, CostKind{kMaxPrice, is_cited}, "Price of one.");
  fields.check([&](const ConfigNode& node) {
    if (part.idle_watts && part.watts && *part.idle_watts > *part.watts) {
      node.fail("idle_watts: expected at most the watts of the part, found more");
    }
    if (part.price && currency.empty()) {
      node.fail("price: expected a currency in the file, found none");
    }
  });
}

void check_known(const ConfigNode& part, const std::string& name,
                 std::span<const std::string> known) {
  if (!known.empty() && std::find(known.begin(), known.end(), name) == known.end()) {
    part.fail(fmt::format("expected a part of the catalogue or of the cluster, found {}{}",
                          in_quotes(name), did_you_mean(name, known)));
  }
}

std::vector<CountedPart> counted_parts(const Topology& topology, const PartCosts& costs) {
  std::map<std::pair<std::size_t, std::string>, std::size_t> counts;
  for (const Node& node : topology.nodes()) {
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

}  // namespace

void cost_fields(Fields& fields, PartCosts& costs) {
  bool is_cited = false;
  fields.check([&](const ConfigNode& node) { is_cited = node.optional("sources").has_value(); });
  const auto part = [&](Fields& inner, PartCost& own) {
    part_fields(inner, own, is_cited, costs.currency);
  };
  fields.where(is_cited, [&] { fields.cite_sources(); });
  fields.optional("currency", costs.currency, Text{}, "Currency of all prices.");
  fields.optional("kwh", costs.kwh, Number{kMin, kMaxPrice}, "Price of a kilowatt-hour.");
  fields.optional("years", costs.years, Number{kMin, kMaxYears}, "Time of use.");
  fields.optional("parts", costs.parts, Named{Group{part}}, "Costs of parts by name.");
  fields.check([&](const ConfigNode& node) {
    if (costs.kwh && costs.currency.empty()) {
      node.fail("kwh: expected a currency in the file, found none");
    }
  });
}

void PartCosts::read(ConfigDocument& document, std::span<const std::string> known) {
  const ConfigNode root = document.root();
  if (const auto list = root.optional("parts")) {
    for (const auto& [name, node] : list->entries()) {
      check_known(node, name, known);
    }
  }
  read_fields(root, *this, cost_fields);
  document.finish();
}

ClusterCosts cluster_costs(const Topology& topology, PartCosts costs) {
  std::vector<CountedPart> parts = counted_parts(topology, costs);
  CostTotals totals = totals_of(parts);
  return {.costs = std::move(costs), .parts = std::move(parts), .totals = std::move(totals)};
}

}  // namespace trainyard
