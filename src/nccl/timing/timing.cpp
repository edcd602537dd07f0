// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "nccl/timing/timing_state.h"
#include "nccl/tuning/chunking.h"
#include "nccl/types/gpu_generation.h"
#include "nccl/types/release.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// Where each channel has a queue of its own, the host takes so many times as long for it: eight
// A100 of one process take 1.63 us for each channel more, whatever the operation (NCCL 2.10.3, five
// tables of Azure ND A100 v4), and launch.per_channel says 0.24.
constexpr int kQueueCost = 7;

// A host that only just keeps up with its GPU makes it wait now and then, so that the two take a
// little longer than the longer one: the eighth root of the sum of the eighth powers, which is at
// most 9 % more.
SimTime overlapped(SimTime device, SimTime host) {
  const double d = device.microseconds();
  const double h = host.microseconds();
  const double largest = std::max(d, h);
  if (largest <= 0.0) {
    return {};
  }
  const double sum = std::pow(d / largest, 8) + std::pow(h / largest, 8);
  return SimTime(static_cast<std::int64_t>(largest * std::pow(sum, 0.125) * 1e6));
}

const GpuProfile& gpu_profile(const Profile& profile, int compute_capability) {
  const std::string name(gpu_generation(compute_capability).name);
  const auto entry = profile.gpus.find(name);
  if (entry == profile.gpus.end()) {
    std::string known;
    for (const auto& [other, constants] : profile.gpus) {
      known += (known.empty() ? "" : ", ") + other;
    }
    throw ConfigError("the profile: expected `gpus` to have " + name + ", found " + known);
  }
  return entry->second;
}

// Returns the share of a whole block's rate that fewer threads get: each has more bytes under way
// when there are fewer of them, so it is more than their number (a group of 192 of 640 threads
// broadcasts LL128 at more than half of the rate of a block: all_reduce by Tree between two GPUs).
double thread_share(int threads, int all) {
  return std::min(1.0, std::sqrt(static_cast<double>(threads) / all));
}

double wire_share(Protocol protocol) {
  const auto [wire, data] = wire_ratio(protocol);
  return static_cast<double>(data) / wire;
}

// Part of its cost that a slice without bytes takes: it waits and posts, but neither copies nor
// fences (NVIDIA/nccl, src/device/prims_simple.h: genericOp, postPeer). An estimate.
constexpr std::int64_t kEmptySlice = 5;

}  // namespace

std::pair<int, int> wire_ratio(Protocol protocol) {
  // LL and LL128 send flags with the data.
  constexpr std::array<std::pair<int, int>, 3> kRatios{{{16, 8}, {128, 120}, {1, 1}}};
  return kRatios[static_cast<std::size_t>(protocol)];
}

std::vector<ChannelPart> channel_shares(const CallPlan& plan) {
  std::vector<ChannelPart> shares;
  for (const ChannelPart& part : plan.parts) {
    shares.insert(shares.end(), as_index(part.channels), part);
  }
  return shares;
}

Timer::State::State(const Cluster& cluster_in, const Communicator& communicator_in,
                    const Profile& profile_in, const Environment& environment_in,
                    const LaunchMode& mode_in, const std::optional<EngineSettings>& engine_in,
                    Routing* routing)
    : cluster(cluster_in),
      communicator(communicator_in),
      profile(profile_in),
      environment(environment_in),
      mode(mode_in),
      gpu(gpu_profile(profile_in, communicator_in.min_compute_capability)),
      folded(cluster_in, communicator_in, environment_in, routing),
      complete(cluster_in, communicator_in, environment_in, routing) {
  complete.fold(communicator.nodes);
  if (communicator.nodes > 1) {
    first_nic = complete.connect({.to = communicator.first_rank[1]}).sender.nic;
    network_rate = network(*first_nic).rate;
    complete.fold(communicator.nodes);
    engine = engine_in;
  }
}

void Timer::State::use(const Profile& other) {
  profile = other;
  gpu = gpu_profile(profile, communicator.min_compute_capability);
  known_rates.clear();
  network_rate = first_nic ? network(*first_nic).rate : 1.0;
}

const NetworkProfile& Timer::State::network(NodeId nic) const {
  return profile.networks.at(network_name(nic));
}

