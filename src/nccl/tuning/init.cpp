// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/init.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "nccl/machine/machine.h"
#include "nccl/machine/nic_devices.h"
#include "nccl/search/search.h"
#include "nccl/tuning/connect.h"
#include "nccl/tuning/nvls_channels.h"
#include "nccl/tuning/nvls_model.h"
#include "nccl/tuning/point_to_point.h"
#include "nccl/tuning/tuning.h"
#include "nccl/types/release.h"
#include "sim/config_error.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// --- Search ------------------------------------------------------------------------------------

SearchOptions search_options(const InitOptions& options, bool several_nodes) {
  const Environment& environment = options.environment;
  SearchOptions search;
  search.paths = environment;
  search.version = options.version;
  search.multi_node = several_nodes;
  if (environment.p2p_disable) {
    search.paths.p2p_level = PathType::Loc;
  }
  search.nvls = environment.nvls_enable != 0;
  search.collnet = environment.collnet_enable;
  search.merge_ports = merges_ports(environment, options.version);
  return search;
}

GraphNames names_of(const Machine& machine, bool several_nodes) {
  const System& system = machine.system();
  GraphNames names;
  names.several_nodes = several_nodes;
  names.gpus.resize(system.gpus.size());
  for (const SystemGpu& gpu : system.gpus) {
    names.gpus[as_index(gpu.rank)] = graph_device(gpu.host, gpu.dev);
  }
  // Numbers of NICs go on from host to host; a file counts on each host from zero.
  std::vector<int> first_nic(as_index(system.hosts), std::numeric_limits<int>::max());
  for (const SystemNet& net : system.nets) {
    int& first = first_nic[as_index(net.host)];
    first = net.host == 0 ? 0 : std::min(first, net.dev);
  }
  for (const SystemNet& net : system.nets) {
    names.nics[net.dev] = graph_device(net.host, net.dev - first_nic[as_index(net.host)]);
  }
  return names;
}

class Init {
 public:
  Init(const JobNodes& nodes, const InitOptions& options, SearchMemory* searches)
      : nodes_(nodes), options_(options), searches_(searches) {}

  InitResult run() {
    made_.version = options_.version;
    apply_software();
    made_.remarks = options_.environment.remarks;
    made_.ranks = nodes_.first_rank.back();
    if (made_.ranks < 2) {
      throw ConfigError(
          fmt::format("a communicator: expected at least two ranks, found {}", made_.ranks));
    }
    search();
    lay_out();
    use_graph_file();
    InitResult result;
    const Environment& environment = options_.environment;
    connect(made_, {.min = std::max(environment.min_channels, environment.min_ctas),
                    .max = std::min(environment.max_channels, environment.max_ctas)});
    if (made_.aligned.nvls.exists()) {
      set_up_nvls(made_, options_.environment);
    }
    remark_assumptions();
    made_.tuning = make_tuning_table(made_, options_.environment);
    set_up_point_to_point(made_, peers(), options_.environment);
    result.names = names_of(parts_.front().front().machine, made_.nodes > 1);
    for (std::vector<SearchedNode>& parts : parts_) {
      for (SearchedNode& part : parts) {
        result.machines.push_back(std::move(part.machine));
      }
    }
    result.communicator = std::move(made_);
    return result;
  }

 private:
  // Several nodes have what the network plugin sets, unless the user does.
  void apply_software() {
    if (nodes_.software != nullptr && nodes_.kind.size() > 1) {
      nodes_.software->apply(options_.environment);
      made_.simple_buffer = options_.environment.simple_buffer;
    }
  }

  void search() {
    SearchOptions search = search_options(options_, nodes_.kind.size() > 1);
    search.paths.net_disable_intra = search.paths.net_disable_intra || nodes_.unplugged;
    for (const std::vector<NcclSystem>& files : nodes_.kinds) {
      parts_.push_back(searches_ != nullptr ? searches_->nodes(files, search)
                                            : search_nodes(files, search));
    }
  }

  // Nodes as NCCL counts, and their graphs.
  void lay_out() {
    std::vector<std::vector<int>> kind_of;
    for (const std::vector<SearchedNode>& parts : parts_) {
      kind_of.emplace_back();
      for (const SearchedNode& part : parts) {
        kind_of.back().push_back(static_cast<int>(made_.graphs.size()));
        made_.graphs.push_back(part.graphs);
      }
    }
    made_.nodes = 0;
    for (std::size_t node = 0; node < nodes_.kind.size(); ++node) {
      const std::size_t kind = as_index(nodes_.kind[node]);
      int next = 0;
      for (std::size_t part = 0; part < parts_[kind].size(); ++part) {
        const std::vector<int>& ranks = parts_[kind][part].ranks;
        if (ranks.front() != next ||
            ranks.back() - ranks.front() + 1 != static_cast<int>(ranks.size())) {
          throw ConfigError(
              "the server: expected GPUs that NCCL takes for one node side by side, found others "
              "between them; NCCL_NET_DISABLE_INTRA=1 makes one node of the server");
        }
        next = ranks.back() + 1;
        made_.first_rank.push_back(nodes_.first_rank[node] + ranks.front());
        made_.node_kind.push_back(kind_of[kind][part]);
        ++made_.nodes;
      }
    }
    made_.first_rank.push_back(made_.ranks);
    made_.cpu = cpu();
    made_.min_compute_capability = std::numeric_limits<int>::max();
    made_.has_nvswitch = true;
    for_each_machine([&](const Machine& machine) {
      for (const SystemGpu& gpu : machine.system().gpus) {
        const int capability = gpu.generation->compute_capability;
        made_.min_compute_capability = std::min(made_.min_compute_capability, capability);
        made_.max_compute_capability = std::max(made_.max_compute_capability, capability);
      }
      made_.has_nvswitch = made_.has_nvswitch && machine.system().nvswitch.has_value();
    });
  }

