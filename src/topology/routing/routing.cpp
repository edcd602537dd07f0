// SPDX-License-Identifier: Apache-2.0
// A route is a list of staging points joined in two layers (topology/routing/layer.h): the local
// one, of all links but those of the fabric, and the fabric. Staging points are the NICs that GPUs
// are bound to, host memory where data is staged, and the GPU that PXN hands data to.
//
// Local costs are NVLink, xGMI 1; C2C 4; PCIe 16; link between sockets 64: one more hop of a better
// kind never loses to one of a worse kind inside a server. NCCL orders its path types the same way
// (NVL, C2C, PIX and PXB, PHB, SYS in src/graph/topo.h).
//
// Binding. The NICs of a GPU are those with a fabric link that are nearest by local cost. The GPUs
// that share the same nearest NICs form a group. With G GPUs and N <= G NICs, GPU p of the group
// uses NIC p mod N, whatever the flow; with N > G it uses the NICs p, p + G, p + 2G, ... in turn by
// flow label. So 2 GPUs and 2 NICs below one PCIe switch pair off, and a GPU with 4 NICs of its own
// uses all of them once it has 4 flows. Between two NICs NicTurns count the cables of each, to
// which a queue pair is bound; where no way leads between those two, any cables are good. A NIC
// sends by its cables also what is for another one of its server.
//
// Staging. Two GPUs farther apart than ServerTraits::peer_access, or a GPU and its NIC farther
// apart than ServerTraits::gpudirect, meet in the host memory nearest to the GPU, for two GPUs to
// the target, where NCCL's shared-memory transport has its buffers (NCCL_SHM_LOCALITY). A server
// without a memory node cannot stage, so all goes straight there.
//
// PXN. The rail of a NIC is its position among the NICs of its server. With ServerTraits::pxn, data
// for another server leaves by the NIC of the target's rail: handed over NVLink to the GPU that is
// nearest to that NIC, if that is another one. Only the sending side does so, as in NCCL.
#include "topology/routing/routing.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "sim/check.h"
#include "topology/graph/path.h"
#include "topology/routing/fabric_router.h"
#include "topology/routing/layer.h"

namespace trainyard {
namespace {

bool forwards_locally(NodeKind kind) {
  return kind != NodeKind::Gpu && kind != NodeKind::Nic && kind != NodeKind::Memory;
}

constexpr std::uint32_t kMinPcieCost = 16;

// In the order of LinkKind; zero for the links of the fabric.
constexpr std::array<std::uint32_t, 8> kLocalCosts = {1, 1, 4, kMinPcieCost, 64, 0, 1, 1};

std::uint32_t local_cost(LinkKind kind) {
  return kLocalCosts[static_cast<std::size_t>(kind)];
}

// Those of the marked endpoints that are nearest to `node` and not itself, in order of id.
std::vector<NodeId> nearest_marked(Layer& local, const std::vector<bool>& marked, NodeId node) {
  std::vector<NodeId> nearest;
  std::uint32_t min = std::numeric_limits<std::uint32_t>::max();
  for (const NodeId candidate : local.around(node, marked)) {
    const auto cost = candidate != node ? local.cost(node, candidate) : std::nullopt;
    if (cost && *cost < min) {
      min = *cost;
      nearest.clear();
    }
    if (cost && *cost == min) {
      nearest.push_back(candidate);
    }
  }
  return nearest;
}

bool is_kind(const Topology& topology, NodeId node, NodeKind kind) {
  return topology.node(node).kind == kind;
}

// Returns by node whether it is of a kind.
std::vector<bool> marks(const Topology& topology, NodeKind kind) {
  std::vector<bool> marked;
  for (const Node& node : topology.nodes()) {
    marked.push_back(node.kind == kind);
  }
  return marked;
}

// Returns the software traits of the server of `node`; nothing is known of a node without one.
const ServerTraits* traits_of(const Topology& topology, NodeId node) {
  const auto server = topology.node(node).server;
  return server ? &topology.server(*server) : nullptr;
}

}  // namespace

struct Routing::Tables {
  // How a node reaches the fabric.
  struct Binding {
    std::uint32_t list = 0;        // Index of its list of NICs.
    std::uint32_t position = 0;    // Among the nodes of its kind with the same list.
    std::uint32_t group_size = 1;  // Their number.
  };

  Tables(const Topology& graph, const RoutingOptions& options)
      : topology(graph),
        local(graph, forwards_locally, local_cost),
        loads(graph),
        fabric(make_fabric_router(graph, options)),
        fabric_index(graph.node_count(), 0),
        bindings(graph.node_count()) {
    std::vector<bool> in_fabric(graph.node_count(), false);
    for (std::uint32_t index = 0; index < fabric->endpoints().size(); ++index) {
      in_fabric[fabric->endpoints()[index].value()] = true;
      fabric_index[fabric->endpoints()[index].value()] = index;
    }
    if (!fabric->endpoints().empty()) {
      bind(in_fabric);
      find_rails(in_fabric);
    }
    find_memories();
  }

