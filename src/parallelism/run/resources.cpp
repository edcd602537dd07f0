// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/resources.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "sim/check.h"
#include "topology/graph/switch_graph.h"
#include "topology/graph/topology.h"

namespace trainyard {
namespace {

constexpr LinkKind kNoKind = LinkKind::Network;

SimTime shorter(SimTime time, double factor) {
  return SimTime(std::llround(static_cast<double>(time.picoseconds()) / factor));
}

// kMaxBandwidth represents no limit.
Bandwidth faster(Bandwidth rate, double factor) {
  if (rate >= kMaxBandwidth) {
    return rate;
  }
  const double bits = static_cast<double>(rate.bits_per_second()) * factor;
  return std::min(kMaxBandwidth, Bandwidth(std::max<std::int64_t>(1, std::llround(bits))));
}

bool is_fabric_node(const Topology& topology, NodeId id) {
  const Node& node = topology.node(id);
  return node.kind == NodeKind::Switch || node.kind == NodeKind::Nic;
}

std::string title_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::NvLink:
      return "NVLink";
    case LinkKind::Xgmi:
      return "xGMI";
    case LinkKind::C2c:
      return "C2C";
    case LinkKind::Pcie:
      return "PCIe";
    case LinkKind::Socket:
      return "links between sockets";
    case LinkKind::Memory:
      return "host memory";
    case LinkKind::Hccs:
      return "HCCS";
    case LinkKind::Network:
      break;
  }
  return "links of NICs";
}

enum class TierKind : std::uint8_t { ByHops, Dimension, Local, Global };

// Keys sort in the order in which they are shown. The number is of the tier or dimension.
using ResourceKey = std::tuple<ResourceKind, LinkKind, TierKind, std::uint32_t>;

// The first dimension in which two switches of a grid differ.
std::uint32_t dimension_between(const FabricShape& grid, std::uint32_t from, std::uint32_t to) {
  std::uint32_t dimension = 0;
  for (const int length : grid.dimensions) {
    const auto places = static_cast<std::uint32_t>(length);
    if (from % places != to % places) {
      break;
    }
    from /= places;
    to /= places;
    ++dimension;
  }
  return dimension;
}

// A link between switches, by the shape of the fabric; nothing where that says nothing of it.
std::optional<ResourceKey> key_by_shape(const FabricShape& fabric, const Link& link) {
  const std::uint32_t from = link.source.value() - fabric.first_switch.value();
  const std::uint32_t to = link.target.value() - fabric.first_switch.value();
  if (link.source < fabric.first_switch || link.target < fabric.first_switch ||
      std::max(from, to) >= fabric.switches) {
    return std::nullopt;
  }
  if (fabric.is_grid()) {
    return ResourceKey{ResourceKind::Tier, kNoKind, TierKind::Dimension,
                       dimension_between(fabric, from, to)};
  }
  if (fabric.group_size > 0) {
    const bool is_local = from / fabric.group_size == to / fabric.group_size;
    return ResourceKey{ResourceKind::Tier, kNoKind, is_local ? TierKind::Local : TierKind::Global,
                       0};
  }
  return std::nullopt;
}

ResourceKey key_of(const Topology& topology, const SwitchGraph& graph, const FabricShape& fabric,
                   const Link& link) {
  if (link.spec.kind != LinkKind::Network) {
    return {ResourceKind::Links, link.spec.kind, TierKind::ByHops, 0};
  }
  const auto tier = [&](NodeId node) -> std::optional<std::uint32_t> {
    const auto index = graph.index_of(node);
    return index && topology.node(node).kind == NodeKind::Switch
               ? std::optional(graph.tier(*index).value_or(0))
               : std::nullopt;
  };
  const auto from = tier(link.source);
  const auto to = tier(link.target);
  if (!from || !to) {
    return {ResourceKind::Nic, kNoKind, TierKind::ByHops, 0};
  }
  return key_by_shape(fabric, link)
      .value_or(ResourceKey{ResourceKind::Tier, kNoKind, TierKind::ByHops, std::min(*from, *to)});
}

Resource named(const ResourceKey& key) {
  const auto [kind, links, tier, number] = key;
  if (kind != ResourceKind::Tier) {
    return {.kind = kind,
            .key = kind == ResourceKind::Nic ? "nic" : std::string(to_string(links)),
            .title = title_of(links)};
  }
  switch (tier) {
    case TierKind::ByHops:
      return {.kind = kind,
              .key = fmt::format("tier_{}", number),
              .title = fmt::format("links of switches from {} up",
                                   number == 0   ? "leaves"
                                   : number == 1 ? "spines"
                                                 : fmt::format("tier {}", number))};
    case TierKind::Dimension:
      return {.kind = kind,
              .key = fmt::format("dimension_{}", number),
              .title = fmt::format("links along dimension {}", number)};
    case TierKind::Local:
      return {.kind = kind, .key = "local", .title = "links of switches in groups"};
    case TierKind::Global:
      return {.kind = kind, .key = "global", .title = "links between groups"};
  }
  CHECK(false, "unknown tier");
}

