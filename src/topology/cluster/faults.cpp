// SPDX-License-Identifier: Apache-2.0
#include "topology/cluster/faults.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <compare>
#include <map>
#include <utility>

#include "sim/check.h"
#include "sim/printable.h"
#include "topology/graph/switch_graph.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

std::string rate_text(double bits_per_second) {
  const double gigabytes = bits_per_second / 8e9;
  return gigabytes >= 1000.0 ? fmt::format("{:.0f}", gigabytes) : fmt::format("{:.4g}", gigabytes);
}

std::vector<std::string> read_ends(const ConfigNode& node) {
  std::vector<std::string> ends;
  for (const ConfigNode& end : node.items()) {
    ends.push_back(end.as_string());
  }
  if (ends.size() != 2) {
    node.fail("the names of two nodes", fmt::format("{}", ends.size()));
  }
  return ends;
}

void fault_fields(Fields& fields, Fault& fault) {
  constexpr Whole kLinks{1, 4096};
  fields.required("between", fault.ends, Via{List{Text{}}, read_ends}, "Two nodes.");
  fields.optional("links", fault.links, kLinks, "So many of parallel links: all.");
  fields.optional("lanes", fault.lanes, kLinks, "So many lanes of a bundle: all.");
  fields.check([&](const ConfigNode& node) {
    if (fault.links && fault.lanes) {
      node.fail("expected links or lanes, found both");
    }
  });
}

// The way up: what a reader counts as a node's own links of the same sort as the lost ones.
int rank_of(NodeKind kind) {
  constexpr int kInside = 2;
  return kind == NodeKind::Gpu      ? 0
         : kind == NodeKind::Nic    ? 1
         : kind == NodeKind::Cpu    ? kInside + 1
         : kind == NodeKind::Switch ? kInside + 2
                                    : kInside;
}

class Breaker {
 public:
  explicit Breaker(const Topology& topology)
      : topology_(topology), graph_(topology), lanes_(topology.link_count()) {
    for (std::uint32_t link = 0; link < topology.link_count(); ++link) {
      lanes_[link] = topology.link(LinkId(link)).spec.lanes;
    }
  }

  void apply(const Fault& described) {
    const Fault fault = described.option.empty() ? described : split(described);
    const NodeId first = find(fault, fault.ends[0]);
    if (fault.ends.size() == 1) {
      take_node(fault, first);
      return;
    }
    const NodeId second = find(fault, fault.ends[1]);
    const std::vector<LinkId> there = links_between(first, second);
    const std::vector<LinkId> back = links_between(second, first);
    if (there.empty() && back.empty()) {
      fail_not_joined(fault, first, second);
    }
    const int all_lanes = lanes_of(there);
    const int lost = take(fault, there);
    take(fault, back);
    touch(first);
    touch(second);
    const std::string what = fault.lanes ? fmt::format("with {} of {} lanes down", lost, all_lanes)
                             : fault.links && lost < static_cast<int>(there.size())
                                 ? fmt::format("with {} of {} links pulled", lost, there.size())
                                 : std::string("pulled");
    warnings_.push_back(fmt::format("faults: {} - {} {}: {}", name(first), name(second), what,
                                    loss(first, second)));
  }

  [[nodiscard]] std::vector<LinkId> lost() const {
    std::vector<LinkId> links;
    for (std::uint32_t link = 0; link < topology_.link_count(); ++link) {
      if (lanes_[link] == 0) {
        links.emplace_back(link);
      }
    }
    return links;
  }

  BrokenTopology finish() && {
    Topology left =
        edited(topology_, {.link = [&](LinkId id, LinkSpec& link) { keep_lanes(id, link); },
                           .node = [&](NodeId id, Node& node) { keep_ports(id, node); },
                           .keeps = [&](LinkId id) { return lanes_[id.value()] > 0; }});
    std::ranges::sort(servers_);
    servers_.erase(std::unique(servers_.begin(), servers_.end()), servers_.end());
    return {.topology = std::move(left),
            .warnings = std::move(warnings_),
            .servers = std::move(servers_)};
  }

