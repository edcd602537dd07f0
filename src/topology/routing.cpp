// SPDX-License-Identifier: Apache-2.0
// A route is found in two layers (topology/layer.h): the local one, of all links but those of the
// fabric, and the fabric. What ties them together is the binding of GPUs to NICs.
//
// Local costs are NVLink, xGMI, C2C 1; PCIe 16; link between sockets 64: one more hop of a better
// kind never loses to one of a worse kind inside a server. NCCL orders its path types the same way
// (NVL, PIX and PXB, PHB, SYS in src/graph/topo.h).
//
// Binding. The NICs of a GPU are those with a fabric link that are nearest by local cost. The GPUs
// that share the same nearest NICs form a group. With G GPUs and N <= G NICs, GPU p of the group
// uses NIC p mod N, whatever the flow; with N > G it uses the NICs p, p + G, p + 2G, ... in turn by
// flow label. So 2 GPUs and 2 NICs below one PCIe switch pair off, and a GPU with 4 NICs of its own
// uses all of them once it has 4 flows.
#include "topology/routing.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "sim/check.h"
#include "topology/fabric_router.h"
#include "topology/layer.h"

namespace trainyard {
namespace {

bool forwards_locally(NodeKind kind) {
  return kind != NodeKind::Gpu && kind != NodeKind::Nic && kind != NodeKind::Memory;
}

constexpr std::uint32_t kLeastPcieCost = 16;

std::uint32_t local_cost(LinkKind kind) {
  switch (kind) {
    case LinkKind::NvLink:
    case LinkKind::Xgmi:
    case LinkKind::Hccs:
    case LinkKind::C2c:
    case LinkKind::Memory:
      return 1;
    case LinkKind::Pcie:
      return kLeastPcieCost;
    case LinkKind::Socket:
      return 64;
    case LinkKind::Network:
      return 0;
  }
  CHECK(false, "unknown kind of link");
}

// How a node reaches the fabric.
struct Binding {
  std::uint32_t list = 0;        // Index of its list of NICs.
  std::uint32_t position = 0;    // Among the nodes of its kind with the same list.
  std::uint32_t group_size = 1;  // Their number.
};

// The nearest fabric endpoints of `node`, in order of id; empty if it has none.
std::vector<NodeId> nearest_nics(Layer& local, const std::vector<bool>& in_fabric, NodeId node) {
  std::vector<NodeId> candidates = local.direct_targets(node);
  for (const std::uint32_t component : local.components_from(node)) {
    for (const NodeId member : local.endpoints_of(component)) {
      if (in_fabric[member.value()]) {
        candidates.push_back(member);
      }
    }
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  std::vector<NodeId> nearest;
  std::uint32_t least = std::numeric_limits<std::uint32_t>::max();
  for (const NodeId nic : candidates) {
    const auto cost = in_fabric[nic.value()] && nic != node ? local.cost(node, nic) : std::nullopt;
    if (cost && *cost < least) {
      least = *cost;
      nearest.clear();
    }
    if (cost && *cost == least) {
      nearest.push_back(nic);
    }
  }
  return nearest;
}

}  // namespace

std::string_view to_string(RoutingPolicy policy) {
  static constexpr std::array<std::string_view, 4> names = {"ecmp", "static", "valiant",
                                                            "adaptive"};
  return names[static_cast<std::size_t>(policy)];
}

struct Routing::Tables {
  Tables(const Topology& of, const RoutingOptions& options)
      : topology(of),
        local(of, forwards_locally, local_cost),
        loads(of),
        fabric(make_fabric_router(of, options)),
        fabric_index(of.node_count(), 0),
        bindings(of.node_count()) {
    std::vector<bool> in_fabric(topology.node_count(), false);
    for (std::uint32_t index = 0; index < fabric->endpoints().size(); ++index) {
      in_fabric[fabric->endpoints()[index].value()] = true;
      fabric_index[fabric->endpoints()[index].value()] = index;
    }
    if (!fabric->endpoints().empty()) {
      bind(in_fabric);
    }
  }

  void bind(const std::vector<bool>& in_fabric) {
    std::map<std::pair<NodeKind, std::vector<NodeId>>, std::vector<NodeId>> groups;
    for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
      const NodeId node(index);
      const NodeKind kind = topology.node(node).kind;
      if (in_fabric[index] || kind == NodeKind::Switch) {
        groups[{kind, {node}}].push_back(node);
      } else if (kind == NodeKind::Gpu || kind == NodeKind::Cpu) {
        std::vector<NodeId> nics = nearest_nics(local, in_fabric, node);
        if (!nics.empty()) {
          groups[{kind, std::move(nics)}].push_back(node);
        }
      }
    }
    for (const auto& [key, members] : groups) {
      const auto list = static_cast<std::uint32_t>(nic_lists.size());
      nic_lists.push_back(key.second);
      for (std::uint32_t position = 0; position < members.size(); ++position) {
        bindings[members[position].value()] =
            Binding{list, position, static_cast<std::uint32_t>(members.size())};
      }
    }
  }

