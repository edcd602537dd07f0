// SPDX-License-Identifier: Apache-2.0
// One node as NCCL sees it, with its policies applied: who reaches whom directly, through host
// memory or through another GPU, and which NICs belong to which GPU (NVIDIA/nccl,
// src/graph/paths.cc: ncclTopoComputePaths and the checks beside it; topo.cc: ncclTopoGetLocal*).
//
// GPUs and NICs are indices into System::gpus and System::nets throughout.
#pragma once

#include <optional>
#include <vector>

#include "nccl/machine/paths.h"
#include "nccl/machine/system.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"
#include "sim/ids.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard::nccl {

struct Release;

struct SearchOptions {
  Version version = kNewestVersion;
  bool multi_node = false;  // Whether the communicator has other nodes.
  PathSettings paths = {};  // With p2p_level Loc for NCCL_P2P_DISABLE=1.
  bool nvls = true;         // NCCL_NVLS_ENABLE, and multicast works.
  bool collnet = false;     // NCCL_COLLNET_ENABLE.
  bool merge_ports = true;  // NCCL_NET_MERGE_LEVEL=PORT.
  [[nodiscard]] bool operator==(const SearchOptions&) const = default;
};

class Machine {
 public:
  Machine(System system, const SearchOptions& options);

  [[nodiscard]] const System& system() const { return system_; }
  // GPU to GPU, GPU to NIC and so on, after all adjustments.
  [[nodiscard]] const Paths& paths() const { return paths_; }
  [[nodiscard]] const SearchOptions& options() const { return options_; }
  [[nodiscard]] int gpu_count() const { return static_cast<int>(system_.gpus.size()); }
  [[nodiscard]] int net_count() const { return static_cast<int>(system_.nets.size()); }

  // Returns whether two GPUs access each other's memory; through host memory otherwise.
  [[nodiscard]] bool has_peer_access(int from, int to) const {
    return peer_access_[position(from, to)];
  }
  // The GPU in the middle of an NVB path.
  [[nodiscard]] std::optional<int> nvlink_relay(int from, int to) const;
  // Returns whether the receiver pulls what it gets over this path (Ampere over NVLink) and the
  // sender does not push.
  [[nodiscard]] bool reads_from_peer(int from, int to) const;
  // Returns whether the NIC reads (a send) or writes (a receive) the memory of the GPU; of the GPU
  // that hands over where there is one.
  [[nodiscard]] bool has_gpudirect(int gpu, int net, bool is_send) const;
  // Returns whether a receive into the GPU must be followed by a read of it, so that the data are
  // there when the flag is: before Hopper, and where a GPU on C2C has its NIC on PCIe.
  [[nodiscard]] bool needs_flush(int gpu, int net) const;
  // The GPU through which this one sends over the NIC (PXN), if the path is of that type.
  [[nodiscard]] std::optional<int> pxn_gpu(int gpu, int net) const;

  // Nearest by bandwidth, then by type, in order of index.
  [[nodiscard]] std::vector<int> nearest_nets(int gpu) const;
  [[nodiscard]] std::vector<int> nearest_gpus(int net) const;
  // Returns how many of its nearest NICs the GPU takes in turns.
  [[nodiscard]] int nets_per_gpu(int gpu) const;
  // The GPU's own NIC for a channel; nothing where there are no NICs.
  [[nodiscard]] std::optional<int> net_of(int gpu, int channel) const;
  // The GPU whose own NIC this is.
  [[nodiscard]] std::optional<int> gpu_of(int net) const;

  // The path by which a GPU sends to one of another node outside of collectives: by the NIC of the
  // rail of the receiver, whose NVML index on its host is `peer_dev`, where a GPU of the host can
  // hand over to it; else by its own. Receives always use the receiver's own NIC. Nothing without
  // NICs.
  struct SendWay {
    int net = 0;
    int gpu = 0;  // GPU whose proxy sends; the sender's own or the one that hands over.
    [[nodiscard]] bool operator==(const SendWay&) const = default;
  };
  [[nodiscard]] std::optional<SendWay> send_way(int gpu, int channel, int peer_dev) const;

  // GPUs that reach each other without the network, each group a node of its own for NCCL: one, but
  // where NICs are faster than the way between the GPUs.
  [[nodiscard]] std::vector<std::vector<int>> groups() const;

 private:
  [[nodiscard]] std::size_t position(int from, int to) const {
    return as_index(from) * system_.gpus.size() + as_index(to);
  }
  // paths_, of what stands at the two ends; `via` the CPU or GPU in between.
  static void divert(Path& path, const Path& first, const Path& second);
  [[nodiscard]] int nearest_cpu(int gpu) const;
  // How far apart GPUs access each other's memory by default.
  [[nodiscard]] PathType peer_level() const;
  [[nodiscard]] bool may_access_peer(int from, int to) const;
  [[nodiscard]] bool prefers_network(int from, int to) const;
  [[nodiscard]] bool is_on_c2c(int gpu) const;
  [[nodiscard]] PathType farthest_relay() const;
  [[nodiscard]] bool hands_over() const;
  [[nodiscard]] bool may_relay(int relay, int gpu, int net) const;
  void adjust_between_gpus();
  void adjust_c2c();
  void adjust_to_nets();

  System system_;
  SearchOptions options_;
  const Release& rules_;
  Paths paths_;
  std::vector<bool> peer_access_;
};

// One node or several, as NCCL divides the hosts of one NVLink domain; `ranks` are counted over all
// of them. Throws what build_system throws, and ConfigError where several nodes are to be joined
// without a NIC.
struct MachinePart {
  std::vector<int> ranks;
  Machine machine;
};
[[nodiscard]] std::vector<MachinePart> make_machines(const std::vector<NcclSystem>& servers,
                                                     const SearchOptions& options);

}  // namespace trainyard::nccl
