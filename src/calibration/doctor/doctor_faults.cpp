// SPDX-License-Identifier: Apache-2.0
#include "calibration/doctor/doctor_faults.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "calibration/doctor/doctor_machine.h"
#include "sim/config_error.h"
#include "topology/cluster/reach.h"

namespace trainyard {
namespace {

using Variants = std::vector<FaultVariant>;
using MachineChange = std::function<Cluster(const Cluster&)>;

Variants setting(const std::string& name, const std::string& value, MachineChange machine = {}) {
  return {{.change = fmt::format("{}={}", name, value),
           .environment = {{name, value}},
           .machine = std::move(machine)}};
}

Cluster without_gpudirect(const Cluster& whole) {
  return with_traits(whole, [](ServerTraits& traits) { traits.gpudirect = Distance::None; });
}

MachineChange half_of_lanes(NodeId node, LinkKind kind) {
  return [=](const Cluster& whole) { return with_half_lanes(whole, node, kind); };
}

class FaultList {
 public:
  explicit FaultList(const HealthyJob& job) : job_(job) {}

  std::vector<MachineFault> all() && {
    add("healthy", "healthy", "", [] { return Variants{{.change = "nothing"}}; });
    add_nic_faults();
    add_fabric_faults();
    add_server_faults();
    add_settings();
    return std::move(faults_);
  }

 private:
  [[nodiscard]] const std::string& name(NodeId node) const {
    return job_.cluster.topology.node(node).name;
  }

  // Adds a fault with what `variants` makes; with a reason why it makes no sense here, it is left
  // out.
  template <typename Make>
  void add(std::string_view code, std::string_view title, std::string_view left_out,
           const Make& variants) {
    faults_.push_back({.code = std::string(code),
                       .title = std::string(title),
                       .variants = left_out.empty() ? variants() : Variants{},
                       .left_out = std::string(left_out)});
  }

  // Adds what-ifs of a variable of NCCL; one that the user set is left out.
  void add_setting(std::string_view code, std::string_view title, std::string_view left_out,
                   const std::string& variable, const std::vector<std::string>& values) {
    const std::string* const given = job_.item.variable(variable);
    const std::string said =
        given != nullptr ? fmt::format("{}={} is said of the run", variable, *given) : "";
    add(code, title, left_out.empty() ? said : left_out, [&] {
      Variants variants;
      for (const std::string& value : values) {
        variants.push_back(setting(variable, value).front());
      }
      return variants;
    });
  }

  [[nodiscard]] bool has_pcie(NodeId node) const {
    const Topology& topology = job_.cluster.topology;
    return std::ranges::any_of(topology.links_from(node), [&](LinkId link) {
      return topology.link(link).spec.kind == LinkKind::Pcie;
    });
  }

  // Adds the faults of the last rank's NIC: all are alike as far as anybody knows.
  void add_nic_faults() {
    const Cluster& cluster = job_.cluster;
    const std::size_t rank = cluster.gpus.size() - 1;
    const auto of_rank = nic_of_rank(cluster, rank);
    const std::string_view none = job_.communicator.nodes == 1 ? "one node does not use NICs"
                                  : !of_rank ? "the GPUs have links of their own into the fabric"
                                             : "";
    const NodeId nic = of_rank.value_or(NodeId(0));
    add("nic-down", "a NIC is down", none, [&] {
      return Variants{
          {.change = fmt::format("{} without links", name(nic)),
           .machine = [nic](const Cluster& whole) { return without_nodes(whole, {nic}); }}};
    });
    const bool has_rail = none.empty() && nics_of_rail(cluster, rank).size() >= 2;
    add("rail-down", "a rail is down",
        none.empty() && !has_rail ? "no other node has such a NIC" : none, [&] {
          return Variants{
              {.change = fmt::format("{} and its like in every node without links", name(nic)),
               .machine = [rank](const Cluster& whole) {
                 return without_nodes(whole, nics_of_rail(whole, rank));
               }}};
        });
    add("nic-pcie-x8", "PCIe of a NIC has half of its lanes", none, [&] {
      return Variants{{.change = fmt::format("{} with half of its lanes of PCIe", name(nic)),
                       .machine = half_of_lanes(nic, LinkKind::Pcie)}};
    });
    const bool has_cpus = none.empty() && with_nic_at_other_cpu(cluster, nic);
    add("nic-numa", "a NIC is at the wrong NUMA node",
        none.empty() && !has_cpus ? "nodes have one CPU" : none, [&] {
          return Variants{{.change = fmt::format("{} at another CPU of its node", name(nic)),
                           .machine = [nic](const Cluster& whole) {
                             return *with_nic_at_other_cpu(whole, nic);
                           }}};
        });
    const bool is_said = job_.item.variable("NCCL_NET_GDR_LEVEL") != nullptr;
    add("gpudirect-off", "GPUDirect RDMA is off",
        none.empty() && is_said ? "NCCL_NET_GDR_LEVEL is said of the run" : none,
        [] { return setting("NCCL_NET_GDR_LEVEL", "LOC", without_gpudirect); });
    // Sockets copy through host memory.
    const std::string& network = job_.machine.network;
    const bool has_sockets = network == "socket" || network.ends_with("-tcp");
    add("sockets", "InfiniBand is off: sockets",
        none.empty() && has_sockets ? "the network is one of sockets" : none,
        [] { return setting("NCCL_NET", "Socket", without_gpudirect); });
  }