  [[nodiscard]] std::optional<NodeId> nic(NodeId node, std::uint32_t flow_label) const {
    const std::optional<Binding>& binding = bindings[node.value()];
    if (!binding) {
      return std::nullopt;
    }
    const std::vector<NodeId>& nics = nic_lists[binding->list];
    const auto count = static_cast<std::uint32_t>(nics.size());
    if (count <= binding->group_size) {
      return nics[binding->position % count];
    }
    const std::uint32_t own =
        (count - binding->position + binding->group_size - 1) / binding->group_size;
    return nics[binding->position + binding->group_size * (flow_label % own)];
  }

  // Two GPUs with fabric links of their own (chips of a torus) that no NVLink joins.
  [[nodiscard]] bool prefer_fabric(NodeId source, NodeId target) {
    const bool attached = is_attached_gpu(source) && is_attached_gpu(target);
    return attached && local.cost(source, target).value_or(kLeastPcieCost) >= kLeastPcieCost;
  }
  [[nodiscard]] bool is_attached_gpu(NodeId node) const {
    const std::optional<Binding>& binding = bindings[node.value()];
    return binding && nic_lists[binding->list].front() == node &&
           topology.node(node).kind == NodeKind::Gpu;
  }

  const Topology& topology;
  Layer local;
  LinkLoads loads;
  std::unique_ptr<FabricRouter> fabric;
  std::vector<std::uint32_t> fabric_index;  // By node: its number among the endpoints.
  std::vector<std::optional<Binding>> bindings;
  std::vector<std::vector<NodeId>> nic_lists;
};

Routing::Routing(const Topology& topology, RoutingOptions options)
    : topology_(topology),
      options_(std::move(options)),
      tables_(std::make_unique<Tables>(topology, options_)) {}

Routing::~Routing() = default;

FabricRouter& Routing::fabric() {
  return *tables_->fabric;
}

std::vector<NodeId> Routing::nics(NodeId gpu) const {
  DCHECK(gpu.value() < topology_.node_count(), "the GPU is unknown");
  std::vector<NodeId> own;
  for (std::uint32_t flow = 0;; ++flow) {
    const std::optional<NodeId> nic = tables_->nic(gpu, flow);
    if (!nic || (!own.empty() && *nic == own.front())) {
      return own;
    }
    own.push_back(*nic);
  }
}

bool Routing::route(NodeId source, NodeId target, std::uint32_t flow_label,
                    std::vector<LinkId>& path) {
  DCHECK(source.value() < topology_.node_count(), "the source of a route is unknown");
  DCHECK(target.value() < topology_.node_count(), "the target of a route is unknown");
  path.clear();
  if (source == target) {
    return true;
  }
  if (tables_->prefer_fabric(source, target) &&
      append_by_fabric(source, target, flow_label, path)) {
    return true;
  }
  const Chooser local(options_, source, target, flow_label, target.value());
  return tables_->local.append_route(source, target, local, path) ||
         append_by_fabric(source, target, flow_label, path);
}

bool Routing::append_by_fabric(NodeId source, NodeId target, std::uint32_t flow_label,
                               std::vector<LinkId>& path) {
  const auto source_nic = tables_->nic(source, flow_label);
  const auto target_nic = tables_->nic(target, flow_label);
  if (!source_nic || !target_nic || source_nic == target_nic) {
    return false;
  }
  const Chooser local(options_, source, target, flow_label, target.value());
  const bool of_switches = topology_.node(source).kind == NodeKind::Switch &&
                           topology_.node(target).kind == NodeKind::Switch;
  const Chooser fabric = of_switches
                             ? Chooser(flow_label)
                             : Chooser(options_, source, target, flow_label,
                                       tables_->fabric_index[target_nic->value()], &tables_->loads);
  const bool found =
      (*source_nic == source || tables_->local.append_route(source, *source_nic, local, path)) &&
      tables_->fabric->append_route(*source_nic, *target_nic, fabric, path) &&
      (*target_nic == target || tables_->local.append_route(*target_nic, target, local, path));
  if (!found) {
    path.clear();
  } else if (options_.policy == RoutingPolicy::Adaptive) {
    tables_->loads.add(path);
  }
  return found;
}

SimTime path_latency(const Topology& topology, const std::vector<LinkId>& path) {
  SimTime sum;
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const Link& link = topology.link(path[hop]);
    sum += link.spec.latency;
    const Node& target = topology.node(link.target);
    const bool is_switch = target.kind == NodeKind::NvSwitch || target.kind == NodeKind::Switch;
    if (hop + 1 < path.size() || is_switch) {
      sum += target.latency;
    }
  }
  return sum;
}

Bandwidth path_bandwidth(const Topology& topology, const std::vector<LinkId>& path) {
  CHECK(!path.empty(), "an empty path has no bandwidth");
  Bandwidth least = kMaxBandwidth;
  for (const LinkId link : path) {
    least = std::min(least, topology.link(link).spec.bandwidth);
  }
  return least;
}

}  // namespace trainyard
