// SPDX-License-Identifier: Apache-2.0
// Declares what the parts of the event model share: inside of timing.h, for timing*.cpp and their
// tests alone.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nccl/timing/programs.h"
#include "nccl/timing/timing.h"
#include "network/sharing/fabric_cuts.h"
#include "network/sharing/load_sharing.h"
#include "sim/trace.h"

namespace trainyard::nccl {

// One channel of a ring: its lanes in order, each with the wire to the next; the last leads back to
// the first.
struct RingWires {
  std::vector<int> ranks;
  std::vector<Wire> wires;
};

// Which way of a tree runs: both at once, or one alone.
enum class TreeWay : std::uint8_t { Both, Up, Down };

// One channel of a tree, by rank: the wires to and from its parent, without ports at the root.
struct TreeWires {
  std::vector<Wire> up;
  std::vector<Wire> down;
};

// The blocks of a call and the network between them.
struct ReplayedCall {
  ReplayNetwork network;
  std::vector<ReplayLane> lanes;
};

// The ways of what a call sends, of which the timer keeps tables.
struct OwnWays {
  explicit OwnWays(Routing& routing);

  ConnectionLoads loads;           // Over one path for all, where switches choose by themselves.
  std::optional<FabricCuts> cuts;  // Made at first use.
};

struct Timer::State {
  State(const Cluster& cluster_in, const Communicator& communicator_in, const Profile& profile_in,
        const Environment& environment_in, const LaunchMode& mode_in,
        const std::optional<EngineSettings>& engine_in = std::nullopt, Routing* routing = nullptr);

  const Cluster& cluster;
  const Communicator& communicator;
  Profile profile;
  const Environment& environment;
  LaunchMode mode;
  GpuProfile gpu;
  std::optional<NodeId> first_nic;  // NIC of the first node, towards the next; none on one node.
  double network_rate = 1.0;        // Share of the NICs' payload rate that the plugin gets.
  Wiring folded;                    // For rings.
  Wiring complete;                  // For what has a beginning and an end.
  std::vector<RingWires> rings;     // Wires by channel, of the folded nodes; made at first use.
  std::vector<RingWires> chains;    // The same of all nodes.
  std::vector<TreeWires> trees;
  std::optional<EngineSettings> engine;  // Between nodes, of which there are several.
  EngineOutcome outcome;                 // Outcome of the runs over it, in one call.
  CallLimits limits;
  TraceRecorder* trace = nullptr;
  SimTime traced;                   // How much of the call is recorded.
  std::optional<OwnWays> own_ways;  // Made at first use.
  // Rates over links, by the call; they do not depend on sizes.
  std::map<std::array<int, 3>, double> known_rates;
  std::map<std::array<int, 4>, std::vector<Load>> known_traffic;  // Answers of byte_traffic().

  void use(const Profile& other);
  // Start and end of a kernel, which RCCL has of its own.
  [[nodiscard]] const ProtocolTimes& base_of(const ProtocolTimes& nccl) const {
    return gpu.rccl ? gpu.rccl->base : nccl;
  }
  [[nodiscard]] const NetworkProfile& network(NodeId nic) const;
  [[nodiscard]] std::string network_name(NodeId nic) const;
  [[nodiscard]] MachineKind machine() const;
  // The rates of the ports for a protocol: data bytes, not those of the wire.
  [[nodiscard]] std::vector<Bandwidth> port_rates(const Wiring& wiring, Protocol protocol) const;
  // Adds a connection over the ports of the wire, and one of its own where it is limited by itself.
  // Hosts are numbers of ranks. Returns the number of the connection.
  struct ConnectionPlan {
    Protocol protocol = Protocol::Simple;
    std::uint32_t slots = 1;
    int sender = 0;
    int receiver = 0;
    SimTime extra_latency = {};
  };
  [[nodiscard]] HostWork host_work(const NetworkProfile& plugin, bool staged,
                                   Protocol protocol) const;
  std::uint32_t add_connection(ReplayNetwork& made, const Wire& wire,
                               const ConnectionPlan& plan) const;
  // Over NVLink, the receiver reads what the sender has in its own memory, instead of being written
  // to.
  [[nodiscard]] bool reads_from_peers(Protocol protocol) const;
  // Returns how a block of `threads` walks through chunks, over these wires.
  [[nodiscard]] UnitRule unit_rule(const CallPlan& plan, int threads,
                                   const std::vector<Wire>& wires) const;
  [[nodiscard]] Bandwidth block_rate(const CallPlan& plan, int threads) const;
  // Returns how many blocks a kernel of sends and receives has: one for each channel that is used
  // (NVIDIA/nccl, src/enqueue.cc: channelMask).
  [[nodiscard]] int send_channels(Operation operation, Bytes size) const;
  // Returns what a chunk costs more in a ring over NVLink, for `bytes` of all ranks together.
  [[nodiscard]] SimTime ll_busy(const CallPlan& plan, Bytes bytes) const;
  // Returns the rate of a block with LL, whose threads move 8 bytes each in `ll_pass`.
  [[nodiscard]] Bandwidth ll_rate(int threads) const;
  [[nodiscard]] std::uint32_t slots(const CallPlan& plan, const UnitRule& rule, Bytes chunk) const;

