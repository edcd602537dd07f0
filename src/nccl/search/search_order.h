// SPDX-License-Identifier: Apache-2.0
// Decides the order in which the search tries NICs and GPUs. Its budget is short, so the order
// decides what it finds.
#pragma once

#include <optional>
#include <vector>

#include "nccl/machine/bandwidth_ledger.h"
#include "nccl/machine/machine.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

// NICs for a channel that may reach its NIC over paths of type `farthest` at most: all, or those
// for one GPU to leave by. A GPU's own NICs first, then all by type.
[[nodiscard]] std::vector<int> select_nets(const Machine& machine, PathType farthest,
                                           std::optional<int> gpu);

// The GPUs, of `gpus` in a row, that a channel goes to next where there is an NVSwitch. Every GPU
// would do there, and few different peers are better than many.
[[nodiscard]] std::vector<int> neighbours(int gpu, int gpus, GraphPattern pattern);

// The preferences for a channel that will leave to a NIC: the one that it came from. `is_last`: the
// next GPU is the one that leaves.
struct NetPreference {
  std::optional<int> net = {};
  bool is_last = false;
  const BandwidthLedger* ledger = nullptr;  // Needed with `net`.
};

// The `candidates` that a channel may go to from a GPU, best first: near to the NIC, much PCIe
// bandwidth left, near to the GPU, next in order.
[[nodiscard]] std::vector<int> sort_gpus(const Machine& machine, int from,
                                         const std::vector<int>& candidates,
                                         const NetPreference& preference);

}  // namespace trainyard::nccl
