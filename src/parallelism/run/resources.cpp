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

// Keys sort in the order in which they are shown.
using ResourceKey = std::tuple<ResourceKind, LinkKind, std::uint32_t>;

ResourceKey key_of(const Topology& topology, const SwitchGraph& graph, const Link& link) {
  if (link.spec.kind != LinkKind::Network) {
    return {ResourceKind::Links, link.spec.kind, 0};
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
    return {ResourceKind::Nic, kNoKind, 0};
  }
  return {ResourceKind::Tier, kNoKind, std::min(*from, *to)};
}

Resource named(const ResourceKey& key) {
  const auto [kind, links, tier] = key;
  Resource resource{.kind = kind};
  if (kind == ResourceKind::Tier) {
    resource.key = fmt::format("tier_{}", tier);
    resource.title = fmt::format("links of switches, tier {} and up", tier);
  } else {
    resource.key = kind == ResourceKind::Nic ? "nic" : std::string(to_string(links));
    resource.title = title_of(links);
  }
  return resource;
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
  }
}

void scale_kernel_latencies(nccl::Profile& profile, double factor) {
  for (auto& [name, gpu] : profile.gpus) {
    gpu.simple_cost = shorter(gpu.simple_cost, factor);
    gpu.ll128_cost = shorter(gpu.ll128_cost, factor);
    gpu.ll_cost = shorter(gpu.ll_cost, factor);
    if (gpu.nvls) {
      gpu.nvls->head_cost = shorter(gpu.nvls->head_cost, factor);
    }
  }
  for (auto& [name, network] : profile.networks) {
    network.latency = shorter(network.latency, factor);
    network.host_cost = shorter(network.host_cost, factor);
  }
  for (nccl::ProtocolTimes* const each : {&profile.nvlink, &profile.pcie, &profile.host}) {
    *each = shorter(*each, factor);
  }
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
  for (SimTime* const each :
       {&profile.per_channel, &profile.pat_base, &launch.process_per_gpu, &launch.shared_process,
        &launch.per_gpu, &launch.per_channel, &launch.graph, &machine.software.fixed}) {
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

LinkResources::LinkResources(const Topology& topology) {
  const SwitchGraph graph(topology);
  std::map<ResourceKey, std::pair<Bandwidth, Bandwidth>> found;  // Least and greatest rate.
  std::vector<ResourceKey> keys;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(LinkId(index));
    keys.push_back(key_of(topology, graph, link));
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