 private:
  // Leaves an adapter that still has some of its cables the ports of these.
  void keep_ports(NodeId id, Node& node) const {
    int all = 0;
    int left = 0;
    for (const LinkId link : topology_.links_from(id)) {
      if (topology_.link(link).spec.kind == LinkKind::Network) {
        ++all;
        left += lanes_[link.value()] > 0 ? 1 : 0;
      }
    }
    if (node.kind == NodeKind::Nic && left > 0 && left < all) {
      node.ports = static_cast<std::uint16_t>((node.ports * left + all - 1) / all);
    }
  }

  void keep_lanes(LinkId id, LinkSpec& link) const {
    const int lanes = lanes_[id.value()];
    if (lanes < link.lanes) {
      link.bandwidth = link.bandwidth.scaled(static_cast<double>(lanes) / link.lanes);
      link.lanes = lanes;
    }
  }

  // The names in an option: at the comma that leaves two nodes, as names may have commas.
  [[nodiscard]] Fault split(Fault fault) const {
    const std::string text = fault.ends[0];
    if (topology_.find(text)) {
      return fault;
    }
    for (std::size_t comma = text.find(','); comma != std::string::npos;
         comma = text.find(',', comma + 1)) {
      const std::string first = text.substr(0, comma);
      const std::string second = text.substr(comma + 1);
      const bool is_only = text.find(',') == text.rfind(',') && !first.empty() && !second.empty();
      if (is_only || (topology_.find(first) && topology_.find(second))) {
        fault.ends = {first, second};
        return fault;
      }
    }
    if (text.empty() || text.find(',') != std::string::npos) {
      fault.fail("expected a node or two of them such as leaf0,spine1");
    }
    return fault;
  }

  [[nodiscard]] const std::string& name(NodeId node) const { return topology_.node(node).name; }

  [[nodiscard]] NodeId find(const Fault& fault, const std::string& wanted) const {
    if (const auto node = topology_.find(wanted)) {
      return *node;
    }
    std::vector<std::string> names;
    for (std::uint32_t node = 0; node < topology_.node_count(); ++node) {
      names.push_back(name(NodeId(node)));
    }
    fault.fail(fmt::format("expected a node of the cluster, found {}{}", in_quotes(wanted),
                           did_you_mean(wanted, names, "; trainyard topology --json lists them")));
  }

  [[nodiscard]] std::vector<LinkId> links_between(NodeId source, NodeId target) const {
    std::vector<LinkId> links;
    for (const LinkId link : topology_.links_from(source)) {
      if (topology_.link(link).target == target && lanes_[link.value()] > 0) {
        links.push_back(link);
      }
    }
    return links;
  }

  [[noreturn]] void fail_not_joined(const Fault& fault, NodeId first, NodeId second) const {
    std::vector<std::string> neighbours;
    for (const LinkId link : topology_.links_from(first)) {
      const NodeId target = topology_.link(link).target;
      if (target == second) {
        fault.fail(fmt::format("{} and {} are pulled already", name(first), name(second)));
      }
      if (std::ranges::find(neighbours, name(target)) == neighbours.end()) {
        neighbours.push_back(name(target));
      }
    }
    const std::string joined =
        neighbours.empty()
            ? std::string()
            : fmt::format(
                  "; {} is joined to {}{}", name(first), neighbours.front(),
                  neighbours.size() > 1 ? fmt::format(" and {} more", neighbours.size() - 1) : "");
    fault.fail(fmt::format("no link joins {} and {}{}", name(first), name(second),
                           did_you_mean(name(second), neighbours, joined)));
  }

  [[nodiscard]] int lanes_of(const std::vector<LinkId>& links) const {
    int sum = 0;
    for (const LinkId link : links) {
      sum += lanes_[link.value()];
    }
    return sum;
  }

  // Takes out what the fault says of parallel links, the last ones first. The number taken.
  int take(const Fault& fault, const std::vector<LinkId>& links) {
    const int all_lanes = lanes_of(links);
    if (fault.lanes && *fault.lanes > all_lanes) {
      fault.fail(fmt::format("lanes: expected at most {}, found {}", all_lanes, *fault.lanes));
    }
    const auto count = static_cast<int>(links.size());
    if (fault.links && *fault.links > count) {
      fault.fail(fmt::format("links: expected at most {}, found {}", count, *fault.links));
    }
    int left = fault.lanes.value_or(fault.links.value_or(count));
    const int taken = left;
    for (auto link = links.rbegin(); link != links.rend() && left > 0; ++link) {
      int& lanes = lanes_[link->value()];
      const int lost = fault.lanes ? std::min(left, lanes) : lanes;
      lanes -= lost;
      left -= fault.lanes ? lost : 1;
    }
    return taken;
  }

