// SPDX-License-Identifier: Apache-2.0
// Connections between ranks over the links of a cluster, with equal nodes folded into one.
//
// In a ring over equal nodes every node does at any time what every other does: what comes in from
// the node before is what goes out to the node behind. So one node, or as many as make up a period,
// whose last rank sends to its own first one, takes exactly as long as all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nccl/machine/nic_devices.h"
#include "nccl/timing/replay.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "network/contract/network.h"
#include "sim/ids.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/routing.h"

namespace trainyard::nccl {

// The carrier of a connection's data (NVIDIA/nccl, src/transport): the block's own stores into the
// memory of another GPU over NVLink and the like, or over PCIe; buffers in host memory; NICs.
enum class Transport : std::uint8_t { NvLink, Pcie, Host, Network };

struct Wire {
  Transport transport = Transport::NvLink;
  std::vector<std::uint32_t> ports = {};
  Bandwidth cap = kMaxBandwidth;  // Rate that the fabric leaves it (fabric_shares).
  SimTime latency;                // Latency of links and switches.
  bool staged = false;            // Through host memory at either end.
  int switches = 0;               // NVSwitches on the way.
  // Network only.
  NicDevice sender = {};
  NicDevice receiver = {};
  std::uint32_t flow_label = 0;
  std::uint32_t receiving_ports = 0;  // The last of `ports`: from the fabric to the receiver.
};

// The data that one rank sends to another in a call.
struct NodeFlow {
  int from = 0;
  int to = 0;
  int channel = 0;
  std::optional<int> nic_out = {};  // NICs by their numbers in the nodes.
  std::optional<int> nic_in = {};
  Bytes bytes = {};
  bool is_pair = false;  // A send and its receive, which leaves the node by sending_rank().
};

// The NICs of a connection between nodes, and the ways to and from them inside the servers, which
// live as long as the wiring.
struct NetworkEnds {
  NicDevice out = {};
  NicDevice in = {};
  std::span<const LinkId> outward = {};
  std::span<const LinkId> inward = {};
};

struct Port {
  Bandwidth rate;
  LinkKind kind = LinkKind::NvLink;
  bool crosses_host_bridge = false;  // PCIe, on the way between a GPU and its NIC.
  // Share that copies through host memory get of it (ServerTraits).
  double staging_share = 1.0;
};

class Wiring {
 public:
  // All must outlive the wiring. Ranks are the first GPUs of the cluster. `routing`: of the same
  // links, instead of one of its own, whose tables cost more than all else on large clusters.
  Wiring(const Cluster& cluster, const Communicator& communicator, const Environment& environment,
         Routing* routing = nullptr);

  [[nodiscard]] int node_of(int rank) const { return node_of_[as_index(rank)]; }
  [[nodiscard]] int local_rank(int rank) const {
    return rank - communicator_.first_rank[as_index(node_of(rank))];
  }
  // Place in the order of a ring at which it enters the first node; 0 on a single node.
  [[nodiscard]] std::size_t ring_begin(const std::vector<int>& order) const;
  // Nodes after which the ring of every channel repeats itself; all of them if it does not.
  [[nodiscard]] int ring_period() const { return ring_period_; }

  // The links of a node stand for those of every `period`-th node. Ports are then numbered anew.
  void fold(int period);
  // NICs by their number in the node, which one of them must have; otherwise those nearest to the
  // GPUs take turns by channel.
  [[nodiscard]] Wire connect(const NodeFlow& flow);
  // Returns the ends of the wire that connect() would give between two nodes.
  [[nodiscard]] NetworkEnds ends(const NodeFlow& flow);
  // Returns the rank whose NICs, and whose proxy, send from one rank to another of another node:
  // the rank of the sender's node that stands where the receiver does in its own, if the sender
  // reaches it over NVLink (PXN; NVIDIA/nccl, src/graph/search.cc: ncclTopoGetNetDev); otherwise
  // the sender.
  [[nodiscard]] int sending_rank(int from, int to);
  [[nodiscard]] const std::vector<Port>& ports() const { return ports_; }