  void add_fabric_faults() {
    const std::string_view none = job_.communicator.nodes == 1 ? "one node does not use the fabric"
                                  : !has_links_between_switches(job_.cluster)
                                      ? "no link of the fabric joins two switches"
                                      : "";
    const RoutingPolicy policy = job_.cluster.routing.policy;
    const std::string routed = traits(policy).keeps_shortest_path()
                                   ? ""
                                   : fmt::format("the fabric routes with {}", to_string(policy));
    add("ecmp", "flows collide on uplinks (ECMP)", none.empty() ? routed : none, [] {
      Variants seeds;
      for (std::uint64_t seed = kFirstSeed + 1; seed <= kFirstSeed + kSeeds; ++seed) {
        seeds.push_back({.change = fmt::format("ECMP with seed {}", seed),
                         .machine = [seed](const Cluster& whole) {
                           Cluster hashed = with_links(
                               whole, [](const Link& link) { return std::optional(link); });
                           hashed.routing.policy = RoutingPolicy::EcmpHash;
                           hashed.routing.seed = seed;
                           return hashed;
                         }});
      }
      return seeds;
    });
    add("oversubscription", "the fabric is oversubscribed", none, [] {
      Variants ratios;
      for (const int ratio : {2, 4}) {
        ratios.push_back(
            {.change = fmt::format("links between switches at 1/{} of their rate", ratio),
             .machine = [ratio](const Cluster& whole) {
               return with_slower_fabric(whole, 1.0 / ratio);
             }});
      }
      return ratios;
    });
  }

  void add_server_faults() {
    const NodeId gpu = job_.cluster.gpus.back();
    const std::string_view no_pcie = has_pcie(gpu) ? "" : "GPUs have no PCIe";
    add("gpu-pcie-x8", "PCIe of a GPU has half of its lanes", no_pcie, [&] {
      return Variants{{.change = fmt::format("{} with half of its lanes of PCIe", name(gpu)),
                       .machine = half_of_lanes(gpu, LinkKind::Pcie)}};
    });
    add("pcie-generation", "PCIe is one generation lower", no_pcie, [] {
      return Variants{{.change = "all of PCIe at half the rate", .machine = with_slower_pcie}};
    });
    const std::string& scale_up = job_.machine.scale_up;
    add("nvlink-lanes", "half of the NVLinks of a GPU are down",
        scale_up.starts_with("nv") ? "" : "GPUs are not joined by NVLink", [&] {
          return Variants{{.change = fmt::format("{} with half of its NVLinks", name(gpu)),
                           .machine = half_of_lanes(gpu, LinkKind::NvLink)}};
        });
    add("slow-gpu", "a GPU is slow", "", [] {
      Variants speeds;
      for (const double speed : {0.7, 0.5, 0.25}) {
        speeds.push_back(
            {.change = fmt::format("thread blocks at {:.0f} % of their speed", 100 * speed),
             .gpu_speed = speed});
      }
      return speeds;
    });
    const bool is_off = job_.item.variable("NCCL_P2P_DISABLE") != nullptr ||
                        job_.item.variable("NCCL_P2P_LEVEL") != nullptr;
    const bool is_staged = scale_up == "pcie" &&
                           job_.cluster.topology.server(ServerId(0)).peer_access == Distance::None;
    add("p2p-off", "peer access between GPUs is off",
        job_.communicator.max_ranks_per_node() < 2 ? "nodes have one GPU"
        : is_off || is_staged                      ? "the machine or the run has it off"
                                                   : "",
        [] { return setting("NCCL_P2P_DISABLE", "1", without_peer_access); });
  }

  void add_settings() {
    const nccl::Communicator& communicator = job_.communicator;
    add_setting("nvls-off", "NVLS is off",
                communicator.nvls_channels > 0 ? "" : "the machine or the run does not have it",
                "NCCL_NVLS_ENABLE", {"0"});
    std::vector<std::string> fewer;
    for (int channels = 1; channels < communicator.channels; channels *= 2) {
      fewer.push_back(std::to_string(channels));
    }
    add_setting("few-channels", "NCCL has fewer channels", fewer.empty() ? "there is only one" : "",
                "NCCL_MAX_NCHANNELS", fewer);
    add_setting("protocol", "NCCL may not use all protocols", "", "NCCL_PROTO",
                {"LL,Simple", "Simple", "LL"});
    add_setting("algorithm", "NCCL may not use all algorithms", "", "NCCL_ALGO", {"Ring", "Tree"});
  }

  static constexpr std::uint64_t kSeeds = 3;
  // Other seeds than a cluster file is likely to have.
  static constexpr std::uint64_t kFirstSeed = 1000;

  const HealthyJob& job_;
  std::vector<MachineFault> faults_;
};

SimTime longer(SimTime time, double speed) {
  return SimTime(std::llround(static_cast<double>(time.picoseconds()) / speed));
}

}  // namespace

std::vector<MachineFault> faults_of(const HealthyJob& job) {
  return FaultList(job).all();
}

nccl::Profile with_gpu_speed(const nccl::Profile& profile, double speed) {
  nccl::Profile slow = profile;
  for (auto& [name, gpu] : slow.gpus) {
    gpu.simple_rate = gpu.simple_rate.scaled(speed);
    gpu.ll128_rate = gpu.ll128_rate.scaled(speed);
    for (SimTime* const time :
         {&gpu.simple_cost, &gpu.ll128_cost, &gpu.ll_cost, &gpu.ll_busy, &gpu.ll_pass}) {
      *time = longer(*time, speed);
    }
    if (gpu.nvls) {
      gpu.nvls->head_cost = longer(gpu.nvls->head_cost, speed);
    }
  }
  return slow;
}

}  // namespace trainyard