std::string Timer::State::network_name(NodeId nic) const {
  // The user's choice of the plugin comes first; "AWS Libfabric" serves several kinds of NICs.
  const std::string& plugin = environment.network;
  const std::string& part = cluster.topology.parts()[cluster.topology.node(nic).part];
  const auto name = profile.network_of_nic.find(cluster.catalogue.base_of(part));
  std::string own = name == profile.network_of_nic.end() ? "rdma" : name->second;
  if (plugin == "Socket" || (plugin.empty() && environment.ib_disable)) {
    const std::string sockets = own + "-tcp";
    return profile.networks.contains(sockets) ? sockets : "socket";
  }
  if (plugin == "FasTrak") {
    return "tcpxo";
  }
  if (plugin == "GPUDirectTCPX" || plugin == "GPUDirectTCPX_v7") {
    return "tcpx";
  }
  return own;
}

MachineKind Timer::State::machine() const {
  MachineKind kind{.gpu = std::string(gpu_generation(communicator.min_compute_capability).name),
                   .scale_up = "none",
                   .network = first_nic ? network_name(*first_nic) : "none"};
  if (communicator.ranks == communicator.nodes) {
    return kind;
  }
  kind.scale_up = "pcie";
  const Topology& topology = cluster.topology;
  for (std::uint32_t link = 0; link < topology.link_count(); ++link) {
    const LinkKind of = topology.link(LinkId(link)).spec.kind;
    if (of == LinkKind::NvLink || of == LinkKind::Xgmi) {
      kind.scale_up = of == LinkKind::Xgmi ? "xgmi" : "nvlink";
    }
  }
  for (std::uint32_t node = 0; node < topology.node_count(); ++node) {
    if (topology.node(NodeId(node)).kind == NodeKind::NvSwitch) {
      kind.scale_up = topology.server_count() > static_cast<std::size_t>(communicator.nodes)
                          ? "nvswitch-rack"
                          : "nvswitch";
    }
  }
  return kind;
}

std::vector<Bandwidth> Timer::State::port_rates(const Wiring& wiring, Protocol protocol) const {
  std::vector<Bandwidth> rates;
  for (const Port& port : wiring.ports()) {
    double share = wire_share(protocol);
    if ((port.kind == LinkKind::NvLink || port.kind == LinkKind::Xgmi) &&
        protocol == Protocol::LL128) {
      share = gpu.ll128_link;
    } else if (port.kind == LinkKind::Pcie && protocol == Protocol::LL) {
      share = profile.pcie_ll_rate;
    } else if (port.kind == LinkKind::Network) {
      share *= network_rate;
    }
    if (port.kind == LinkKind::Pcie) {
      share *= profile.pcie_rate;
    }
    if (port.crosses_host_bridge) {
      share *= profile.host_bridge_rate;
    }
    if (port.staging_share < 1.0) {
      share *= port.staging_share * profile.staging_rate;
    }
    rates.push_back(port.rate.scaled(share));
  }
  return rates;
}

// NVIDIA/nccl, src/graph/paths.cc: ncclTopoCheckP2p, src/transport/p2p.cc: between two GPUs of
// compute capability 80 the buffers of Simple are at the sender.
bool Timer::State::reads_from_peers(Protocol protocol) const {
  return protocol == Protocol::Simple &&
         environment.p2p_read.value_or(
             gpu_generation(communicator.min_compute_capability).reads_from_peers);
}

HostWork Timer::State::host_work(const NetworkProfile& plugin, bool staged,
                                 Protocol protocol) const {
  const auto [wire, data] = wire_ratio(protocol);
  HostWork work{.long_cost = plugin.long_cost,
                .long_above = Bytes(plugin.long_above.count() * data / wire)};
  // NVIDIA/nccl, src/transport/net.cc: sendProxyProgress. What comes over PCIe is in the caches of
  // x86 hosts; what comes over C2C is in memory.
  if (protocol == Protocol::LL && communicator.cpu == CpuKind::Arm) {
    work.check_rate = profile.ll_check_rate;
  }
  if (staged) {
    work.copy_rate = plugin.staged_rate;
  }
  return work;
}