  // Instead of what the search found.
  void use_graph_file() {
    if (!options_.graph_text) {
      return;
    }
    std::size_t kind = 0;
    for (const std::vector<SearchedNode>& parts : parts_) {
      for (const SearchedNode& part : parts) {
        const GraphSet file = read_graph_xml(*options_.graph_text, options_.graph_name,
                                             names_of(part.machine, made_.nodes > 1));
        GraphSet& graphs = made_.graphs[kind++];
        choose(graphs.ring, file.ring, "ring");
        choose(graphs.tree, file.tree, "tree");
        choose(graphs.nvls, file.nvls, "NVLS");
        choose(graphs.collnet_chain, file.collnet_chain, "CollNet chain");
        choose(graphs.collnet_direct, file.collnet_direct, "CollNet direct");
      }
    }
    if (made_.graphs.size() > 1) {
      remark("the graph file is used on every node, as if each read it");
    }
  }

  void choose(Graph& graph, const Graph& file, std::string_view name) {
    if (!file.exists()) {
      return;
    }
    if (!graph.exists()) {
      remark(fmt::format("the graph file's {} is of no use here: the nodes cannot do it", name));
    } else if (file.cross_nic == 1 && options_.environment.cross_nic == 0) {
      remark(
          fmt::format("the graph file's {} crosses NICs, which NCCL_CROSS_NIC=0 forbids: it was "
                      "searched for",
                      name));
    } else {
      graph = file;
    }
  }

  void remark(std::string text) {
    if (std::find(made_.remarks.begin(), made_.remarks.end(), text) == made_.remarks.end()) {
      made_.remarks.push_back(std::move(text));
    }
  }

  template <typename Visit>
  void for_each_machine(Visit visit) const {
    for (const std::vector<SearchedNode>& parts : parts_) {
      for (const SearchedNode& part : parts) {
        visit(part.machine);
      }
    }
  }

  // --- Cost model ------------------------------------------------------------------------------

  [[nodiscard]] CpuKind cpu() const {
    std::optional<CpuKind> all;
    for_each_machine([&](const Machine& machine) {
      for (const SystemCpu& cpu : machine.system().cpus) {
        const CpuKind kind = kind_of(cpu);
        all = !all || *all == kind ? kind : CpuKind::Mixed;
      }
    });
    return all.value_or(CpuKind::Intel);
  }

  static CpuKind kind_of(const SystemCpu& cpu) {
    return cpu.arch == CpuArch::Arm           ? CpuKind::Arm
           : cpu.arch == CpuArch::Power       ? CpuKind::Power
           : cpu.vendor == CpuVendor::Amd     ? CpuKind::Amd
           : cpu.vendor == CpuVendor::Zhaoxin ? CpuKind::Zhaoxin
                                              : CpuKind::Intel;
  }

  // Notes the assumptions about what no topology file tells.
  void remark_assumptions() {
    if (made_.aligned.nvls.exists() && options_.environment.nvls_enable == 2) {
      remark(
          "NVLS is planned as if the driver offered multicast memory; --env NCCL_NVLS_ENABLE=0 "
          "plans without");
    }
    if (made_.aligned.nvls.exists() && made_.nodes > 1 &&
        !joins_by_nvls_tree(made_, options_.environment)) {
      remark(
          "NVLSTree is not planned between NVLink domains of more than 32 GPUs, where measured "
          "times are those of trees and rings; --env NCCL_NVLS_ENABLE=1 plans it");
    }
    if (made_.aligned.collnet_chain.exists()) {
      remark("CollNet is planned as if switches and network plugin could reduce");
    }
  }

  // --- Sends and receives ----------------------------------------------------------------------

  [[nodiscard]] std::vector<PeerPath> peers() const {
    std::vector<PeerPath> peers;
    for_each_machine([&](const Machine& machine) {
      for (int from = 0; from < machine.gpu_count(); ++from) {
        for (int to = 0; to < machine.gpu_count(); ++to) {
          if (from != to) {
            peers.push_back(path_inside(machine, from, to));
          }
        }
        if (made_.nodes > 1) {
          peers.push_back(path_to_network(machine, from));
        }
      }
    });
    return peers;
  }

  static PeerPath path_inside(const Machine& machine, int from, int to) {
    const Path& path = machine.paths().gpu_gpu.at(from, to);
    // Two ranks of one GPU are nearer still than NVLink.
    if (path.type > PathType::Nvb) {
      return {.kind = PeerPath::Kind::Pcie};
    }
    const SystemGpu& gpu = machine.system().gpus[as_index(from)];
    return {.kind = PeerPath::Kind::NvLink,
            .bandwidth = static_cast<double>(path.bandwidth),
            .link_bandwidth =
                static_cast<double>(nvlink_bandwidth(machine.options().version, *gpu.generation))};
  }

  static PeerPath path_to_network(const Machine& machine, int gpu) {
    const std::vector<int> nets = machine.nearest_nets(gpu);
    double bandwidth = 0.0;
    for (const int net : nets) {
      bandwidth += static_cast<double>(machine.system().nets[as_index(net)].bandwidth);
    }
    return {.kind = PeerPath::Kind::Network,
            .bandwidth = bandwidth,
            .nics = static_cast<int>(nets.size())};
  }

  const JobNodes& nodes_;
  InitOptions options_;
  SearchMemory* searches_;
  std::vector<std::vector<SearchedNode>> parts_;  // Parts by kind of JobNodes.
  Communicator made_;
};

}  // namespace

InitResult make_communicator(const JobNodes& nodes, const InitOptions& options,
                             SearchMemory* searches) {
  return Init(nodes, options, searches).run();
}

}  // namespace trainyard::nccl