  // Runs on ports alone, or over the engine, with all units or the first so many. Throws
  // ConfigError where the engine would have too much to do.
  [[nodiscard]] SimTime run(const ReplayNetwork& made, std::span<const ReplayLane> lanes);
  [[nodiscard]] SimTime run_first(const ReplayNetwork& made, std::span<const ReplayLane> lanes,
                                  std::uint64_t max_units, const ReplayWatch& watch = {});
  // Returns what records the lanes on tracks, after what was recorded of the call before; nothing
  // without a recorder. The lanes must outlive it.
  [[nodiscard]] ReplayWatch recording(std::span<const ReplayLane> lanes);
  // Units of each of so many lanes that run() takes one by one; what is beyond repeats them.
  [[nodiscard]] std::uint64_t units_one_by_one(std::size_t lanes) const;

  // Returns how many times as long these flows take over the engine as over ports; at least 1.
  [[nodiscard]] double slowdown(const std::vector<NodeFlow>& flows, Bytes chunk);
  [[nodiscard]] std::vector<NodeFlow> nvls_tree_flows(const CallPlan& plan) const;
  [[nodiscard]] std::vector<NodeFlow> pat_flows(const CallPlan& plan) const;
  [[nodiscard]] std::vector<NodeFlow> pair_flows(const CallPlan& plan) const;
  // Serves Timer::loads(), loads_with_gpu_links(), and Timer::traffic(), where a link has what
  // crosses it (LinkShares::All).
  enum class LinkShares { AsReached, AsReachedWithGpus, All };
  void add_server_load(std::span<const LinkId> path, bool to_nic, double weight, LinkShares shares,
                       Load& load) const;
  void add_load(const NodeFlow& flow, double weight, LinkShares shares,
                ConnectionLoads& connections, Load& load);
  // Returns the flows by channel, or all as one; none where switches add up, or for a single rank.
  [[nodiscard]] std::vector<std::vector<NodeFlow>> flows_of(const CallPlan& plan) const;
  [[nodiscard]] std::vector<std::vector<NodeFlow>> ring_flows() const;
  [[nodiscard]] std::vector<std::vector<NodeFlow>> tree_flows() const;
  [[nodiscard]] std::vector<Load> loads(const std::vector<std::vector<NodeFlow>>& flows,
                                        LinkShares shares, ConnectionLoads& connections);
  // Returns what each channel of a ring or tree puts on links for each byte of its connections, or
  // all of another call for each byte of it; of sends and receives those inside nodes, and those
  // between them, for each byte of a pair.
  [[nodiscard]] const std::vector<Load>& byte_traffic(const CallPlan& plan, int root);
  [[nodiscard]] const std::vector<Load>& byte_traffic(Operation operation);
  [[nodiscard]] std::vector<Load> loads(Operation operation, LinkShares shares,
                                        ConnectionLoads& connections);
  [[nodiscard]] const NodeNics& nics_of(int rank) const;
  // Returns what others leave a wire of this channel, of a ring or tree.
  [[nodiscard]] Wire limited(const Wire& wire, std::size_t channel) const;

  // Time of the kernel, without its base.
  [[nodiscard]] SimTime ring(const CallPlan& plan);
  [[nodiscard]] SimTime chain(const CallPlan& plan);
  [[nodiscard]] SimTime tree(const CallPlan& plan);
  [[nodiscard]] SimTime tree(const CallPlan& plan, TreeWay way);
  // Time of the kernel, with its base.
  [[nodiscard]] SimTime nvls(const CallPlan& plan);
  [[nodiscard]] SimTime symmetric(Bytes size);
  [[nodiscard]] SimTime nvls_tree(const CallPlan& plan);
  [[nodiscard]] SimTime pat(const CallPlan& plan);
  [[nodiscard]] SimTime all_pairs(const CallPlan& plan);
  // Throws ConfigError for other functions than AllReduce, and where there is an engine.
  void require_collnet(const CallPlan& plan) const;
  [[nodiscard]] SimTime collnet_direct(const CallPlan& plan);
  [[nodiscard]] SimTime collnet_chain(const CallPlan& plan);