std::uint32_t Timer::State::add_connection(ReplayNetwork& made, const Wire& wire,
                                           const ConnectionPlan& plan) const {
  ReplayConnection connection;
  connection.slots = plan.slots;
  Bandwidth own_rate =
      wire.cap < kMaxBandwidth ? wire.cap.scaled(wire_share(plan.protocol)) : kMaxBandwidth;
  if (wire.transport == Transport::Network) {
    const NetworkProfile& plugin = network(wire.sender.nic);
    connection.proxied = true;
    // Eight steps of the sender, free when the message is there, and eight of the receiver
    // (src/transport/net.cc: sendProxyProgress, recvProxyProgress).
    connection.slots = 2 * plan.slots;
    const bool copies = wire.staged && plan.protocol == Protocol::Simple;
    connection.latency = (copies ? plugin.staged_latency.value_or(plugin.latency.simple)
                                 : plugin.latency[plan.protocol]) +
                         wire.latency + plan.extra_latency;
    connection.credit_latency = wire.latency;
    connection.sending_host = static_cast<std::uint32_t>(plan.sender);
    connection.receiving_host = static_cast<std::uint32_t>(plan.receiver);
    connection.host_cost = plugin.host_cost;
    connection.host_work = host_work(plugin, wire.staged, plan.protocol);
    if (engine) {
      connection.latency = connection.latency - wire.latency;
      connection.path_latency = wire.latency;
      connection.queue_pairs = complete.queue_pairs(wire.sender, wire.receiver, wire.flow_label);
      connection.parts = connection.queue_pairs.size();
      if (complete.is_driven_by_verbs(wire.sender)) {
        connection.parts /= environment.ib_split_data ? 1 : as_index(environment.ib_queue_pairs);
        // Switches of InfiniBand may choose ways, so that the last bytes need not come last.
        if (environment.ib_adaptive_routing.value_or(engine->packet.framing ==
                                                     RdmaLink::InfiniBand)) {
          connection.told_above = environment.ib_adaptive_threshold;
        }
      }
      connection.receiving_ports = wire.receiving_ports;
      std::tie(connection.wire_bytes, connection.data_bytes) = wire_ratio(plan.protocol);
    }
    if (plugin.connection_rate < kMaxBandwidth) {
      own_rate = std::min(own_rate, plugin.connection_rate.scaled(wire_share(plan.protocol)));
    }
  } else {
    const ProtocolTimes& latency = wire.transport == Transport::NvLink ? gpu.link_latency
                                   : wire.transport == Transport::Pcie ? profile.pcie
                                                                       : profile.host;
    connection.latency = latency[plan.protocol] + profile.nvswitch * wire.switches;
    connection.credit_latency = latency[Protocol::LL];
    // LL waits for all lines of a pass at once; a pass of LL128 is ten times as long, and its lines
    // are passed on as they come.
    connection.flags_in_line = plan.protocol == Protocol::LL128;
    if (wire.transport == Transport::NvLink && reads_from_peers(plan.protocol)) {
      connection.units_in_step = static_cast<std::uint64_t>(profile.units_in_step);
    }
  }
  connection.ports = wire.ports;
  if (own_rate < kMaxBandwidth) {
    // Ports of the sender, so before those of the receiver.
    connection.ports.insert(connection.ports.begin(),
                            static_cast<std::uint32_t>(made.ports.size()));
    made.ports.push_back(own_rate);
  }
  made.connections.push_back(std::move(connection));
  return static_cast<std::uint32_t>(made.connections.size() - 1);
}

UnitRule Timer::State::unit_rule(const CallPlan& plan, int threads,
                                 const std::vector<Wire>& wires) const {
  UnitRule rule;
  rule.protocol = plan.protocol;
  switch (plan.protocol) {
    case Protocol::LL:
      rule.quantum = Bytes(threads) * 8;
      rule.unit_cost = gpu.ll_cost;
      for (const Wire& wire : wires) {
        if (wire.transport == Transport::Host) {
          rule.unit_cost = gpu.ll_cost + profile.staged_ll_pass;
        }
      }
      break;
    case Protocol::LL128:
      // A warp holds 2 KiB of lines, 120 of 128 bytes of which are data.
      rule.quantum = Bytes(threads / 32) * 1920;
      rule.chunk_cost = gpu.ll128_cost;
      break;
    case Protocol::Simple:
      rule.slices = plan.slices;
      rule.unit_cost = gpu.simple_cost;
      rule.empty_cost = SimTime(gpu.simple_cost.picoseconds() / kEmptySlice);
      // Before it posts, a block has its stores acknowledged. Over NVLink that is in simple_cost.
      for (const Wire& wire : wires) {
        if (wire.transport == Transport::Pcie || wire.transport == Transport::Host) {
          rule.unit_cost = std::max(rule.unit_cost, gpu.simple_cost + wire.latency);
        }
      }
      // NVIDIA/nccl, src/device/prims_simple.h: sliceSize.
      rule.quantum = Bytes(plan.step.count() * plan.chunk_steps / plan.slices / 32);
      break;
  }
  return rule;
}

Bandwidth Timer::State::block_rate(const CallPlan& plan, int threads) const {
  return plan.protocol == Protocol::LL      ? ll_rate(threads)
         : plan.protocol == Protocol::LL128 ? gpu.ll128_rate.scaled(thread_share(threads, 640))
                                            : gpu.simple_rate.scaled(thread_share(threads, 256));
}

