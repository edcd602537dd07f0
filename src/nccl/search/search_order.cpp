// SPDX-License-Identifier: Apache-2.0
#include "nccl/search/search_order.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "nccl/types/release.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

void add_new(std::vector<int>& list, int value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) {
    list.push_back(value);
  }
}

// The GPU's own NICs over the channels, until they repeat.
std::vector<int> own_nets(const Machine& machine, int gpu) {
  std::vector<int> nets;
  for (int channel = 0; channel < kMaxChannels; ++channel) {
    const std::optional<int> net = machine.net_of(gpu, channel);
    if (!net || (!nets.empty() && *net == nets.front())) {
      break;
    }
    nets.push_back(*net);
  }
  return nets;
}

// NICs by type of path; `by_number`: of equally near ones from that of the GPU's number on.
void add_by_distance(const Machine& machine, PathType farthest, int first, int last, bool by_number,
                     std::vector<int>& nets) {
  for (int type = 0; type <= static_cast<int>(farthest); ++type) {
    for (int gpu = first; gpu <= last; ++gpu) {
      std::vector<int> near;
      for (int net = 0; net < std::min(machine.net_count(), kMaxChannels); ++net) {
        if (static_cast<int>(machine.paths().gpu_net.at(gpu, net).type) == type) {
          near.push_back(net);
        }
      }
      const std::size_t dev =
          by_number ? as_index(machine.system().gpus[as_index(gpu)].dev) : std::size_t{0};
      for (std::size_t turn = 0; turn < near.size(); ++turn) {
        add_new(nets, near[(dev + turn) % near.size()]);
      }
    }
  }
}

struct Score {
  int gpu = 0;
  int start = 0;
  int net_bandwidth = 0;
  int pci_bandwidth = 0;
  int net_hops = 0;
  int bandwidth = 0;
  int hops = 0;
};

}  // namespace

// search.cc: ncclTopoSelectNets. Hosts of one NVLink domain spread their channels: the first NIC of
// every GPU, then the second of every GPU.
std::vector<int> select_nets(const Machine& machine, PathType farthest, std::optional<int> gpu) {
  std::vector<int> nets;
  const int first = gpu.value_or(0);
  const int last = gpu.value_or(machine.gpu_count() - 1);
  if (!release(machine.options().version, machine.system().oldest()).takes_own_nics) {
    add_by_distance(machine, farthest, first, last, true, nets);
    return nets;
  }
  std::vector<std::vector<int>> own;
  std::size_t max = 0;
  for (int index = first; index <= last; ++index) {
    own.push_back(own_nets(machine, index));
    max = std::max(max, own.back().size());
  }
  if (machine.system().hosts > 1 && machine.options().paths.mnnvl_scatter_nets) {
    for (std::size_t turn = 0; turn < max; ++turn) {
      for (const std::vector<int>& list : own) {
        if (turn < list.size()) {
          add_new(nets, list[turn]);
        }
      }
    }
  } else {
    for (const std::vector<int>& list : own) {
      for (const int net : list) {
        add_new(nets, net);
      }
    }
  }
  add_by_distance(machine, farthest, first, last, false, nets);
  return nets;
}

std::vector<int> neighbours(int gpu, int gpus, GraphPattern pattern) {
  const int after = (gpu + 1) % gpus;
  const int before = (gpu + gpus - 1) % gpus;
  std::vector<int> order{after};
  if (before == after) {
    return order;
  }
  if (pattern == GraphPattern::Ring) {
    order = {before, after};
  } else if (pattern == GraphPattern::BalancedTree || pattern == GraphPattern::SplitTree) {
    order = {after, before};
  }
  return order;
}

// search.cc: ncclTopoSearchNextGpuSort. Bandwidths compare as whole GB/s.
std::vector<int> sort_gpus(const Machine& machine, int from, const std::vector<int>& candidates,
                           const NetPreference& preference) {
  const int gpus = machine.gpu_count();
  std::vector<Score> scores;
  for (const int gpu : candidates) {
    const Path& path = machine.paths().gpu_gpu.at(from, gpu);
    Score score{.gpu = gpu,
                .start = (gpu + gpus - from) % gpus,
                .bandwidth = static_cast<int>(path.bandwidth),
                .hops = static_cast<int>(path.edges.size())};
    if (preference.net) {
      const Path& net_path = machine.paths().net_gpu.at(*preference.net, gpu);
      score.net_bandwidth = static_cast<int>(net_path.bandwidth);
      score.net_hops = static_cast<int>(net_path.edges.size());
      score.pci_bandwidth = static_cast<int>(preference.ledger->pci_bandwidth(gpu));
    }
    scores.push_back(score);
  }
  std::sort(scores.begin(), scores.end(), [](const Score& a, const Score& b) {
    return std::tuple(-a.net_bandwidth, -a.pci_bandwidth, a.net_hops, -a.bandwidth, a.hops,
                      a.start) < std::tuple(-b.net_bandwidth, -b.pci_bandwidth, b.net_hops,
                                            -b.bandwidth, b.hops, b.start);
  });
  const bool are_equal = std::all_of(scores.begin(), scores.end(), [&](const Score& score) {
    return score.bandwidth == scores.front().bandwidth && score.hops == scores.front().hops;
  });
  std::vector<int> next;
  for (const Score& score : scores) {
    next.push_back(score.gpu);
  }
  if (preference.net && !preference.is_last && are_equal) {
    std::reverse(next.begin(), next.end());
  }
  return next;
}

}  // namespace trainyard::nccl
