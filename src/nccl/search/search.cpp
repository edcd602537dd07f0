// SPDX-License-Identifier: Apache-2.0
#include "nccl/search/search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "nccl/search/channel_search.h"
#include "nccl/search/rccl_topologies.h"
#include "nccl/types/release.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// Visits of GPUs: of one try, and of one whose channels are all alike.
constexpr int kBudget = 1 << 14;
constexpr int kBudgetSameChannels = 1 << 8;

constexpr int kMaxNvlsHeads = 32;    // NCCL_MAX_NVLS_ARITY.
constexpr int kMaxCollNetHeads = 8;  // NCCL_MAX_DIRECT_ARITY + 1.

struct TypeRange {
  PathType min;
  PathType max;
};

// Returns the range of the paths from every GPU to every other one, or to every NIC.
TypeRange type_range(const PathTable& table, int gpus, bool skip_self) {
  TypeRange range{PathType::Sys, PathType::Loc};
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (int target = 0; target < table.targets(); ++target) {
      if (!skip_self || gpu != target) {
        range.min = std::min(range.min, table.at(gpu, target).type);
        range.max = std::max(range.max, table.at(gpu, target).type);
      }
    }
  }
  return range;
}

// Passes over the types that the release does not have.
PathType next_type(PathType type, NicsOverC2c rule) {
  const auto next = static_cast<PathType>(static_cast<int>(type) + 1);
  const bool is_unknown = (next == PathType::C2c && rule == NicsOverC2c::Far) ||
                          (next == PathType::P2c && rule != NicsOverC2c::Near);
  return is_unknown ? next_type(next, rule) : next;
}

// Two groups of GPUs on NVLink with something slower in between (ncclTopoSplitNvLink).
bool is_split_nvlink(const Machine& machine) {
  const auto gpus = as_index(machine.gpu_count());
  std::vector<std::size_t> domain(gpus);
  std::iota(domain.begin(), domain.end(), std::size_t{0});
  for (std::size_t gpu = 0; gpu < gpus; ++gpu) {
    for (std::size_t peer = gpu + 1; peer < gpus; ++peer) {
      if (machine.paths().gpu_gpu.at(static_cast<int>(gpu), static_cast<int>(peer)).type ==
          PathType::Nvl) {
        domain[peer] = domain[gpu];
      }
    }
  }
  std::vector<int> members(gpus, 0);
  for (const std::size_t one : domain) {
    ++members[one];
  }
  return std::count_if(members.begin(), members.end(), [](int count) { return count > 1; }) == 2;
}

// Bandwidths that bound the search (ncclTopoSearchInit).
struct Bounds {
  float one = 0.0F;    // Bandwidth of one channel.
  float total = 0.0F;  // Bandwidth of all channels of one GPU.
};

Bounds find_bounds(const Machine& machine) {
  const System& system = machine.system();
  if (machine.net_count() == 0 && machine.gpu_count() == 1) {
    return {kLocalBandwidth, kLocalBandwidth};
  }
  Bounds bounds;
  const bool by_net = machine.net_count() > 0;
  const PathTable& table = by_net ? machine.paths().gpu_net : machine.paths().gpu_gpu;
  const Release& rules = release(machine.options().version, machine.system().oldest());
  const float link = nvlink_bandwidth(machine.options().version, system.oldest());
  for (int gpu = 0; gpu < machine.gpu_count(); ++gpu) {
    for (int target = 0; target < table.targets(); ++target) {
      const Path& path = table.at(gpu, target);
      if (!path.edges.empty()) {
        const bool one_link = rules.channel_has_one_nvlink && path.type == PathType::Nvl;
        bounds.one =
            std::max(bounds.one, one_link ? std::min(link, path.bandwidth) : path.bandwidth);
      }
    }
    float nvlink = 0.0F;
    float pci = 0.0F;
    const int device = system.gpus[as_index(gpu)].device;
    for (const int index : system.vertices[as_index(device)].edges) {
      const Edge& edge = system.edges[as_index(index)];
      nvlink += edge.kind == EdgeKind::Nvl ? edge.bandwidth : 0.0F;
      pci = edge.kind == EdgeKind::Pci ? edge.bandwidth : pci;
    }
    bounds.total = std::max({bounds.total, nvlink, pci});
  }
  return bounds;
}

class GraphSearch {
 public:
  GraphSearch(const Machine& machine, ChannelSearch& channels, const Bounds& bounds)
      : machine_(machine),
        channels_(channels),
        bounds_(bounds),
        gpus_(machine.gpu_count()),
        has_nets_(machine.net_count() > 0),
        generation_(machine.system().oldest()),
        rules_(release(machine.options().version, machine.system().oldest())),
        speeds_(search_speeds(machine.options().version, generation_, has_nets_)) {}