void scale_links(Cluster& cluster, const Resource& resource, double factor) {
  const LinkResources links(cluster.topology);
  cluster.topology = edited(cluster.topology, {.link = [&](LinkId id, LinkSpec& spec) {
                              const Resource& of = links.of(id);
                              if (resource.kind == ResourceKind::All || of.key == resource.key) {
                                spec.bandwidth = faster(spec.bandwidth, factor);
                              }
                            }});
}

void scale_latencies(Cluster& cluster, const Resource& resource, double factor) {
  const Topology& topology = cluster.topology;
  const auto is_meant = [&](bool of_network) {
    return resource.kind == ResourceKind::All ||
           of_network == (resource.kind == ResourceKind::NetworkLatency);
  };
  cluster.topology = edited(topology, {.link =
                                           [&](LinkId /*id*/, LinkSpec& spec) {
                                             if (is_meant(spec.kind == LinkKind::Network)) {
                                               spec.latency = shorter(spec.latency, factor);
                                             }
                                           },
                                       .node =
                                           [&](NodeId id, Node& node) {
                                             if (is_meant(is_fabric_node(topology, id))) {
                                               node.latency = shorter(node.latency, factor);
                                             }
                                           }});
}

nccl::ProtocolTimes shorter(const nccl::ProtocolTimes& times, double factor) {
  return {.ll = shorter(times.ll, factor),
          .ll128 = shorter(times.ll128, factor),
          .simple = shorter(times.simple, factor)};
}

void scale_kernel_rates(nccl::Profile& profile, double factor) {
  for (auto& [name, gpu] : profile.gpus) {
    gpu.simple_rate = faster(gpu.simple_rate, factor);
    gpu.ll128_rate = faster(gpu.ll128_rate, factor);
    gpu.ll_pass = shorter(gpu.ll_pass, factor);
  }
  for (auto& [name, network] : profile.networks) {
    network.connection_rate = faster(network.connection_rate, factor);
    network.staged_rate = faster(network.staged_rate, factor);
  }
}

void scale_kernel_latencies(nccl::Profile& profile, double factor) {
  for (auto& [name, gpu] : profile.gpus) {
    gpu.simple_cost = shorter(gpu.simple_cost, factor);
    gpu.ll128_cost = shorter(gpu.ll128_cost, factor);
    gpu.ll_cost = shorter(gpu.ll_cost, factor);
    gpu.ll_busy = shorter(gpu.ll_busy, factor);
    gpu.link_latency = shorter(gpu.link_latency, factor);
    if (gpu.nvls) {
      gpu.nvls->head_cost = shorter(gpu.nvls->head_cost, factor);
    }
  }
  for (auto& [name, network] : profile.networks) {
    network.latency = shorter(network.latency, factor);
    network.host_cost = shorter(network.host_cost, factor);
    network.long_cost = shorter(network.long_cost, factor);
    if (network.staged_latency) {
      *network.staged_latency = shorter(*network.staged_latency, factor);
    }
  }
  for (nccl::ProtocolTimes* const each : {&profile.pcie, &profile.host}) {
    *each = shorter(*each, factor);
  }
  profile.ll_check_rate = faster(profile.ll_check_rate, factor);
  profile.tree_network_extra = shorter(profile.tree_network_extra, factor);
  for (SimTime* const each : {&profile.nvswitch, &profile.nvls_tree_sync, &profile.collnet_extra,
                              &profile.staged_ll_pass}) {
    *each = shorter(*each, factor);
  }
}

void scale_launches(MachineModel& machine, double factor) {
  nccl::Profile& profile = machine.nccl;
  profile.ring_base = shorter(profile.ring_base, factor);
  profile.tree_base = shorter(profile.tree_base, factor);
  nccl::LaunchProfile& launch = profile.launch;
  for (SimTime* const each : {&profile.per_channel, &profile.pat_base, &launch.process_per_gpu,
                              &launch.shared_process, &launch.per_gpu, &launch.per_channel,
                              &launch.per_send, &launch.together, &machine.software.fixed}) {
    *each = shorter(*each, factor);
  }
  for (auto& [name, gpu] : profile.gpus) {
    if (gpu.nvls) {
      gpu.nvls->symmetric_base = shorter(gpu.nvls->symmetric_base, factor);
    }
  }
  for (auto& [name, generation] : machine.rates.generations) {
    generation.gemm_start = shorter(generation.gemm_start, factor);
    generation.host_layer = shorter(generation.host_layer, factor);
    generation.host_collective = shorter(generation.host_collective, factor);
  }
}

