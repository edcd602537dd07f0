// SPDX-License-Identifier: Apache-2.0
#include "nccl/search/rccl_topologies.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "nccl/types/release.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

using Names = std::span<const std::string_view>;

struct KnownTopology {
  Names neighbours;  // The GPUs that xGMI joins each GPU to.
  int nets = 0;
  Names rings;         // Orders of GPUs.
  int copies = 1;      // So often all rings, one behind the other.
  bool turns = false;  // Each copy begins one ring later than the one before.
  int tuning_model = 0;
  bool has_msccl = false;
};

// Eight GPUs, each with a link to every other one: MI300X, MI325X, MI350X and MI355X.
constexpr std::array<std::string_view, 8> kMesh{"1234567", "0234567", "0134567", "0124567",
                                                "0123567", "0123467", "0123457", "0123456"};
// rome_model_79: seven ways through all GPUs, each in both directions.
constexpr std::array<std::string_view, 14> kMeshRings{
    "01234567", "01234576", "02413657", "02461735", "03152746", "03516274", "04173625",
    "76543210", "67543210", "75631420", "53716420", "64725130", "47261530", "52637140"};
// rome_model_81: each leaves by another GPU's NIC.
constexpr std::array<std::string_view, 8> kMeshRails{
    "01234567", "10243576", "25036174", "37042165", "46273051", "54713260", "63140752", "72064153"};

// Four MI250X, two dies each, as in the servers of Frontier and LUMI: rome_model_62 and 63.
constexpr std::array<std::string_view, 8> kBlade{"126", "035", "034", "127",
                                                 "256", "147", "047", "356"};
constexpr std::array<std::string_view, 4> kBladeRings{"01324576", "67542310", "01546732",
                                                      "23764510"};
constexpr std::array<std::string_view, 4> kBladeRails{"01546732", "23764510", "76013245",
                                                      "54231067"};

constexpr std::array kTopologies{
    KnownTopology{.neighbours = kMesh,
                  .rings = kMeshRings,
                  .copies = 2,
                  .tuning_model = 5,
                  .has_msccl = true},
    KnownTopology{.neighbours = kMesh,
                  .nets = 8,
                  .rings = kMeshRails,
                  .copies = 8,
                  .turns = true,
                  .tuning_model = 5},
    KnownTopology{.neighbours = kBlade, .rings = kBladeRings},
    KnownTopology{
        .neighbours = kBlade, .nets = 4, .rings = kBladeRails, .copies = 2, .tuning_model = 3}};

// GPUs of a letter each, in the order of their ranks.
std::string neighbours_of(const System& system, const SystemGpu& gpu) {
  std::string names;
  for (const SystemGpu& other : system.gpus) {
    for (const int index : system.vertices[as_index(gpu.device)].edges) {
      const Edge& edge = system.edges[as_index(index)];
      if (edge.kind == EdgeKind::Nvl && edge.to == other.device) {
        names += static_cast<char>('0' + other.rank);
      }
    }
  }
  std::ranges::sort(names);
  return names;
}

bool fits(const KnownTopology& known, const Machine& machine) {
  const System& system = machine.system();
  return known.neighbours.size() == system.gpus.size() && known.nets == machine.net_count() &&
         std::ranges::all_of(system.gpus, [&](const SystemGpu& gpu) {
           return neighbours_of(system, gpu) == known.neighbours[as_index(gpu.rank)];
         });
}

// All links of the GPU that has most.
double total_bandwidth(const System& system) {
  double most = 0.0;
  for (const SystemGpu& gpu : system.gpus) {
    double sum = 0.0;
    for (const int index : system.vertices[as_index(gpu.device)].edges) {
      const Edge& edge = system.edges[as_index(index)];
      sum += edge.kind == EdgeKind::Nvl ? static_cast<double>(edge.bandwidth) : 0.0;
    }
    most = std::max(most, sum);
  }
  return most;
}

// The own NIC of a GPU of this rank.
std::optional<int> nic_of(const Machine& machine, int rank) {
  const System& system = machine.system();
  const auto gpu = std::ranges::find(system.gpus, rank, &SystemGpu::rank);
  const std::optional<int> net = machine.net_of(static_cast<int>(gpu - system.gpus.begin()), 0);
  return net ? std::optional(system.nets[as_index(*net)].dev) : std::nullopt;
}

Graph graph_of(const KnownTopology& known, const Machine& machine) {
  Graph graph;
  const std::size_t rings = known.rings.size();
  for (std::size_t copy = 0; copy < as_index(known.copies); ++copy) {
    for (std::size_t i = 0; i < rings; ++i) {
      GraphChannel channel;
      for (const char gpu : known.rings[known.turns ? (i + copy) % rings : i]) {
        channel.gpus.push_back(gpu - '0');
      }
      channel.net_in = nic_of(machine, channel.gpus.front());
      channel.net_out = nic_of(machine, channel.gpus.back());
      graph.channels.push_back(std::move(channel));
    }
  }
  graph.channel_count = static_cast<int>(graph.channels.size());
  graph.bw_intra = graph.bw_inter = total_bandwidth(machine.system()) / graph.channel_count;
  graph.type_intra = PathType::Nvl;
  graph.type_inter = PathType::Pix;
  return graph;
}

}  // namespace

std::optional<GraphSet> known_graphs(const Machine& machine) {
  if (!release(machine.options().version, machine.system().oldest()).knows_topologies) {
    return std::nullopt;
  }
  const auto* const known = std::ranges::find_if(
      kTopologies, [&](const KnownTopology& one) { return fits(one, machine); });
  if (known == kTopologies.end()) {
    return std::nullopt;
  }
  GraphSet graphs;
  graphs.ring = graph_of(*known, machine);
  graphs.tree = graphs.ring;
  graphs.tree.pattern = GraphPattern::BalancedTree;
  const bool is_cdna4 = machine.system().oldest().gcn == "gfx950";
  graphs.rccl_model = known->tuning_model == 5 && is_cdna4 ? 6 : known->tuning_model;
  graphs.has_msccl = known->has_msccl;
  graphs.alternates = known->nets > 0;
  return graphs;
}

}  // namespace trainyard::nccl
