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

using Variables = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kOneNode = "one node does not use NICs";
constexpr std::string_view kNoNics = "the GPUs have links of their own into the fabric";

FaultVariant setting(const std::string& name, const std::string& value) {
  return {.change = fmt::format("{}={}", name, value), .environment = {{name, value}}};
}

class FaultList {
 public:
  explicit FaultList(const HealthyJob& job) : job_(job) {}

  std::vector<MachineFault> all() && {
    faults_.push_back({.code = "healthy", .title = "healthy", .variants = {{.change = "nothing"}}});
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
  [[nodiscard]] std::size_t last_rank() const { return job_.cluster.gpus.size() - 1; }
  [[nodiscard]] NodeId last_gpu() const { return job_.cluster.gpus.back(); }

  void add(std::string code, std::string title, std::vector<FaultVariant> variants) {
    faults_.push_back(
        {.code = std::move(code), .title = std::move(title), .variants = std::move(variants)});
  }

  void leave_out(std::string code, std::string title, std::string_view why) {
    faults_.push_back({.code = std::move(code),
                       .title = std::move(title),
                       .variants = {},
                       .left_out = std::string(why)});
  }

  // Adds what-ifs of a variable of NCCL; one that the user set is left out.
  void add_setting(std::string code, std::string title, const std::string& variable,
                   const std::vector<std::string>& values) {
    if (const std::string* const value = job_.item.variable(variable)) {
      leave_out(std::move(code), std::move(title),
                fmt::format("{}={} is said of the run", variable, *value));
      return;
    }
    std::vector<FaultVariant> variants;
    for (const std::string& value : values) {
      variants.push_back(setting(variable, value));
    }
    add(std::move(code), std::move(title), std::move(variants));
  }

  [[nodiscard]] bool has_pcie(NodeId node) const {
    const Topology& topology = job_.cluster.topology;
    return std::ranges::any_of(topology.links_from(node), [&](LinkId link) {
      return topology.link(link).spec.kind == LinkKind::Pcie;
    });
  }

  // Adds the faults of the last rank's NIC: all are alike as far as anybody knows.
  void add_nic_faults() {
    const auto nic = nic_of_rank(job_.cluster, last_rank());
    if (job_.communicator.nodes == 1 || !nic) {
      for (const auto& [code, title] :
           {std::pair("nic-down", "a NIC is down"), std::pair("rail-down", "a rail is down"),
            std::pair("nic-pcie-x8", "PCIe of a NIC has half of its lanes"),
            std::pair("nic-numa", "a NIC is at the wrong NUMA node"),
            std::pair("gpudirect-off", "GPUDirect RDMA is off"),
            std::pair("sockets", "InfiniBand is off: sockets")}) {
        leave_out(code, title, job_.communicator.nodes == 1 ? kOneNode : kNoNics);
      }
      return;
    }
    add("nic-down", "a NIC is down",
        {{.change = fmt::format("{} without links", name(*nic)),
          .machine = [nic](const Cluster& whole) { return without_nodes(whole, {*nic}); }}});
    add_rail(*nic);
    add("nic-pcie-x8", "PCIe of a NIC has half of its lanes",
        {{.change = fmt::format("{} with half of its lanes of PCIe", name(*nic)),
          .machine = [nic](const Cluster& whole) {
            return with_half_lanes(whole, *nic, LinkKind::Pcie);
          }}});
    add_wrong_numa(*nic);
    add_gpudirect();
    add_sockets();
  }

  void add_rail(NodeId nic) {
    const std::size_t rank = last_rank();
    if (nics_of_rail(job_.cluster, rank).size() < 2) {
      leave_out("rail-down", "a rail is down", "no other node has such a NIC");
      return;
    }
    add("rail-down", "a rail is down",
        {{.change = fmt::format("{} and its like in every node without links", name(nic)),
          .machine = [rank](const Cluster& whole) {
            return without_nodes(whole, nics_of_rail(whole, rank));
          }}});
  }

  void add_wrong_numa(NodeId nic) {
    if (!with_nic_at_other_cpu(job_.cluster, nic)) {
      leave_out("nic-numa", "a NIC is at the wrong NUMA node", "nodes have one CPU");
      return;
    }
    add("nic-numa", "a NIC is at the wrong NUMA node",
        {{.change = fmt::format("{} at another CPU of its node", name(nic)),
          .machine = [nic](const Cluster& whole) { return *with_nic_at_other_cpu(whole, nic); }}});
  }

  void add_gpudirect() {
    if (job_.item.variable("NCCL_NET_GDR_LEVEL") != nullptr) {
      leave_out("gpudirect-off", "GPUDirect RDMA is off", "NCCL_NET_GDR_LEVEL is said of the run");
      return;
    }
    FaultVariant off = setting("NCCL_NET_GDR_LEVEL", "LOC");
    off.machine = [](const Cluster& whole) {
      return with_traits(whole, [](ServerTraits& traits) { traits.gpudirect = Distance::None; });
    };
    add("gpudirect-off", "GPUDirect RDMA is off", {off});
  }

  // Sockets copy through host memory.
  void add_sockets() {
    if (job_.machine.network == "socket") {
      leave_out("sockets", "InfiniBand is off: sockets", "the network is one of sockets");
      return;
    }
    FaultVariant sockets = setting("NCCL_NET", "Socket");
    sockets.machine = [](const Cluster& whole) {
      return with_traits(whole, [](ServerTraits& traits) { traits.gpudirect = Distance::None; });
    };
    add("sockets", "InfiniBand is off: sockets", {sockets});
  }

  void add_fabric_faults() {
    if (job_.communicator.nodes == 1 || !has_links_between_switches(job_.cluster)) {
      for (const auto& [code, title] :
           {std::pair("ecmp", "flows collide on uplinks (ECMP)"),
            std::pair("oversubscription", "the fabric is oversubscribed")}) {
        leave_out(code, title,
                  job_.communicator.nodes == 1 ? "one node does not use the fabric"
                                               : "no link of the fabric joins two switches");
      }
      return;
    }
    const RoutingPolicy policy = job_.cluster.routing.policy;
    if (traits(policy).keeps_shortest_path()) {
      std::vector<FaultVariant> seeds;
      for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        seeds.push_back({.change = fmt::format("ECMP with seed {}", seed + kFirstSeed),
                         .machine = [seed](const Cluster& whole) {
                           Cluster hashed = with_links(
                               whole, [](const Link& link) { return std::optional(link); });
                           hashed.routing.policy = RoutingPolicy::EcmpHash;
                           hashed.routing.seed = seed + kFirstSeed;
                           return hashed;
                         }});
      }
      add("ecmp", "flows collide on uplinks (ECMP)", seeds);
    } else {
      leave_out("ecmp", "flows collide on uplinks (ECMP)",
                fmt::format("the fabric routes with {}", to_string(policy)));
    }
    std::vector<FaultVariant> ratios;
    for (const int ratio : {2, 4}) {
      ratios.push_back(
          {.change = fmt::format("links between switches at 1/{} of their rate", ratio),
           .machine = [ratio](const Cluster& whole) {
             return with_slower_fabric(whole, 1.0 / ratio);
           }});
    }
    add("oversubscription", "the fabric is oversubscribed", ratios);
  }