void scale_flops(GpuRates& rates, double factor) {
  for (auto& [name, generation] : rates.generations) {
    generation.gemm *= factor;
    for (std::optional<double>* const each : {&generation.gemm_fp8, &generation.gemm_nvfp4}) {
      if (*each) {
        **each *= factor;
      }
    }
    for (auto& [kernel, attention] : generation.attention) {
      attention.forward *= factor;
      attention.backward *= factor;
    }
  }
}

}  // namespace

LinkResources::LinkResources(const Topology& topology, const FabricShape& fabric) {
  const SwitchGraph graph(topology);
  std::map<ResourceKey, std::pair<Bandwidth, Bandwidth>> found;  // Least and greatest rate.
  std::vector<ResourceKey> keys;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(LinkId(index));
    keys.push_back(key_of(topology, graph, fabric, link));
    const Bandwidth rate = link.spec.bandwidth;
    auto& range = found.try_emplace(keys.back(), rate, rate).first->second;
    range.first = std::min(range.first, rate);
    range.second = std::max(range.second, rate);
  }
  std::map<ResourceKey, std::size_t> places;
  for (const auto& [key, range] : found) {
    Resource resource = named(key);
    const double min = range.first.gigabytes_per_second();
    const double max = range.second.gigabytes_per_second();
    resource.value = min == max ? fmt::format("{:.4g} GB/s", max)
                                : fmt::format("{:.4g} to {:.4g} GB/s", min, max);
    places.emplace(key, list_.size());
    list_.push_back(std::move(resource));
  }
  for (const ResourceKey& key : keys) {
    of_link_.push_back(places.at(key));
  }
}

std::vector<Resource> resources_of(const Cluster& cluster, ResourceScope scope) {
  std::vector<Resource> all = LinkResources(cluster.topology).list();
  const auto add = [&](ResourceKind kind, std::string key, std::string title) {
    all.push_back({.kind = kind, .key = std::move(key), .title = std::move(title)});
  };
  add(ResourceKind::ServerLatency, "server_latency", "latency in servers");
  if (cluster.nodes > 1) {
    add(ResourceKind::NetworkLatency, "network_latency", "latency of the network");
  }
  if (scope.nccl) {
    add(ResourceKind::KernelRate, "kernel_rate", "NCCL: rate of thread blocks");
    add(ResourceKind::KernelLatency, "kernel_latency", "NCCL: cost of units and hops");
  }
  if (scope.nccl || scope.compute) {
    add(ResourceKind::Launch, "launch", "launching");
  }
  if (scope.compute) {
    add(ResourceKind::Flops, "flops", "FLOP/s of GPUs");
    add(ResourceKind::GpuMemory, "gpu_memory", "memory bandwidth of GPUs");
  }
  return all;
}

Resource all_resources() {
  return {.kind = ResourceKind::All, .key = "all", .title = "all of them at once"};
}

MachineModel scaled(const MachineModel& machine, const Resource& resource, double factor) {
  CHECK(factor > 0.0, "a resource keeps something");
  MachineModel made = machine;
  const auto is = [&](ResourceKind kind) {
    return resource.kind == kind || resource.kind == ResourceKind::All;
  };
  if (is(ResourceKind::Links) || is(ResourceKind::Nic) || is(ResourceKind::Tier)) {
    scale_links(made.cluster, resource, factor);
  }
  if (is(ResourceKind::ServerLatency) || is(ResourceKind::NetworkLatency)) {
    scale_latencies(made.cluster, resource, factor);
  }
  if (is(ResourceKind::KernelRate)) {
    scale_kernel_rates(made.nccl, factor);
  }
  if (is(ResourceKind::KernelLatency)) {
    scale_kernel_latencies(made.nccl, factor);
  }
  if (is(ResourceKind::Launch)) {
    scale_launches(made, factor);
  }
  if (is(ResourceKind::Flops)) {
    scale_flops(made.rates, factor);
  }
  if (is(ResourceKind::GpuMemory)) {
    for (auto& [name, generation] : made.rates.generations) {
      generation.memory *= factor;
    }
  }
  return made;
}

double elasticity(SimTime base, SimTime changed, double factor) {
  CHECK(base > SimTime() && changed > SimTime(), "an elasticity is of a time that passes");
  if (base == changed) {
    return 0.0;
  }
  return -std::log(changed / base) / std::log(factor);
}

}  // namespace trainyard