  void take_node(const Fault& fault, NodeId node) {
    std::vector<NodeId> neighbours;
    for (const LinkId out : topology_.links_from(node)) {
      const NodeId other = topology_.link(out).target;
      if (lanes_[out.value()] > 0 && std::ranges::find(neighbours, other) == neighbours.end()) {
        neighbours.push_back(other);
      }
    }
    if (neighbours.empty()) {
      fault.fail(fmt::format("{} has no links left", name(node)));
    }
    for (const NodeId other : neighbours) {
      for (const auto& links : {links_between(node, other), links_between(other, node)}) {
        for (const LinkId link : links) {
          lanes_[link.value()] = 0;
        }
      }
      touch(other);
    }
    touch(node);
    const std::string more =
        neighbours.size() > 1
            ? fmt::format(", and {} more lose their links to it", neighbours.size() - 1)
            : "";
    warnings_.push_back(fmt::format("faults: {} is out: {}{}", name(node),
                                    loss_of(neighbours.front(), node), more));
  }

  void touch(NodeId node) {
    if (const auto server = topology_.node(node).server) {
      servers_.push_back(*server);
    }
  }

  // Told of the end that is lower down: its links upwards are fewer.
  [[nodiscard]] std::string loss(NodeId first, NodeId second) const {
    const auto height = [&](NodeId node) {
      const auto index = graph_.index_of(node);
      const auto tier = index ? graph_.tier(*index) : std::nullopt;
      return std::pair(rank_of(topology_.node(node).kind), tier.value_or(0));
    };
    return height(second) < height(first) ? loss_of(second, first) : loss_of(first, second);
  }

  // Describes what `node` has left of its links like those to `other`.
  [[nodiscard]] std::string loss_of(NodeId node, NodeId other) const {
    struct Sum {
      int links = 0;
      int lanes = 0;
      double rate = 0.0;
    };
    Sum before;
    Sum after;
    Sort sort;
    for (const LinkId id : topology_.links_from(node)) {
      if (topology_.link(id).target == other) {
        sort = sort_of(node, topology_.link(id));
        break;
      }
    }
    for (const LinkId id : topology_.links_from(node)) {
      const Link& link = topology_.link(id);
      if (sort_of(node, link) != sort) {
        continue;
      }
      const int left = lanes_[id.value()];
      const double rate = static_cast<double>(link.spec.bandwidth.bits_per_second());
      ++before.links;
      before.lanes += link.spec.lanes;
      before.rate += rate;
      after.links += left > 0 ? 1 : 0;
      after.lanes += left;
      after.rate += rate * left / link.spec.lanes;
    }
    const bool bundled = before.lanes > before.links;
    return fmt::format("{} has {} of {} {} ({} of {} GB/s)", name(node),
                       bundled ? after.lanes : after.links, bundled ? before.lanes : before.links,
                       noun(node, sort, bundled), rate_text(after.rate), rate_text(before.rate));
  }

  // Links of a node are of one sort if they are of one kind and lead to the same kind of node, and
  // between switches up, down or to the side alike.
  struct Sort {
    LinkKind kind = LinkKind::Network;
    NodeKind other = NodeKind::Switch;
    std::strong_ordering height = std::strong_ordering::equal;  // Height of the other switch.
    friend bool operator==(const Sort&, const Sort&) = default;
  };

  [[nodiscard]] Sort sort_of(NodeId node, const Link& link) const {
    Sort sort{.kind = link.spec.kind, .other = topology_.node(link.target).kind};
    const auto own = graph_.index_of(node);
    const auto far = graph_.index_of(link.target);
    if (own && far) {
      sort.height = graph_.tier(*far).value_or(0) <=> graph_.tier(*own).value_or(0);
    }
    return sort;
  }