  void add_server_faults() {
    const NodeId gpu = last_gpu();
    if (has_pcie(gpu)) {
      add("gpu-pcie-x8", "PCIe of a GPU has half of its lanes",
          {{.change = fmt::format("{} with half of its lanes of PCIe", name(gpu)),
            .machine = [gpu](const Cluster& whole) {
              return with_half_lanes(whole, gpu, LinkKind::Pcie);
            }}});
      add("pcie-generation", "PCIe is one generation lower",
          {{.change = "all of PCIe at half the rate", .machine = with_slower_pcie}});
    } else {
      leave_out("gpu-pcie-x8", "PCIe of a GPU has half of its lanes", "GPUs have no PCIe");
      leave_out("pcie-generation", "PCIe is one generation lower", "GPUs have no PCIe");
    }
    if (job_.machine.scale_up == "nvswitch" || job_.machine.scale_up == "nvlink") {
      add("nvlink-lanes", "half of the NVLinks of a GPU are down",
          {{.change = fmt::format("{} with half of its NVLinks", name(gpu)),
            .machine = [gpu](const Cluster& whole) {
              return with_half_lanes(whole, gpu, LinkKind::NvLink);
            }}});
    } else {
      leave_out("nvlink-lanes", "half of the NVLinks of a GPU are down",
                "GPUs are not joined by NVLink");
    }
    std::vector<FaultVariant> speeds;
    for (const double speed : {0.7, 0.5, 0.25}) {
      speeds.push_back(
          {.change = fmt::format("thread blocks at {:.0f} % of their speed", 100 * speed),
           .gpu_speed = speed});
    }
    add("slow-gpu", "a GPU is slow", speeds);
    add_peer_access();
  }