  // Returns the rate that each of these connections between nodes gets of the links between
  // switches when all of them send at once, with max-min fairness; kMaxBandwidth where there is no
  // such link on the way, or the fabric spreads the load (adaptive routing, spraying): no path is
  // then a bottleneck alone, and an oversubscribed fabric of this kind comes out too fast.
  [[nodiscard]] std::vector<Bandwidth> fabric_shares(std::span<const Wire> wires);
  // Returns the queue pairs that carry such a connection where an engine stands between the nodes:
  // from NIC to NIC, one for each cable, or NIC of a group, or as many as
  // NCCL_IB_QPS_PER_CONNECTION says; the first of each come before the second ones.
  [[nodiscard]] std::vector<ConnectionSpec> queue_pairs(const NicDevice& from, const NicDevice& to,
                                                        std::uint32_t label) const;
  // Returns whether variables of NCCL's plugin for InfiniBand and RoCE have an effect on the NIC.
  [[nodiscard]] bool is_driven_by_verbs(const NicDevice& device) const;
  [[nodiscard]] Routing& routing() { return routing_; }

 private:
  // Rates of cables that represent all that a NIC of several ports uses.
  using JointRates = std::map<LinkId, Bandwidth>;

  [[nodiscard]] std::optional<std::uint32_t> port(LinkId link, const JointRates& joint);
  [[nodiscard]] JointRates joint_rates(const std::vector<ConnectionSpec>& pairs);
  void append_route(const ConnectionSpec& pair, std::vector<LinkId>& path);
  [[nodiscard]] int find_ring_period() const;
  [[nodiscard]] NicDevice nic(int rank, std::optional<int> number, int channel);
  [[nodiscard]] Wire connect_nodes(const NodeFlow& flow);
  [[nodiscard]] int find_sending_rank(int from, int relay);
  // Ways inside a server, computed once.
  template <typename Find>
  [[nodiscard]] std::span<const LinkId> way(NodeId from, NodeId to, const Find& find);
  [[nodiscard]] std::span<const LinkId> way_to_nic(NodeId gpu, NodeId nic);
  [[nodiscard]] std::span<const LinkId> way_from_nic(NodeId nic, NodeId gpu);
  [[nodiscard]] bool hands_over() const;
  [[nodiscard]] std::vector<LinkId> find_way_to_nic(NodeId gpu, NodeId nic);
  [[nodiscard]] Wire finish(Transport transport, const std::vector<LinkId>& path,
                            const JointRates& joint = {});
  void mark_host_bridge(std::span<const LinkId> path);

  using ServerWay = std::pair<NodeId, std::vector<LinkId>>;  // To a device.
  struct Place {                                             // Place of a device of a server.
    int node = -1;                                           // NCCL's node; -1: of no rank.
    int server = 0;                                          // Among the servers of the node.
    int index = 0;                                           // Among the devices of the server.
  };

  const Cluster& cluster_;
  const Communicator& communicator_;
  const Environment& environment_;
  std::optional<Routing> own_routing_;
  Routing& routing_;
  std::vector<int> node_of_;   // Indexed by rank.
  std::vector<Place> places_;  // Indexed by NodeId.
  // The first NIC of a group, and the first cable of an adapter, stand for all, with ports of their
  // summed rate: what is sent is divided evenly.
  std::optional<NicDevices> devices_;
  std::vector<std::vector<NicDevice>> own_nics_;  // Indexed by rank; made at first use.
  // Indexed by sender, then place of the receiver.
  std::vector<std::vector<std::optional<int>>> sending_;
  std::vector<std::vector<ServerWay>> ways_;  // To and from NICs, by the first device.
  std::vector<std::vector<NodeId>> gpus_of_server_;
  int ring_period_ = 1;
  int period_ = 1;
  // Numbers by (node in the period, server, device, its link): the port of that link, and of the
  // opposite.
  std::map<std::vector<std::int64_t>, std::uint32_t> port_numbers_;
  std::vector<Port> ports_;
};

}  // namespace trainyard::nccl
