// SPDX-License-Identifier: Apache-2.0
// Names which constants of the event model the times of a machine rest on: those of a generation of
// GPUs, of the links inside a server and of a network.
#pragma once

#include <compare>
#include <string>

namespace trainyard::nccl {

struct MachineKind {
  std::string gpu;       // As in Profile::gpus: "hopper"; of several the oldest.
  std::string scale_up;  // "nvswitch", "nvlink" (mesh or bridge), "pcie"; "none": one GPU a node.
  std::string network;   // As in Profile::networks: "rdma"; "none" on one node.

  auto operator<=>(const MachineKind&) const = default;
};

// "hopper, nvswitch, rdma".
[[nodiscard]] std::string to_string(const MachineKind& kind);

}  // namespace trainyard::nccl
