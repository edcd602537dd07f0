// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/export.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <vector>

namespace trainyard {
namespace {

std::string dot_string(std::string_view text) {
  std::string result = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      result += '\\';
    }
    result += character;
  }
  return result + "\"";
}

std::string_view shape(NodeKind kind) {
  static constexpr std::array<std::string_view, kNodeKinds> shapes = {
      "box", "hexagon", "diamond", "octagon", "house", "ellipse", "cylinder", "invtriangle"};
  return shapes[static_cast<std::size_t>(kind)];
}

// Links between two nodes that look alike, whatever their direction.
struct Bundle {
  NodeId first;
  NodeId second;
  LinkSpec spec;
  int forward = 0;
  int backward = 0;
};

std::vector<Bundle> bundles_of(const Topology& topology) {
  using Key = std::tuple<NodeId, NodeId, LinkKind, Bandwidth, SimTime, int>;
  std::map<Key, std::size_t> places;
  std::vector<Bundle> bundles;
  for (const Link& link : topology.links()) {
    const auto [low, high] = std::minmax(link.source, link.target);
    const Key key{
        low, high, link.spec.kind, link.spec.bandwidth, link.spec.latency, link.spec.lanes};
    const auto [place, is_new] = places.try_emplace(key, bundles.size());
    if (is_new) {
      bundles.push_back({.first = link.source, .second = link.target, .spec = link.spec});
    }
    Bundle& bundle = bundles[place->second];
    ++(link.source == bundle.first ? bundle.forward : bundle.backward);
  }
  return bundles;
}

// Empty if there is none of it.
std::string edge(const Topology& topology, NodeId source, NodeId target, const LinkSpec& spec,
                 int count, std::string_view direction) {
  if (count == 0) {
    return "";
  }
  std::string label =
      fmt::format("{} {:.4g} GB/s", to_string(spec.kind), spec.bandwidth.gigabytes_per_second());
  if (count > 1) {
    label = fmt::format("{} x {}", count, label);
  }
  return fmt::format("  {} -> {} [dir={}, label={}];\n", dot_string(topology.node(source).name),
                     dot_string(topology.node(target).name), direction, dot_string(label));
}

std::string edges(const Topology& topology, const Bundle& bundle) {
  const int both = std::min(bundle.forward, bundle.backward);
  const auto& [first, second, spec, forward, backward] = bundle;
  return edge(topology, first, second, spec, both, "none") +
         edge(topology, first, second, spec, forward - both, "forward") +
         edge(topology, second, first, spec, backward - both, "forward");
}

}  // namespace

std::string to_dot(const Topology& topology) {
  std::vector<std::string> servers(topology.server_count());
  std::string fabric;
  for (const Node& node : topology.nodes()) {
    const std::string line =
        fmt::format("{} [shape={}];\n", dot_string(node.name), shape(node.kind));
    if (node.server) {
      servers[node.server->value()] += "    " + line;
    } else {
      fabric += "  " + line;
    }
  }
  std::string text = "digraph topology {\n";
  for (std::size_t server = 0; server < servers.size(); ++server) {
    text += fmt::format("  subgraph cluster_{} {{\n    label=\"server{}\";\n{}  }}\n", server,
                        server, servers[server]);
  }
  text += fabric;
  for (const Bundle& bundle : bundles_of(topology)) {
    text += edges(topology, bundle);
  }
  return text + "}\n";
}

nlohmann::ordered_json graph_json(const Topology& topology) {
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    const Node& node = topology.node(NodeId(index));
    nlohmann::ordered_json entry = {{"id", index},
                                    {"name", node.name},
                                    {"kind", to_string(node.kind)},
                                    {"latency_ps", node.latency.picoseconds()}};
    if (node.server) {
      entry["server"] = node.server->value();
    }
    nodes.push_back(std::move(entry));
  }
  nlohmann::ordered_json links = nlohmann::ordered_json::array();
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(LinkId(index));
    links.push_back({{"id", index},
                     {"source", link.source.value()},
                     {"target", link.target.value()},
                     {"kind", to_string(link.spec.kind)},
                     {"bandwidth_bits_per_s", link.spec.bandwidth.bits_per_second()},
                     {"latency_ps", link.spec.latency.picoseconds()},
                     {"lanes", link.spec.lanes}});
  }
  return {{"nodes", std::move(nodes)}, {"links", std::move(links)}};
}

}  // namespace trainyard