  // `request` has what is asked for: pattern, collnet, numbers of channels.
  Candidate search(const Candidate& request) {
    prepare(request);
    bool is_first_pass = true;
    for (;;) {
      int budget = try_.same_channels ? kBudgetSameChannels : kBudget;
      budget_ -= budget;
      budget = channels_.run(try_, best_, budget);
      if (is_first_pass) {
        if (!is_optimal(budget) && relax(budget)) {
          continue;
        }
        is_first_pass = false;
        if (!rules_.doubles_last) {
          duplicate();
        }
        start_raising();
        budget = -1;
      }
      if (budget == 0 || speed_ == 0 || !raise()) {
        break;
      }
    }
    if (best_.channels == 0 && !best_.collnet && best_.pattern != GraphPattern::Nvls) {
      fall_back();
    }
    if (rules_.doubles_last) {
      duplicate();
    }
    return best_;
  }

 private:
  void prepare(const Candidate& request) {
    best_ = request;
    const bool may_cross = rules_.crosses_trees || request.pattern == GraphPattern::Ring ||
                           request.pattern == GraphPattern::BalancedTree ||
                           request.pattern == GraphPattern::SplitTree;
    cross_nic_ = machine_.net_count() > 1 && may_cross ? machine_.options().paths.cross_nic : 0;
    best_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    find_types();
    best_.type_intra = intra_.min;
    best_.type_inter = inter_.min;
    try_same_ = request.pattern != GraphPattern::Nvls;
    best_.same_channels = try_same_;
    if (gpus_ == 1 && request.pattern != GraphPattern::Ring) {
      best_.pattern = GraphPattern::Tree;
    }
    if (request.pattern == GraphPattern::Nvls && !has_nets_) {
      best_.min_channels = best_.max_channels;  // Every GPU reduces an equal share.
    }
    if (rules_.rings_need_two && request.pattern == GraphPattern::Ring &&
        is_split_nvlink(machine_) && best_.max_channels >= 2 && best_.min_channels == 1) {
      best_.min_channels = 2;  // The trees, of which there are as many, need two.
    }
    try_ = best_;
    total_ = bounds_.total;
    const auto devices = static_cast<double>(machine_.system().devices.size());
    if (devices > 1 && best_.pattern != GraphPattern::Ring) {
      // The last GPU of a chain sends nothing.
      total_ = static_cast<float>(total_ * (devices / (devices - 1)));
    }
    speed_ = 0;
    const auto min = static_cast<float>(best_.min_channels);
    while (speed_ + 1 < speeds_.size() &&
           (speeds_[speed_] > bounds_.one ||
            (rules_.bounds_channels_by_gpu && speeds_[speed_] * min > total_))) {
      ++speed_;
    }
    try_.bw_intra = try_.bw_inter = speeds_[speed_];
    budget_ = rules_.search_budget;
  }

  void find_types() {
    const bool is_fixed = !rules_.bounds_types;
    intra_ = {is_fixed && gpus_ > 1 ? PathType::Nvl : PathType::Loc, PathType::Sys};
    inter_ = {PathType::Pix, PathType::Sys};
    if (is_fixed) {
      return;
    }
    if (gpus_ > 1) {
      intra_ = type_range(machine_.paths().gpu_gpu, gpus_, true);
    }
    if (has_nets_) {
      inter_ = type_range(machine_.paths().gpu_net, gpus_, false);
      if (generation_.searches_all_nic_paths) {
        inter_.max = PathType::Sys;
      }
    }
  }

  [[nodiscard]] bool is_optimal(int budget) const {
    return budget == -1 || static_cast<float>(best_.channels) * best_.bw_inter >= bounds_.total;
  }

  // Asks for less; false if there is nothing less to be asked for, or it is not worth it.
  bool relax(int budget) {
    const SystemCpu& cpu = machine_.system().cpus.front();
    const bool alike = rules_.keeps_channels_alike_on_amd && cpu.vendor == CpuVendor::Amd &&
                       try_.type_intra == PathType::Sys;
    if (try_.same_channels && !alike) {
      try_.same_channels = false;
      return true;
    }
    try_.same_channels = try_same_;
    budget_ += budget;
    if (budget_ < 0 && best_.channels > 0) {
      return false;
    }
    if (generation_.tries_tree_after_balanced && rules_.tries_tree_after_balanced &&
        try_.pattern == GraphPattern::BalancedTree) {
      try_.pattern = GraphPattern::Tree;
      return true;
    }
    // A simple tree that was found is not looked for in another way again.
    try_.pattern = best_.pattern;
    if (relax_types()) {
      return true;
    }
    if (cross_nic_ == 2 && try_.cross_nic == 0 &&
        (rules_.crosses_trees || try_.pattern == GraphPattern::Ring ||
         try_.pattern == GraphPattern::BalancedTree)) {
      try_.cross_nic = rules_.crosses_in_pairs ? 2 : 1;
      return true;
    }
    try_.cross_nic = cross_nic_ == 1 ? 1 : 0;
    if (speed_ + 1 < speeds_.size() &&
        (best_.channels == 0 || static_cast<double>(speeds_[speed_ + 1] / best_.bw_inter) > 0.49)) {
      ++speed_;
      try_.bw_intra = try_.bw_inter = speeds_[speed_];
      return true;
    }
    return false;
  }