Bandwidth Timer::State::ll_rate(int threads) const {
  return Bandwidth(static_cast<std::int64_t>(threads * 64.0 / gpu.ll_pass.seconds()));
}

std::uint32_t Timer::State::slots(const CallPlan& plan, const UnitRule& rule, Bytes chunk) const {
  return static_cast<std::uint32_t>(std::max(1, kFifoSteps / plan.chunk_steps)) *
         static_cast<std::uint32_t>(rule.units(chunk));
}

Timer::Timer(const Cluster& cluster, const Communicator& communicator, const Profile& profile,
             const Environment& environment, const LaunchMode& mode,
             const std::optional<EngineSettings>& engine, Routing* routing)
    : state_(std::make_unique<State>(cluster, communicator, profile, environment, mode, engine,
                                     routing)) {}

Timer::~Timer() = default;

void Timer::use(const Profile& profile) {
  state_->use(profile);
}

MachineKind Timer::machine() const {
  return state_->machine();
}

void Timer::use(const std::optional<EngineSettings>& engine) {
  if (state_->engine) {
    CHECK(engine.has_value(), "wires that were made for an engine");
    state_->engine = engine;
  }
}

void Timer::record(TraceRecorder* trace) {
  state_->trace = trace;
}

Timing Timer::collective(const CallPlan& plan) {
  State& state = *state_;
  state.outcome = {};
  state.traced = {};
  Timing timing;
  switch (plan.algorithm) {
    case Algorithm::Ring:
      timing.device = state.base_of(state.profile.ring_base)[plan.protocol];
      timing.device += is_rooted(plan.function) ? state.chain(plan) : state.ring(plan);
      break;
    case Algorithm::Tree:
      timing.device = state.base_of(state.profile.tree_base)[plan.protocol] + state.tree(plan);
      break;
    case Algorithm::Nvls:
      timing.device = state.nvls(plan);
      break;
    case Algorithm::NvlsTree:
      timing.device = state.nvls_tree(plan);
      break;
    case Algorithm::Pat:
      timing.device = state.pat(plan);
      break;
    case Algorithm::AllPairs:
      timing.device = state.all_pairs(plan);
      break;
    case Algorithm::CollNetDirect:
      timing.device = state.collnet_direct(plan);
      break;
    case Algorithm::CollNetChain:
      timing.device = state.collnet_chain(plan);
      break;
  }
  timing.device += state.profile.per_channel * plan.channels;
  state.finish(timing, plan.channels);
  return timing;
}

Timing Timer::symmetric(Bytes size) {
  Timing timing;
  timing.device = state_->symmetric(size);
  state_->finish(timing, 1);
  return timing;
}

Timing Timer::point_to_point(Operation operation, Bytes size) {
  state_->outcome = {};
  state_->traced = {};
  Timing timing;
  timing.device =
      state_->engine ? state_->rounds(operation, size) : state_->exchange(operation, size);
  // A root has one send or receive for each rank, and every rank has one with the root.
  const int ranks = state_->communicator.ranks;
  const int gpus = state_->mode.gpus_per_process;
  const bool has_root = operation == Operation::Scatter || operation == Operation::Gather;
  const int sends = operation == Operation::SendReceive ? 2 * gpus
                    : has_root                          ? ranks + gpus
                                                        : 2 * ranks * gpus;
  state_->finish(timing, state_->send_channels(operation, size), sends);
  return timing;
}

void Timer::State::finish(Timing& timing, int channels, int sends) const {
  const LaunchProfile& launch = profile.launch;
  const Release& rules = release(communicator.version);
  // A send is put into a queue by itself, which is in per_send.
  const bool queues = rules.queues_each_channel && sends == 0;
  const SimTime per_gpu =
      launch.per_gpu + launch.per_channel * (queues ? kQueueCost : 1) * channels;
  const SimTime shared = queues ? SimTime(0) : launch.shared_process;
  timing.host = mode.gpus_per_process == 1 ? launch.process_per_gpu
                                           : shared + per_gpu * mode.gpus_per_process;
  const bool together = mode.gpus_per_process > 1 && rules.launches_together;
  if (together) {
    timing.host = launch.together * mode.gpus_per_process;
  }
  timing.host += launch.per_send * sends;
  if (mode.cuda_graph) {
    timing.host =
        SimTime(std::llround(static_cast<double>(timing.host.picoseconds()) * launch.graph));
  }
  if (engine) {
    timing.engine = outcome;
  }
  timing.time = mode.back_to_back && (!together || mode.cuda_graph)
                    ? overlapped(timing.device, timing.host)
                    : timing.host + timing.device;
}

}  // namespace trainyard::nccl
