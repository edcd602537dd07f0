// SPDX-License-Identifier: Apache-2.0
// The graph of devices and directed links. Immutable once built; flat arrays; no Boost in headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

enum class NodeKind : std::uint8_t {
  Gpu,
  NvSwitch,
  PcieSwitch,
  Cpu,
  Nic,
  Switch,
  Memory,
  RootComplex,  // Between PCIe and a CPU, where the limit that its root ports share is known.
};
inline constexpr std::size_t kNodeKinds = 8;
enum class LinkKind : std::uint8_t { NvLink, Xgmi, C2c, Pcie, Socket, Network, Memory, Hccs };

[[nodiscard]] std::string_view to_string(NodeKind kind);
[[nodiscard]] std::string_view to_string(LinkKind kind);

// The properties of one direction of a link.
struct LinkSpec {
  LinkKind kind = LinkKind::Network;
  // Payload rate: what a long transfer gets on the idle link, encoding and headers taken off.
  Bandwidth bandwidth = {};
  // Time of flight, plus encoding and FEC where they are part of the link.
  SimTime latency{};
  // Parallel physical links that this one represents (NVLink bricks between a pair of GPUs).
  int lanes = 1;
  // The part of the catalogue that it is made of: an index into Topology::parts().
  std::uint16_t part = 0;
};

struct Node {
  NodeKind kind = NodeKind::Switch;
  std::string name = {};
  // Charged once for every path that passes through this node, or that ends in it if it is a
  // switch; not otherwise at the two ends.
  SimTime latency{};
  // The server that the node stands in; none for switches of the fabric.
  std::optional<ServerId> server{};
  // The part of the catalogue, of an NVSwitch its link: an index into Topology::parts().
  std::uint16_t part = 0;
  // Ports that the part has, for links and lanes that count as ports there; 0 where unknown.
  std::uint16_t ports = 0;
  Bytes buffer{};  // Shared buffer of a switch of the fabric; 0 where unknown.
  // A switch that adds up and multicasts what passes through it.
  bool in_network_reduction = false;
};

// The distance of two devices of a server, in the terms of nvidia-smi topo and NCCL: below one PCIe
// switch, below several, through one CPU, through the link between CPUs.
enum class Distance : std::uint8_t { None, Pix, Pxb, Phb, Sys };

// The properties of a server that its software decides, not its devices.
struct ServerTraits {
  // The farthest two GPUs that access each other directly; others stage through host memory.
  Distance peer_access = Distance::Sys;
  // The farthest GPU and NIC with GPUDirect RDMA; others stage through host memory.
  Distance gpudirect = Distance::Pxb;
  // A GPU hands data for a NIC nearer to another GPU of its NVLink domain to that GPU (NCCL's PXN).
  bool pxn = false;
  // NCCL sees the NICs nearest to a GPU as one, over which its data are spread
  // (nccl/machine/nic_groups.h).
  bool grouped_nics = false;
  // The share of the slowest link in between that one pair of devices gets when it stages through
  // host memory: two copies through a ring of bounce buffers overlap, but not without gaps.
  // Measured: copies between RTX 4090 with peer access off run at 18.4 to 20.6 GB/s, to and from
  // the host alone at 25.9 to 26.2 (docs/models/topology.md, Staging).
  double staging_share = 0.75;
  // Host memory of all sockets together; nothing where the file does not say.
  std::optional<Bytes> host_memory = {};
};

struct Link {
  NodeId source;
  NodeId target;
  LinkSpec spec;
};

// The values of many short lists, one list per index, in one array.
template <typename T>
class Lists {
 public:
  Lists() = default;
  // Keeps the order of entries with equal index.
  Lists(std::uint32_t count, const std::vector<std::pair<std::uint32_t, T>>& entries)
      : offsets_(count + 1, 0), values_(entries.size()) {
    for (const auto& [index, value] : entries) {
      ++offsets_[index + 1];
    }
    for (std::uint32_t index = 0; index < count; ++index) {
      offsets_[index + 1] += offsets_[index];
    }
    std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
    for (const auto& [index, value] : entries) {
      values_[next[index]++] = value;
    }
  }
  [[nodiscard]] std::span<const T> of(std::uint32_t index) const {
    return {values_.data() + offsets_[index], offsets_[index + 1] - offsets_[index]};
  }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<T> values_;
};

class Topology {
 public:
  [[nodiscard]] std::uint32_t node_count() const {
    return static_cast<std::uint32_t>(nodes_.size());
  }
  [[nodiscard]] std::uint32_t link_count() const {
    return static_cast<std::uint32_t>(links_.size());
  }
  [[nodiscard]] std::uint32_t server_count() const {
    return static_cast<std::uint32_t>(servers_.size());
  }
  [[nodiscard]] const ServerTraits& server(ServerId id) const { return servers_[id.value()]; }
  // Names of parts of the catalogue; the first is empty and represents none.
  [[nodiscard]] const std::vector<std::string>& parts() const { return parts_; }
  // The node of this name, if there is one. Looks at all of them.
  [[nodiscard]] std::optional<NodeId> find(std::string_view name) const;
  [[nodiscard]] const Node& node(NodeId id) const { return nodes_[id.value()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[id.value()]; }
  // Indexed by id.
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Link>& links() const { return links_; }
  [[nodiscard]] const std::vector<ServerTraits>& servers() const { return servers_; }
  // The same graph with other rates of these links, which must be positive.
  [[nodiscard]] Topology with_bandwidths(
      std::span<const std::pair<LinkId, Bandwidth>> bandwidths) const;
  // Returns the links in the order in which they were added.
  [[nodiscard]] std::span<const LinkId> links_from(NodeId id) const {
    return outgoing_.of(id.value());
  }

 private:
  friend class TopologyBuilder;
  Topology() = default;

  std::vector<Node> nodes_;
  std::vector<Link> links_;
  Lists<LinkId> outgoing_;  // One list per node.
  std::vector<ServerTraits> servers_;
  std::vector<std::string> parts_ = {""};
};

class TopologyBuilder {
 public:
  NodeId add_node(Node node);
  // Servers are dense from zero: the next one is server_count().
  ServerId add_server(const ServerTraits& traits = {});
  // Bandwidth must be positive and the two nodes different.
  LinkId add_link(NodeId source, NodeId target, const LinkSpec& spec);
  // Adds both directions with the same properties; returns the one from a to b, the other is the
  // next.
  LinkId add_duplex_link(NodeId a, NodeId b, const LinkSpec& spec);
  // A node that was added; valid until the next one is.
  [[nodiscard]] const Node& node(NodeId id) const { return topology_.node(id); }
  // The names that the part indices of nodes and links mean; the first is empty.
  void set_parts(std::vector<std::string> parts);
  [[nodiscard]] Topology build() &&;

 private:
  Topology topology_;
};

// Changes to nodes and links; each may be empty. The ends of links cannot change.
struct TopologyEdits {
  std::function<void(LinkId, LinkSpec&)> link = {};
  std::function<void(NodeId, Node&)> node = {};
  // Whether a link stays. If some do not, the others are numbered anew in the same order.
  std::function<bool(LinkId)> keeps = {};
};
[[nodiscard]] Topology edited(const Topology& topology, const TopologyEdits& edits);

}  // namespace trainyard