  void add_peer_access() {
    constexpr std::string_view kTitle = "peer access between GPUs is off";
    if (job_.communicator.max_ranks_per_node() < 2) {
      leave_out("p2p-off", std::string(kTitle), "nodes have one GPU");
      return;
    }
    const Topology& topology = job_.cluster.topology;
    const bool is_off = job_.item.variable("NCCL_P2P_DISABLE") != nullptr ||
                        job_.item.variable("NCCL_P2P_LEVEL") != nullptr;
    const bool is_staged = job_.machine.scale_up == "pcie" &&
                           topology.server(ServerId(0)).peer_access == Distance::None;
    if (is_off || is_staged) {
      leave_out("p2p-off", std::string(kTitle), "the machine or the run has it off");
      return;
    }
    FaultVariant off = setting("NCCL_P2P_DISABLE", "1");
    off.machine = without_peer_access;
    add("p2p-off", std::string(kTitle), {off});
  }

  void add_settings() {
    if (job_.communicator.nvls_channels > 0) {
      add_setting("nvls-off", "NVLS is off", "NCCL_NVLS_ENABLE", {"0"});
    } else {
      leave_out("nvls-off", "NVLS is off", "the machine or the run does not have it");
    }
    std::vector<std::string> fewer;
    for (int channels = 1; channels < job_.communicator.channels; channels *= 2) {
      fewer.push_back(std::to_string(channels));
    }
    if (fewer.empty()) {
      leave_out("few-channels", "NCCL has fewer channels", "there is only one");
    } else {
      add_setting("few-channels", "NCCL has fewer channels", "NCCL_MAX_NCHANNELS", fewer);
    }
    add_setting("protocol", "NCCL may not use all protocols", "NCCL_PROTO",
                {"LL,Simple", "Simple", "LL"});
    add_setting("algorithm", "NCCL may not use all algorithms", "NCCL_ALGO", {"Ring", "Tree"});
  }

  static constexpr std::uint64_t kSeeds = 3;
  // Other seeds than a cluster file is likely to have.
  static constexpr std::uint64_t kFirstSeed = 1000;

  const HealthyJob& job_;
  std::vector<MachineFault> faults_;
};

Bandwidth slower(Bandwidth rate, double speed) {
  return rate.scaled(speed);
}

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
    gpu.simple_rate = slower(gpu.simple_rate, speed);
    gpu.ll128_rate = slower(gpu.ll128_rate, speed);
    for (SimTime* const time : {&gpu.simple_cost, &gpu.ll128_cost, &gpu.ll_cost, &gpu.ll_pass}) {
      *time = longer(*time, speed);
    }
    if (gpu.nvls) {
      gpu.nvls->head_cost = longer(gpu.nvls->head_cost, speed);
    }
  }
  return slow;
}

}  // namespace trainyard