  bool relax_types() {
    const PathType max_intra = has_nets_ ? try_.type_inter : intra_.max;
    if (try_.type_intra < max_intra &&
        (best_.channels == 0 || try_.type_intra < best_.type_intra)) {
      try_.type_intra = next_type(try_.type_intra, rules_.nics_over_c2c);
      if (try_.type_intra < PathType::Dis) {
        return true;
      }
    }
    try_.type_intra = intra_.min;
    if (has_nets_ && try_.type_inter < inter_.max &&
        (best_.channels == 0 || try_.type_inter < best_.type_inter ||
         try_.type_inter < PathType::Pxn)) {
      try_.type_inter = next_type(try_.type_inter, rules_.nics_over_c2c);
      if (try_.type_inter < PathType::Dis) {
        return true;
      }
    }
    try_.type_inter = inter_.min;
    return false;
  }

  // search.cc: ncclTopoDupChannels. Fast channels need two thread blocks to be filled.
  void duplicate() {
    if (best_.channels == 0 || best_.pattern == GraphPattern::Nvls || !is_doubled()) {
      return;
    }
    const int channels = std::min(2 * best_.channels, best_.max_channels);
    const int more = channels - best_.channels;
    std::copy_n(best_.gpus.begin(), more * gpus_, best_.gpus.begin() + best_.channels * gpus_);
    std::copy_n(best_.nets.begin(), more, best_.nets.begin() + best_.channels);
    const int times = (channels + best_.channels - 1) / best_.channels;
    best_.bw_intra /= static_cast<float>(times);
    best_.bw_inter /= static_cast<float>(times);
    best_.channels = channels;
  }

  [[nodiscard]] bool is_doubled() const {
    constexpr float kFast = 25.0F;
    constexpr float kFastHopper = 50.0F;
    constexpr int kMany = 4;
    const bool very_fast = generation_.doubles_many_channels || best_.bw_intra >= kFastHopper;
    switch (rules_.doubling) {
      case Doubling::None:
        return false;
      case Doubling::Fast:
        return best_.bw_intra >= kFast;
      case Doubling::FastButHopper:
        return best_.bw_intra >= kFast && very_fast;
      case Doubling::FastUnlessMany:
        break;
    }
    return best_.bw_intra >= kFast && (very_fast || best_.channels <= kMany);
  }

  void start_raising() {
    try_ = best_;
    speed_ = 0;
    while (speed_ + 1 < speeds_.size() && speeds_[speed_] > best_.bw_inter) {
      ++speed_;
    }
    try_.bw_intra = try_.bw_inter = speeds_[speed_];
    try_.min_channels = best_.channels;
  }

  // Asks for more bandwidth with as many channels; false if that makes no sense.
  bool raise() {
    if (best_.pattern == GraphPattern::Ring) {
      if (rules_.doubles_last) {
        return false;
      }
      try_.bw_intra = try_.bw_inter = speeds_[--speed_];
      return true;
    }
    if (best_.pattern == GraphPattern::Nvls && try_.bw_inter == best_.bw_inter &&
        try_.bw_inter < try_.bw_intra * 2) {
      try_.min_channels = try_.max_channels = best_.channels;
      try_.bw_inter = speeds_[--speed_];
      return true;
    }
    if (try_.bw_intra == best_.bw_intra && try_.bw_intra < try_.bw_inter * 2) {
      try_.bw_intra = speeds_[--speed_];
      return true;
    }
    return false;
  }

  void fall_back() {
    best_.channels = 1;
    best_.gpus.resize(as_index(gpus_));
    std::iota(best_.gpus.begin(), best_.gpus.end(), 0);
    best_.nets.assign(1, {0, 0});
    best_.bw_intra = best_.bw_inter = 0.1F;
    best_.type_intra = best_.type_inter = PathType::Sys;
  }