  // Turns the time of the device into that of a call.
  // `sends`: how many sends and receives the process posts in one call.
  void finish(Timing& timing, int channels, int sends = 0) const;
  // Time of sends and receives, with the base of the kernel.
  [[nodiscard]] SimTime exchange(Operation operation, Bytes size);
  [[nodiscard]] bool is_rail(Operation operation) const;
  // Returns how long a connection over the network waits for the turn of another one, at both ends.
  [[nodiscard]] SimTime turn_of_connection(Operation operation);
  // The same over an engine: all rounds of all ranks.
  [[nodiscard]] SimTime rounds(Operation operation, Bytes size);

  void make_rings(std::vector<RingWires>& made, Wiring& wiring, int period) const;
  // The rings of the channels in use; of a call with a root chains that begin at their first rank.
  [[nodiscard]] ReplayedCall ring_lanes(const CallPlan& plan, const std::vector<RingWires>& wires,
                                        const Wiring& wiring) const;
  void make_trees();
  void add_tree_channel(const CallPlan& plan, const ChannelPart& share, std::size_t channel,
                        TreeWay way, ReplayedCall& call) const;
  // The least rate of a port between two GPUs of a node in one direction.
  [[nodiscard]] Bandwidth scale_up_rate();
  // The rate from a GPU to so many others of its node at once.
  [[nodiscard]] Bandwidth rate_to_peers(int peers);
  // All NICs of the smallest node in one direction, and the latency between two nodes.
  struct NodeNetwork {
    Bandwidth rate;
    Bandwidth one_gpu;  // The NICs of one GPU.
    Wire wire;
  };
  [[nodiscard]] NodeNetwork node_network();
  // The same for a call of NVLSTree or PAT, which sends its bytes so many times by these NICs: less
  // where the way of any of it, in this node or another or between them, is full before.
  [[nodiscard]] NodeNetwork node_network(const CallPlan& plan, double times);
  // Returns the rate that ports let through of these wires, all of which send at once.
  [[nodiscard]] Bandwidth rate_together(const std::vector<Wire>& wires) const;
  // Returns the rate of each pair of an exchange; nothing where no link is in the way that counts.
  [[nodiscard]] std::optional<Bandwidth> rate_of_pairs(Operation operation);
  // Returns how fast all of a load of own_connections() goes, in bit/s for each unit of its
  // weights; infinite if it is empty. `is_whole`: no connection represents several.
  [[nodiscard]] double rate_over_links(const Load& load, bool is_whole);
  // Visits what every rank sends to each peer in turn, or to `max_peers` of them, with the number
  // of sends that each part represents: those to other nodes are parts, which take turns by the
  // NICs of their ends.
  using VisitPart = std::function<void(const NodeFlow& part, double stands_for)>;
  void visit_exchange(Operation operation, int max_peers, const VisitPart& visit);
  [[nodiscard]] Load exchange_load(Operation operation, int max_peers, LinkShares shares,
                                   ConnectionLoads& connections);
  [[nodiscard]] ConnectionLoads& own_connections();
};

// Bytes on the wire, and how many of them are data.
[[nodiscard]] std::pair<int, int> wire_ratio(Protocol protocol);

// The NIC of a channel in one of the lists of NodeNics, if it has one.
[[nodiscard]] std::optional<int> nic_of_channel(const std::vector<int>& nics, std::size_t channel);

// The flow back.
[[nodiscard]] NodeFlow reversed(NodeFlow flow);

// The loops of one channel over a chunk of each head.
struct HeadLoops {
  std::int64_t bytes = 0;  // Bytes of the channel, as the operation counts them.
  std::int64_t loop = 0;   // Bytes of one loop.
};
[[nodiscard]] HeadLoops head_loops(const CallPlan& plan, int heads);

// The time of a loop in all stages that it goes through, and in the slowest of them.
struct LoopTime {
  SimTime all;
  SimTime slowest;
};
// Groups of warps work on different loops at once: the first goes through all stages, each further
// one comes when the slowest has done it. `time_of` a loop of so many bytes.
[[nodiscard]] SimTime pipelined(const HeadLoops& loops,
                                const std::function<LoopTime(std::int64_t)>& time_of);

// The part of each channel in use, in order.
[[nodiscard]] std::vector<ChannelPart> channel_shares(const CallPlan& plan);

}  // namespace trainyard::nccl