  [[nodiscard]] std::string noun(NodeId node, const Sort& sort, bool bundled) const {
    if (sort.kind != LinkKind::Network) {
      return fmt::format("{} {} to {}", to_string(sort.kind), bundled ? "lanes" : "links",
                         sort.other == NodeKind::Gpu ? "GPUs" : to_string(sort.other));
    }
    if (topology_.node(node).kind != NodeKind::Switch || sort.other != NodeKind::Switch) {
      return sort.other == NodeKind::Switch ? "links into the fabric" : "links to endpoints";
    }
    return std::is_gt(sort.height)   ? "uplinks"
           : std::is_lt(sort.height) ? "links to switches below"
                                     : "links to switches of its tier";
  }

  const Topology& topology_;
  SwitchGraph graph_;
  std::vector<int> lanes_;  // Left, by link.
  std::vector<std::string> warnings_;
  std::vector<ServerId> servers_;
};

// Leaves out the server, which the line names once.
std::string short_name(const Topology& topology, NodeId node) {
  const std::string& name = topology.node(node).name;
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? name : name.substr(slash + 1);
}

std::string names_of(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  for (const NodeId node : nodes) {
    names.push_back(short_name(topology, node));
  }
  return fmt::format("{}", fmt::join(names, "/"));
}

}  // namespace

void Fault::fail(std::string_view message) const {
  if (node) {
    node->fail(message);
  }
  throw ConfigError(fmt::format("{}: {}", option, message));
}

void FaultKind::read(const Fields& parent, const ConfigNode& node, Fault& fault) const {
  fault.node = node;
  if (node.is_scalar()) {
    fault.ends = {node.as_string()};
  } else if (node.is_sequence()) {
    fault.ends = read_ends(node);
  } else {
    Group{fault_fields}.read(parent, node, fault);
  }
}

void FaultKind::describe(Schema& schema, Fault& fault) const {
  Either{Text{}, List{Text{}}}.describe(schema);
  Group{fault_fields}.describe(schema.alternatives.emplace_back(), fault);
}

Fault pulled(const std::string& pull) {
  return {.option = "--pull " + escaped(pull), .ends = {pull}};
}

BrokenTopology apply_faults(const Topology& topology, std::span<const Fault> faults) {
  Breaker breaker(topology);
  for (const Fault& fault : faults) {
    breaker.apply(fault);
  }
  return std::move(breaker).finish();
}

std::vector<LinkId> links_of_fault(const Topology& topology, const Fault& fault) {
  Breaker breaker(topology);
  breaker.apply(fault);
  return breaker.lost();
}

std::vector<std::string> moved_gpus(const Topology& before, const Cluster& after,
                                    std::span<const ServerId> servers) {
  if (servers.empty() || after.topology.server_count() < 2) {
    return {};
  }
  const Routing old_routing(before, after.routing);
  const Routing new_routing(after.topology, after.routing);
  std::map<ServerId, std::vector<std::string>> moves;
  for (const NodeId gpu : after.gpus) {
    const auto server = before.node(gpu).server;
    if (!server || !std::ranges::binary_search(servers, *server)) {
      continue;
    }
    const std::vector<NodeId> used = old_routing.nics(gpu);
    const std::vector<NodeId> now = new_routing.nics(gpu);
    if (used != now) {
      moves[*server].push_back(fmt::format("{} from {} to {}", short_name(before, gpu),
                                           names_of(before, used), names_of(before, now)));
    }
  }
  // One line for all servers with the same moves.
  std::map<std::string, std::pair<ServerId, int>> lines_of;
  for (const auto& [server, texts] : moves) {
    const auto line = fmt::format("{}", fmt::join(texts, ", "));
    ++lines_of.try_emplace(line, server, 0).first->second.second;
  }
  std::vector<std::string> lines;
  for (const auto& [text, found] : lines_of) {
    const auto& [server, count] = found;
    lines.push_back(fmt::format("faults: server{}{}: GPUs that move to other NICs: {}",
                                server.value(),
                                count > 1 ? fmt::format(" and {} more", count - 1) : "", text));
  }
  return lines;
}

}  // namespace trainyard
