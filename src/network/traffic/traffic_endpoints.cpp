// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic_endpoints.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/numbers.h"

namespace trainyard {
namespace {

constexpr std::string_view kExpected =
    "nics, gpus, or names of these such as server0/nic0, server*/nic0 or server[0-7]/nic0";

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

std::optional<std::uint32_t> number_of(std::string_view text) {
  const bool is_plain =
      !text.empty() && is_digit(text.front()) && (text.size() == 1 || text.front() != '0');
  return is_plain ? parse_number<std::uint32_t>(text) : std::nullopt;
}

struct Range {
  std::uint32_t first;
  std::uint32_t last;
};

// "2-9", with the first not above the last.
std::optional<Range> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto first = number_of(text.substr(0, dash));
  const auto last = number_of(text.substr(dash + 1));
  if (!first || !last || *first > *last) {
    return std::nullopt;
  }
  return Range{.first = *first, .last = *last};
}

bool is_pattern(std::string_view text) {
  return text.find_first_of("*[]") != std::string_view::npos;
}

}  // namespace

bool is_well_formed_pattern(std::string_view pattern) {
  while (!pattern.empty()) {
    const std::size_t open = pattern.find_first_of("[]");
    if (open == std::string_view::npos) {
      return true;
    }
    const std::size_t close = pattern.find(']', open);
    if (pattern[open] == ']' || close == std::string_view::npos ||
        !range_of(pattern.substr(open + 1, close - open - 1))) {
      return false;
    }
    pattern.remove_prefix(close + 1);
  }
  return true;
}

bool matches_pattern(std::string_view name, std::string_view pattern) {
  if (pattern.empty()) {
    return name.empty();
  }
  if (pattern.front() == '*') {
    pattern.remove_prefix(std::min(pattern.find_first_not_of('*'), pattern.size()) - 1);
    const std::size_t max = std::min(name.find('/'), name.size());
    for (std::size_t length = 0; length <= max; ++length) {
      if (matches_pattern(name.substr(length), pattern.substr(1))) {
        return true;
      }
    }
    return false;
  }
  if (pattern.front() == '[') {
    const std::size_t close = pattern.find(']');
    const auto range = range_of(pattern.substr(1, close - 1));
    const std::size_t digits =
        static_cast<std::size_t>(std::ranges::find_if_not(name, is_digit) - name.begin());
    const auto number = number_of(name.substr(0, digits));
    return range && number && *number >= range->first && *number <= range->last &&
           matches_pattern(name.substr(digits), pattern.substr(close + 1));
  }
  return !name.empty() && name.front() == pattern.front() &&
         matches_pattern(name.substr(1), pattern.substr(1));
}

TrafficDevices::TrafficDevices(const Cluster& cluster)
    : topology_(cluster.topology), gpus_(cluster.gpus) {
  for (std::uint32_t index = 0; index < topology_.node_count(); ++index) {
    const Node& node = topology_.node(NodeId(index));
    if (node.kind == NodeKind::Nic) {
      nics_.emplace_back(index);
    }
    if (node.kind == NodeKind::Nic || node.kind == NodeKind::Gpu) {
      by_name_.emplace_back(node.name, NodeId(index));
    }
  }
  std::sort(by_name_.begin(), by_name_.end());
}

std::optional<NodeId> TrafficDevices::find(std::string_view name) const {
  const auto found =
      std::ranges::lower_bound(by_name_, name, {}, &std::pair<std::string_view, NodeId>::first);
  return found != by_name_.end() && found->first == name ? std::optional(found->second)
                                                         : std::nullopt;
}

std::string TrafficDevices::suggestion(std::string_view name) const {
  std::vector<std::string> names;
  for (const auto& [known, id] : by_name_) {
    names.emplace_back(known);
  }
  return did_you_mean(name, names);
}

NodeId TrafficDevices::read_one(const ConfigNode& node) const {
  constexpr std::string_view kOne = "the name of a NIC or GPU such as server0/nic0";
  if (!node.is_scalar()) {
    node.fail(kOne, node.found());
  }
  const std::string name = node.as_string();
  const auto device = find(name);
  if (!device) {
    node.fail(kOne, node.found() + suggestion(name));
  }
  return *device;
}

void TrafficDevices::append(const ConfigNode& node, std::vector<NodeId>& devices) const {
  if (!node.is_scalar()) {
    node.fail(kExpected, node.found());
  }
  const std::string text = node.as_string();
  if (text == "nics" || text == "gpus") {
    const std::vector<NodeId>& all = text == "nics" ? nics_ : gpus_;
    if (all.empty()) {
      node.fail("devices that the cluster has", node.found());
    }
    devices.insert(devices.end(), all.begin(), all.end());
    return;
  }
  if (!is_pattern(text)) {
    const auto device = find(text);
    if (!device) {
      node.fail(kExpected, node.found() + suggestion(text));
    }
    devices.push_back(*device);
    return;
  }
  if (!is_well_formed_pattern(text)) {
    node.fail("a range of numbers such as [0-7] between brackets", node.found());
  }
  // In the order of node ids, which is that of the servers.
  const std::size_t before = devices.size();
  for (const auto& [name, id] : by_name_) {
    if (matches_pattern(name, text)) {
      devices.push_back(id);
    }
  }
  if (devices.size() == before) {
    node.fail("a pattern that a NIC or GPU of the cluster matches", node.found());
  }
  std::sort(devices.begin() + static_cast<std::ptrdiff_t>(before), devices.end());
}

std::vector<NodeId> TrafficDevices::read(const ConfigNode& node) const {
  std::vector<NodeId> devices;
  if (node.is_sequence()) {
    for (const ConfigNode& item : node.items()) {
      append(item, devices);
    }
  } else {
    append(node, devices);
  }
  std::vector<NodeId> sorted = devices;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) {
    node.fail(
        fmt::format("expected each device once, found {} twice", topology_.node(*twice).name));
  }
  return devices;
}

}  // namespace trainyard
