// SPDX-License-Identifier: Apache-2.0
// The environment variables of NCCL (docs/userguide/source/env.rst and the NCCL_PARAM of its
// sources). A default-constructed Environment is NCCL with nothing set.
//
// Each variable is in one of three classes: it changes what the twin does and has a field here; it
// is known to have no effect on time and is accepted; or it has an effect that is not modelled and
// is accepted with a remark that says so. An unknown name that begins with NCCL_ is an error.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nccl/types/selection_filter.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

// The rules of paths between GPUs and NICs. Empty optionals represent what NCCL then decides
// by itself.
struct PathSettings {
  std::optional<PathType> p2p_level = {};      // NCCL_P2P_LEVEL
  std::optional<bool> p2p_read = {};           // NCCL_P2P_READ_ENABLE
  bool shm_disable = false;                    // NCCL_SHM_DISABLE
  bool net_disable_intra = false;              // NCCL_NET_DISABLE_INTRA
  std::optional<PathType> net_gdr_level = {};  // NCCL_NET_GDR_LEVEL
  std::optional<bool> net_gdr_read = {};       // NCCL_NET_GDR_READ
  std::optional<bool> net_gdr_c2c = {};        // NCCL_NET_GDR_C2C
  bool net_force_flush = false;                // NCCL_NET_FORCE_FLUSH
  bool gdr_flush_disable = false;              // NCCL_GDR_FLUSH_DISABLE
  int cross_nic = 2;                           // NCCL_CROSS_NIC: 0, 1, 2 (if it pays)
  std::optional<int> max_nets_per_gpu = {};    // NCCL_NETDEVS_POLICY: AUTO, ALL (any), MAX
  bool pxn_disable = false;                    // NCCL_PXN_DISABLE
  int p2p_pxn_level = 2;                       // NCCL_P2P_PXN_LEVEL
  std::optional<bool> pxn_c2c = {};            // NCCL_PXN_C2C
  bool nvb_disable = false;                    // NCCL_NVB_DISABLE
  bool mnnvl_scatter_nets = true;              // NCCL_MNNVL_SCATTER_NETS_ENABLE
  [[nodiscard]] bool operator==(const PathSettings&) const = default;
};

struct Environment : PathSettings {
  // Choice of algorithm and protocol, channels, threads.
  SelectionFilter selection;                      // NCCL_ALGO, NCCL_PROTO
  int min_channels = 0;                           // NCCL_MIN_NCHANNELS, NCCL_MIN_NRINGS
  int max_channels = 64;                          // NCCL_MAX_NCHANNELS, NCCL_MAX_NRINGS
  int min_ctas = 1;                               // NCCL_MIN_CTAS
  int max_ctas = 64;                              // NCCL_MAX_CTAS
  std::optional<int> threads = {};                // NCCL_NTHREADS
  std::optional<int> ll128_threads = {};          // NCCL_LL128_NTHREADS
  std::vector<std::int64_t> thread_thresholds;    // NCCL_THREAD_THRESHOLDS: of Tree LL, LL128,
                                                  // Simple, then of Ring; as many as given.
  std::optional<std::int64_t> net_overhead = {};  // NCCL_NET_OVERHEAD, nanoseconds
  bool ll128_c2c = true;                          // NCCL_LL128_C2C
  int nvls_enable = 2;                            // NCCL_NVLS_ENABLE: 0, 1, 2 (if it is possible)
  std::optional<int> nvls_channels = {};          // NCCL_NVLS_NCHANNELS
  std::optional<Bytes> nvls_chunk = {};           // NCCL_NVLS_CHUNKSIZE
  std::optional<Bytes> nvls_tree_max_chunk = {};  // NCCL_NVLSTREE_MAX_CHUNKSIZE
  int pat_enable = 2;                             // NCCL_PAT_ENABLE: 0, 1, 2 (if it pays)
  bool collnet_enable = false;                    // NCCL_COLLNET_ENABLE
  int collnet_node_threshold = 2;                 // NCCL_COLLNET_NODE_THRESHOLD
  bool rccl_msccl_enable = true;                  // RCCL_MSCCL_ENABLE
  bool rccl_ll128_force_enable = false;           // RCCL_LL128_FORCE_ENABLE
  std::string tuner_config_file;                  // NCCL_TUNER_CONFIG_FILE, of the example plugin