  void bind(const std::vector<bool>& in_fabric);
  void find_rails(const std::vector<bool>& in_fabric);
  void find_memories();
  [[nodiscard]] std::optional<NodeId> nic(NodeId node, std::uint32_t turn) const;

  // Appends the way inside a server, by host memory if its devices may not meet directly.
  [[nodiscard]] bool append_local(NodeId source, NodeId target, const Chooser& chooser,
                                  std::vector<LinkId>& path);
  // Appends the way to the NIC that data for `target_nic` leaves by, and says which it is.
  [[nodiscard]] std::optional<NodeId> append_exit(NodeId source, NodeId target_nic,
                                                  std::uint32_t turn, const Chooser& chooser,
                                                  std::vector<LinkId>& path);
  [[nodiscard]] std::optional<NodeId> staging_memory(NodeId source, NodeId target,
                                                     std::span<const LinkId> way) const;
  [[nodiscard]] bool is_peer(NodeId gpu, NodeId other);
  [[nodiscard]] std::optional<NodeId> rail_nic(NodeId source, NodeId target_nic) const;
  [[nodiscard]] NodeId exit_gpu(NodeId source, NodeId nic, std::uint32_t turn);

  // Two NICs, which send by their cables alone, and two GPUs with fabric links of their own (chips
  // of a torus) that no NVLink joins.
  [[nodiscard]] bool prefer_fabric(NodeId source, NodeId target) {
    if (is_attached(source, NodeKind::Nic) && is_attached(target, NodeKind::Nic)) {
      return true;
    }
    const bool attached = is_attached(source, NodeKind::Gpu) && is_attached(target, NodeKind::Gpu);
    return attached && local.cost(source, target).value_or(kMinPcieCost) >= kMinPcieCost;
  }
  [[nodiscard]] bool is_attached(NodeId node, NodeKind kind) const {
    const std::optional<Binding>& binding = bindings[node.value()];
    return binding && nic_lists[binding->list].front() == node && is_kind(topology, node, kind);
  }