  const Machine& machine_;
  ChannelSearch& channels_;
  Bounds bounds_;
  int gpus_;
  bool has_nets_;
  const GpuGeneration& generation_;
  const Release& rules_;
  std::span<const float> speeds_;
  int cross_nic_ = 0;
  bool try_same_ = true;
  TypeRange intra_{PathType::Loc, PathType::Sys};
  TypeRange inter_{PathType::Pix, PathType::Sys};
  float total_ = 0.0F;
  std::size_t speed_ = 0;
  std::int64_t budget_ = 0;
  Candidate best_;
  Candidate try_;
};

// The decimal that the float represents.
double decimal(float bandwidth) {
  return std::round(static_cast<double>(bandwidth) * 1e4) / 1e4;
}

Graph graph_of(const Machine& machine, const Candidate& found) {
  const System& system = machine.system();
  Graph graph{.pattern = found.pattern,
              .cross_nic = found.cross_nic,
              .channel_count = found.channels,
              .bw_intra = decimal(found.bw_intra),
              .bw_inter = decimal(found.bw_inter),
              .latency_inter = decimal(found.latency_inter),
              .type_intra = found.type_intra,
              .type_inter = found.type_inter,
              .same_channels = found.same_channels};
  const std::size_t gpus = system.gpus.size();
  for (std::size_t channel = 0; channel < as_index(found.channels); ++channel) {
    GraphChannel out;
    if (!system.nets.empty()) {
      out.net_in = system.nets[as_index(found.nets[channel][0])].dev;
      out.net_out = system.nets[as_index(found.nets[channel][1])].dev;
    }
    const std::size_t count = found.pattern == GraphPattern::Nvls ? 1 : gpus;
    for (std::size_t position = 0; position < count; ++position) {
      const int gpu = found.gpus[channel * gpus + position];
      out.gpus.push_back(system.gpus[as_index(gpu)].rank);
    }
    graph.channels.push_back(std::move(out));
  }
  return graph;
}

bool may_use_nvls(const Machine& machine) {
  const System& system = machine.system();
  return machine.options().version >= Version::V2_17 && machine.options().nvls && system.nvswitch &&
         system.oldest().has_nvls && system.devices.size() == system.gpus.size();
}

// RCCL looks for no more than two rings among more than four GPUs on xGMI that it does not know
// (ROCm/rccl, src/graph/search.cc: ncclTopoCompute, where such a machine counts as a 4P2H_ROME).
int max_rings(const Machine& machine) {
  const std::vector<Edge>& edges = machine.system().edges;
  const Release& rules = release(machine.options().version, machine.system().oldest());
  const bool is_unknown = rules.knows_topologies && machine.net_count() == 0 &&
                          machine.gpu_count() > 4 &&
                          std::any_of(edges.begin(), edges.end(),
                                      [](const Edge& edge) { return edge.kind == EdgeKind::Nvl; });
  return is_unknown ? 2 : rules.max_channels / 2;
}

}  // namespace

// init.cc: initTransportsRank.
GraphSet search_graphs(const Machine& machine) {
  if (std::optional<GraphSet> known = known_graphs(machine)) {
    return *std::move(known);
  }
  ChannelSearch channels(machine);
  GraphSearch search(machine, channels, find_bounds(machine));
  GraphSet graphs;
  const auto found = [&](const Candidate& request) {
    const Candidate candidate = search.search(request);
    return candidate.channels > 0 ? graph_of(machine, candidate) : Graph{};
  };
  graphs.ring = found({.pattern = GraphPattern::Ring, .max_channels = max_rings(machine)});
  const int rings = graphs.ring.channel_count;
  const bool needs_all =
      release(machine.options().version, machine.system().oldest()).trees_are_as_many_as_rings;
  graphs.tree = found({.pattern = GraphPattern::BalancedTree,
                       .min_channels = needs_all ? rings : 1,
                       .max_channels = rings});
  if (machine.options().collnet && machine.net_count() > 0) {
    graphs.collnet_chain = found({.pattern = GraphPattern::Tree,
                                  .collnet = true,
                                  .min_channels = rings,
                                  .max_channels = rings});
    if (machine.gpu_count() > 1) {
      graphs.collnet_direct =
          found({.pattern = GraphPattern::CollNetDirect,
                 .collnet = true,
                 .max_channels = std::min(kMaxCollNetHeads, machine.gpu_count())});
    }
  }
  if (may_use_nvls(machine) && machine.gpu_count() > 1) {
    graphs.nvls = found({.pattern = GraphPattern::Nvls,
                         .max_channels = std::min(kMaxNvlsHeads, machine.gpu_count())});
  }
  return graphs;
}

}  // namespace trainyard::nccl