  // Buffers of a connection, for all its eight steps; of LL and LL128 on the wire, with flags.
  Bytes simple_buffer = mib(4);        // NCCL_BUFFSIZE
  Bytes ll_buffer{8 * 512 * 8 * 16};   // NCCL_LL_BUFFSIZE
  Bytes ll128_buffer{120 * 640 * 64};  // NCCL_LL128_BUFFSIZE

  // Sends and receives.
  std::optional<Bytes> p2p_net_chunk = {};        // NCCL_P2P_NET_CHUNKSIZE
  Bytes p2p_pci_chunk = kib(128);                 // NCCL_P2P_PCI_CHUNKSIZE
  Bytes p2p_nvl_chunk = kib(512);                 // NCCL_P2P_NVL_CHUNKSIZE
  std::optional<Bytes> p2p_chunk = {};            // NCCL_CHUNK_SIZE
  Bytes p2p_ll_threshold{16384};                  // NCCL_P2P_LL_THRESHOLD
  bool allocate_p2p_net_ll_buffers = false;       // NCCL_ALLOC_P2P_NET_LL_BUFFERS
  int min_p2p_channels = 1;                       // NCCL_MIN_P2P_NCHANNELS
  int max_p2p_channels = 64;                      // NCCL_MAX_P2P_NCHANNELS
  std::optional<int> channels_per_net_peer = {};  // NCCL_NCHANNELS_PER_NET_PEER
  int p2p_per_channel_net_bandwidth = 14;         // NCCL_P2P_PER_CHANNEL_NET_BW, GB/s
  int p2p_schedule_group_size = 8;                // NCCL_P2P_SCHEDULE_GROUP_SIZE
  bool p2p_epoch_enable = true;                   // NCCL_P2P_EPOCH_ENABLE
  std::optional<int> p2p_max_peers = {};          // NCCL_P2P_MAX_PEERS

  // Paths and transports.
  bool p2p_disable = false;   // NCCL_P2P_DISABLE
  int mnnvl_enable = 2;       // NCCL_MNNVL_ENABLE: 0, 1, 2 (if it is there)
  std::string topology_file;  // NCCL_TOPO_FILE
  std::string graph_file;     // NCCL_GRAPH_FILE

  // Network plugins. The event model takes their latencies by these; NICs of a kind of their own
  // need neither.
  std::string network;          // NCCL_NET: "IB", "Socket", "AWS Libfabric", ...
  bool ib_disable = false;      // NCCL_IB_DISABLE
  bool ib_merge_nics = true;    // NCCL_IB_MERGE_NICS
  bool net_merge_ports = true;  // NCCL_NET_MERGE_LEVEL: LOC (false), PORT (true)
  // NCCL's plugin for InfiniBand and RoCE opens so many queue pairs of a connection on each port,
  // and may give all of them a part of every message.
  int ib_queue_pairs = 1;                        // NCCL_IB_QPS_PER_CONNECTION
  bool ib_split_data = false;                    // NCCL_IB_SPLIT_DATA_ON_QPS
  std::optional<bool> ib_adaptive_routing = {};  // NCCL_IB_ADAPTIVE_ROUTING
  Bytes ib_adaptive_threshold{8192};             // NCCL_IB_AR_THRESHOLD

  // Effects that are not modelled, one line each.
  std::vector<std::string> remarks;

  // Reads "NAME=VALUE" texts. Throws ConfigError with "NAME: expected EXPECTED, found VALUE", for a
  // name of NCCL that is not known (with the nearest known one), and for a name given twice. Names
  // that do not begin with NCCL_ are accepted with a remark.
  [[nodiscard]] static Environment parse(std::span<const std::string> assignments);
  [[nodiscard]] static Environment parse(const std::map<std::string, std::string>& variables);
};

}  // namespace trainyard::nccl