  const Topology& topology;
  Layer local;
  LinkLoads loads;
  std::unique_ptr<FabricRouter> fabric;
  std::vector<std::uint32_t> fabric_index;  // Number of each node among the endpoints.
  std::vector<std::optional<Binding>> bindings;
  std::vector<std::vector<NodeId>> nic_lists;
  std::vector<std::optional<NodeId>>
      memories;  // Where each GPU stages, by node. Empty without memory.
  // Where some server has PXN.
  std::vector<std::uint32_t> rails;            // Rail of each NIC, by node.
  std::vector<std::vector<NodeId>> rail_nics;  // NICs by server and rail, also uncabled ones.
  std::vector<std::vector<NodeId>> gpus_near;  // The GPUs nearest to each NIC in the fabric.
  std::vector<LinkId> scratch;
  std::optional<NicTurns> cables;  // Turns of the route being made, where its ends are NICs.
};

void Routing::Tables::bind(const std::vector<bool>& in_fabric) {
  // A GPU with links into the fabric lends them to no other: GPUs do not forward.
  std::vector<bool> is_uplink = marks(topology, NodeKind::Nic);
  std::transform(is_uplink.begin(), is_uplink.end(), in_fabric.begin(), is_uplink.begin(),
                 std::logical_and());
  std::map<std::pair<NodeKind, std::vector<NodeId>>, std::vector<NodeId>> groups;
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    const NodeId node(index);
    const NodeKind kind = topology.node(node).kind;
    if (in_fabric[index] || kind == NodeKind::Switch) {
      groups[{kind, {node}}].push_back(node);
    } else if (kind == NodeKind::Gpu || kind == NodeKind::Cpu || kind == NodeKind::Memory) {
      std::vector<NodeId> nics = nearest_marked(local, is_uplink, node);
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

void Routing::Tables::find_rails(const std::vector<bool>& in_fabric) {
  if (std::ranges::none_of(topology.servers(), &ServerTraits::pxn)) {
    return;
  }
  rails.resize(topology.node_count(), 0);
  rail_nics.resize(topology.server_count());
  gpus_near.resize(topology.node_count());
  const std::vector<bool> is_gpu = marks(topology, NodeKind::Gpu);
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    const Node& node = topology.node(NodeId(index));
    if (node.kind == NodeKind::Nic && node.server) {
      std::vector<NodeId>& nics = rail_nics[node.server->value()];
      rails[index] = static_cast<std::uint32_t>(nics.size());
      nics.push_back(NodeId(index));
      if (in_fabric[index]) {
        gpus_near[index] = nearest_marked(local, is_gpu, NodeId(index));
      }
    }
  }
}

void Routing::Tables::find_memories() {
  const std::vector<bool> is_memory = marks(topology, NodeKind::Memory);
  if (std::ranges::find(is_memory, true) == is_memory.end()) {
    return;
  }
  memories.resize(topology.node_count());
  for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
    if (is_kind(topology, NodeId(index), NodeKind::Gpu)) {
      const std::vector<NodeId> nearest = nearest_marked(local, is_memory, NodeId(index));
      if (!nearest.empty()) {
        memories[index] = nearest.front();
      }
    }
  }
}

std::optional<NodeId> Routing::Tables::nic(NodeId node, std::uint32_t turn) const {
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
  return nics[binding->position + binding->group_size * (turn % own)];
}

// The memory in which the devices meet; none if the direct way may be taken.
std::optional<NodeId> Routing::Tables::staging_memory(NodeId source, NodeId target,
                                                      std::span<const LinkId> way) const {
  const bool from_gpu = is_kind(topology, source, NodeKind::Gpu);
  const bool to_gpu = is_kind(topology, target, NodeKind::Gpu);
  const NodeId gpu = to_gpu ? target : source;
  const bool with_nic = is_kind(topology, from_gpu ? target : source, NodeKind::Nic);
  const ServerTraits* traits = traits_of(topology, gpu);
  if (memories.empty() || traits == nullptr || (!to_gpu && !from_gpu) ||
      (from_gpu != to_gpu && !with_nic)) {
    return std::nullopt;
  }
  const Distance allowed = with_nic ? traits->gpudirect : traits->peer_access;
  return path_distance(topology, way) > allowed ? memories[gpu.value()] : std::nullopt;
}

bool Routing::Tables::append_local(NodeId source, NodeId target, const Chooser& chooser,
                                   std::vector<LinkId>& path) {
  if (source == target) {
    return true;
  }
  const std::size_t before = path.size();
  if (!local.append_route(source, target, chooser, path)) {
    return false;
  }
  const auto memory = staging_memory(source, target, std::span(path).subspan(before));
  if (!memory) {
    return true;
  }
  path.resize(before);
  return local.append_route(source, *memory, chooser, path) &&
         local.append_route(*memory, target, chooser, path);
}

// Whether data goes from one to the other over links between GPUs alone.
bool Routing::Tables::is_peer(NodeId gpu, NodeId other) {
  const RoutingOptions any;
  scratch.clear();
  return local.append_route(gpu, other, Chooser(any, gpu, other, 0, 0), scratch) &&
         std::ranges::all_of(scratch, [&](LinkId id) {
           const LinkKind kind = topology.link(id).spec.kind;
           return kind == LinkKind::NvLink || kind == LinkKind::Xgmi;
         });
}

// The NIC of the source's server on the rail of the target's, if the fabric is to be entered there.
std::optional<NodeId> Routing::Tables::rail_nic(NodeId source, NodeId target_nic) const {
  const ServerTraits* traits = traits_of(topology, source);
  if (traits == nullptr || !traits->pxn || !is_kind(topology, source, NodeKind::Gpu) ||
      !is_kind(topology, target_nic, NodeKind::Nic) || !topology.node(target_nic).server) {
    return std::nullopt;
  }
  const std::vector<NodeId>& nics = rail_nics[topology.node(source).server->value()];
  const std::uint32_t rail = rails[target_nic.value()];
  return rail < nics.size() ? std::optional(nics[rail]) : std::nullopt;
}

// The GPU that hands data of `source` to `nic`: the source itself, if no peer is nearer.
NodeId Routing::Tables::exit_gpu(NodeId source, NodeId nic, std::uint32_t turn) {
  const std::vector<NodeId>& near = gpus_near[nic.value()];
  if (std::ranges::find(near, source) != near.end()) {
    return source;
  }
  std::optional<NodeId> best;
  for (const NodeId gpu : near) {
    const bool is_bound = this->nic(gpu, turn) == nic;
    if (is_peer(source, gpu) && (!best || is_bound)) {
      best = gpu;
      if (is_bound) {
        break;
      }
    }
  }
  return best.value_or(source);
}

std::optional<NodeId> Routing::Tables::append_exit(NodeId source, NodeId target_nic,
                                                   std::uint32_t turn, const Chooser& chooser,
                                                   std::vector<LinkId>& path) {
  const auto own = nic(source, turn);
  const auto rail = rail_nic(source, target_nic);
  if (rail && rail != own && !gpus_near[rail->value()].empty()) {
    const NodeId gpu = exit_gpu(source, *rail, turn);
    const auto& near = gpus_near[rail->value()];
    const bool is_near = std::ranges::find(near, gpu) != near.end();
    if (is_near && (gpu == source || local.append_route(source, gpu, chooser, path)) &&
        append_local(gpu, *rail, chooser, path)) {
      return rail;
    }
  }
  path.clear();
  if (!own || *own == target_nic || !append_local(source, *own, chooser, path)) {
    return std::nullopt;
  }
  return own;
}

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

std::optional<NodeId> Routing::host_memory(NodeId gpu) const {
  return tables_->memories.empty() ? std::nullopt : tables_->memories[gpu.value()];
}

bool Routing::route(NodeId source, NodeId target, std::uint32_t flow_label,
                    std::vector<LinkId>& path, std::uint32_t number,
                    const std::optional<NicTurns>& turns) {
  DCHECK(source.value() < topology_.node_count(), "the source of a route is unknown");
  DCHECK(target.value() < topology_.node_count(), "the target of a route is unknown");
  path.clear();
  if (source == target) {
    return true;
  }
  const NicTurns nic_turns = turns.value_or(NicTurns{.source = flow_label, .target = flow_label});
  const bool of_nics =
      is_kind(topology_, source, NodeKind::Nic) && is_kind(topology_, target, NodeKind::Nic);
  tables_->cables = of_nics ? turns : std::nullopt;
  if (tables_->prefer_fabric(source, target) &&
      append_by_fabric(source, target, flow_label, path, number, nic_turns)) {
    return true;
  }
  const Chooser local = local_chooser(source, target, flow_label);
  return tables_->append_local(source, target, local, path) ||
         append_by_fabric(source, target, flow_label, path, number, nic_turns);
}

// Nothing is sprayed inside a server.
Chooser Routing::local_chooser(NodeId source, NodeId target, std::uint32_t flow_label) const {
  RoutingOptions inside = options_;
  if (policy().sprays) {
    inside.policy = RoutingPolicy::Static;
  }
  return {inside, source, target, flow_label, target.value()};
}

// Where servers are cabled to each other, without a switch, another one of their NICs may lead to
// the target.
bool Routing::append_by_fabric(NodeId source, NodeId target, std::uint32_t flow_label,
                               std::vector<LinkId>& path, std::uint32_t number,
                               const NicTurns& turns) {
  if (append_by_nics(source, target, flow_label, path, number, turns)) {
    return true;
  }
  const auto source_nics = static_cast<std::uint32_t>(nics(source).size());
  const auto target_nics = static_cast<std::uint32_t>(nics(target).size());
  for (std::uint32_t other = 1; other < source_nics * target_nics; ++other) {
    const NicTurns next{.source = turns.source + other / target_nics,
                        .target = turns.target + other % target_nics};
    if (append_by_nics(source, target, flow_label, path, number, next)) {
      return true;
    }
  }
  return false;
}

bool Routing::append_by_nics(NodeId source, NodeId target, std::uint32_t flow_label,
                             std::vector<LinkId>& path, std::uint32_t number,
                             const NicTurns& turns) {
  const auto target_nic = tables_->nic(target, turns.target);
  if (!target_nic) {
    return false;
  }
  const Chooser local = local_chooser(source, target, flow_label);
  const auto source_nic = tables_->append_exit(source, *target_nic, turns.source, local, path);
  const bool of_switches =
      is_kind(topology_, source, NodeKind::Switch) && is_kind(topology_, target, NodeKind::Switch);
  const std::uint32_t index = policy().sprays ? number : tables_->fabric_index[target_nic->value()];
  const Chooser fabric = of_switches ? Chooser(flow_label)
                                     : Chooser(options_, source, target, flow_label, index,
                                               &tables_->loads, tables_->cables);
  const bool found = source_nic &&
                     tables_->fabric->append_route(*source_nic, *target_nic, fabric, path) &&
                     tables_->append_local(*target_nic, target, local, path);
  if (!found) {
    path.clear();
  } else if (policy().switches_choose()) {
    tables_->loads.add(path);
  }
  return found;
}

void Routing::forget_connections() {
  if (policy().switches_choose()) {
    tables_->loads.forget();
  }
}

Routing& Routing::one_way() {
  if (!one_way_) {
    RoutingOptions options = options_;
    options.policy = RoutingPolicy::Static;
    one_way_ = std::make_unique<Routing>(topology_, options);
  }
  return *one_way_;
}

std::optional<Distance> Routing::distance(NodeId a, NodeId b) {
  if (a == b) {
    return Distance::None;
  }
  std::vector<LinkId> way;
  const Chooser first({}, a, b, 0, 0);
  if (!tables_->local.append_route(a, b, first, way)) {
    return std::nullopt;
  }
  return path_distance(topology_, way);
}

}  // namespace trainyard
