// SPDX-License-Identifier: Apache-2.0
// Keeps what the channels of a search leave of the bandwidth of every link.
#pragma once

#include <cstddef>
#include <vector>

#include "nccl/machine/paths.h"
#include "nccl/machine/system.h"
#include "sim/ids.h"

namespace trainyard::nccl {

// GB/s, kept to a thousandth as NCCL keeps them.
class BandwidthLedger {
 public:
  explicit BandwidthLedger(const System& system);

  // Takes the bandwidth of every link of the path; of none, and returns false, if one has less. A
  // path that begins at a GPU and passes an Intel root complex (PHB) needs a fifth more of its PCIe
  // links; one from outside into a GPU before Ampere needs an eighth of the way back too.
  bool take(const Path& path, float bandwidth, bool from_gpu);
  // Undoes it.
  void give_back(const Path& path, float bandwidth, bool from_gpu);

  // Returns the rest of the slower direction of the GPU's PCIe link; -1 without one.
  [[nodiscard]] float pci_bandwidth(int gpu) const;
  [[nodiscard]] float left(int edge) const { return left_[as_index(edge)]; }

 private:
  [[nodiscard]] bool passes_intel(const Path& path) const;
  // Takes the bandwidth from the first `links` links; returns how many had it.
  std::size_t follow(const Path& path, std::size_t links, float bandwidth, bool from_gpu);

  const System& system_;
  std::vector<float> left_;           // Indexed by edge.
  std::vector<bool> takes_way_back_;  // Indexed by vertex.
};

}  // namespace trainyard::nccl
