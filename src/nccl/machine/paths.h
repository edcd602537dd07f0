// SPDX-License-Identifier: Apache-2.0
// Describes how every GPU reaches every GPU, NIC and CPU of a System: type, bandwidth and links,
// before any policy (machine.h) changes them.
//
// A breadth-first search from each destination. A way beats another by type, then by bandwidth,
// then by fewer links. Nothing is routed through a GPU but NVLink to NVLink, and that once (NVB).
// NVIDIA/nccl, src/graph/paths.cc: ncclTopoSetPaths.
#pragma once

#include <vector>

#include "nccl/machine/system.h"
#include "nccl/types/types.h"
#include "sim/ids.h"

namespace trainyard::nccl {

struct Path {
  PathType type = PathType::Dis;
  float bandwidth = 0.0F;       // GB/s; of the slowest link.
  std::vector<int> edges = {};  // From source to destination, indices into System::edges.
};

// [source][destination].
class PathTable {
 public:
  PathTable() = default;
  PathTable(std::size_t sources, std::size_t targets)
      : targets_(targets), paths_(sources * targets) {}

  [[nodiscard]] Path& at(int source, int target) { return paths_[index(source, target)]; }
  [[nodiscard]] const Path& at(int source, int target) const {
    return paths_[index(source, target)];
  }
  [[nodiscard]] int targets() const { return static_cast<int>(targets_); }

 private:
  [[nodiscard]] std::size_t index(int source, int target) const {
    return as_index(source) * targets_ + as_index(target);
  }

  std::size_t targets_ = 0;
  std::vector<Path> paths_;
};

// Paths by indices into the lists of System; the NVSwitch is 0.
struct Paths {
  PathTable gpu_gpu;
  PathTable gpu_net;
  PathTable gpu_cpu;
  PathTable gpu_nvs;
  PathTable net_gpu;
  PathTable net_cpu;
  PathTable cpu_gpu;
  PathTable cpu_net;
  PathTable nvs_gpu;
};

[[nodiscard]] Paths find_paths(const System& system, bool nvb);

}  // namespace trainyard::nccl
