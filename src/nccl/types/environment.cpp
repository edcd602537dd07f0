// SPDX-License-Identifier: Apache-2.0
// One table of all variables: how a value is read, or why it does nothing here.
#include "nccl/types/environment.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "nccl/types/variables.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"

namespace trainyard::nccl {
namespace {

constexpr std::int64_t kMaxBuffer = std::int64_t{1} << 30;
// For each of four ports (NVIDIA/nccl, src/transport/net_ib/common.h: NCCL_IB_MAX_QPS, 128).
constexpr std::int64_t kMaxQueuePairs = 32;

// A variable with an effect on time.
struct Variable {
  std::string_view name;
  // Null, or never a matter of time: the effect is not modelled, for the reason `why`. There is no
  // remark for `harmless`, the value that NCCL has without it; no value is harmless where that is
  // empty.
  void (*read)(Environment& environment, std::string_view name, std::string_view value) = nullptr;
  std::string_view harmless = {};
  std::string_view why = {};
};

[[noreturn]] void fail(std::string_view name, const std::string& expected, std::string_view value) {
  throw ConfigError(std::string(name) + ": expected " + expected + ", found " + in_quotes(value));
}

std::int64_t whole_number(std::string_view name, std::string_view value, std::int64_t min,
                          std::int64_t max) {
  const auto number = parse_number(value, min, max);
  if (!number) {
    fail(name, "a whole number from " + std::to_string(min) + " to " + std::to_string(max), value);
  }
  return *number;
}

void assign(int& field, std::int64_t number) {
  field = static_cast<int>(number);
}
void assign(bool& field, std::int64_t number) {
  field = number != 0;
}
void assign(Bytes& field, std::int64_t number) {
  field = Bytes(number);
}
void assign(std::int64_t& field, std::int64_t number) {
  field = number;
}
template <typename Value>
void assign(std::optional<Value>& field, std::int64_t number) {
  assign(field.emplace(), number);
}

template <auto Field, std::int64_t Min, std::int64_t Max>
void number(Environment& environment, std::string_view name, std::string_view value) {
  assign(environment.*Field, whole_number(name, value, Min, Max));
}
template <auto Field>
void flag(Environment& environment, std::string_view name, std::string_view value) {
  number<Field, 0, 1>(environment, name, value);
}
template <auto Field>
void bytes(Environment& environment, std::string_view name, std::string_view value) {
  number<Field, 1, kMaxBuffer>(environment, name, value);
}
// -1 represents NCCL's own choice.
template <auto Field, std::int64_t Min, std::int64_t Max>
void automatic(Environment& environment, std::string_view name, std::string_view value) {
  if (value != "-1" && value != "-2") {
    number<Field, Min, Max>(environment, name, value);
  }
}

// A step of the FIFO is an eighth, and its lines have whole sizes.
template <auto Field, std::int64_t Multiple>
void buffer(Environment& environment, std::string_view name, std::string_view value) {
  const std::int64_t size = whole_number(name, value, 0, kMaxBuffer);
  if (size == 0 || size % Multiple != 0) {
    fail(name, "a multiple of " + std::to_string(Multiple) + " bytes, greater than zero", value);
  }
  environment.*Field = Bytes(size);
}

// Numbers are the levels of old releases (NVIDIA/nccl, src/graph/paths.cc, ncclGetLevel).
template <auto Field>
void path_level(Environment& environment, std::string_view name, std::string_view value) {
  constexpr std::array kOldLevels{PathType::Loc, PathType::Pix, PathType::Pxb,
                                  PathType::Phb, PathType::Sys, PathType::Sys};
  if (value.size() == 1 && value[0] >= '0' && value[0] <= '5') {
    environment.*Field = kOldLevels[static_cast<std::size_t>(value[0] - '0')];
    return;
  }
  const auto level = parse_path_type(value);
  if (!level || *level > PathType::Sys) {
    fail(name, "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS or a number from 0 to 5", value);
  }
  environment.*Field = *level;
}

template <auto Field>
void text(Environment& environment, std::string_view name, std::string_view value) {
  if (value.empty()) {
    fail(name, "the name of a file", value);
  }
  environment.*Field = value;
}

// A block of threads is whole warps (NVIDIA/nccl, src/graph/tuning.cc, getNthreads).
template <auto Field, std::int64_t Min, std::int64_t Max>
void threads(Environment& environment, std::string_view name, std::string_view value) {
  const std::int64_t count = whole_number(name, value, Min, Max);
  if (count % 32 != 0) {
    fail(name, "a multiple of 32", value);
  }
  environment.*Field = static_cast<int>(count);
}

void algorithms(Environment& environment, std::string_view /*name*/, std::string_view value) {
  environment.selection.set_algorithms(value);
}

void protocols(Environment& environment, std::string_view /*name*/, std::string_view value) {
  environment.selection.set_protocols(value);
}

void thresholds(Environment& environment, std::string_view name, std::string_view value) {
  std::vector<std::int64_t> numbers;
  std::string_view rest = value;
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (rest.empty()) {
      break;
    }
    const std::string_view word = rest.substr(0, rest.find(' '));
    numbers.push_back(whole_number(name, word, 0, kMaxBuffer));
    rest.remove_prefix(word.size());
  }
  if (numbers.empty() || numbers.size() > 6) {
    fail(name, "one to six whole numbers between blanks", value);
  }
  environment.thread_thresholds = std::move(numbers);
}

void net_devices(Environment& environment, std::string_view name, std::string_view value) {
  constexpr std::string_view kMax = "MAX:";
  if (value == "AUTO") {
    environment.max_nets_per_gpu = std::nullopt;
  } else if (value == "ALL") {
    environment.max_nets_per_gpu = std::numeric_limits<int>::max();
  } else if (value.starts_with(kMax)) {
    environment.max_nets_per_gpu =
        static_cast<int>(whole_number(name, value.substr(kMax.size()), 1, 1024));
  } else {
    fail(name, "AUTO, ALL or MAX:N", value);
  }
}

using E = Environment;

constexpr Variable modelled(std::string_view name,
                            void (*read)(Environment&, std::string_view, std::string_view)) {
  return {.name = name, .read = read};
}
// The machine has it, and no time follows.
constexpr Variable timeless(std::string_view name,
                            void (*read)(Environment&, std::string_view, std::string_view),
                            std::string_view harmless, std::string_view why) {
  return {.name = name, .read = read, .harmless = harmless, .why = why};
}
constexpr Variable not_modelled(std::string_view name, std::string_view harmless,
                                std::string_view why) {
  return {.name = name, .harmless = harmless, .why = why};
}

void merge_level(Environment& environment, std::string_view name, std::string_view value) {
  if (value != "PORT" && !parse_path_type(value)) {
    fail(name, "LOC, PORT, PIX, PXB, PHB or SYS", value);
  }
  environment.net_merge_ports = value != "LOC";
  if (value != "LOC" && value != "PORT") {
    environment.remarks.push_back(std::string(name) + "=" + std::string(value) +
                                  " counts as PORT here: NICs of several adapters must be one in "
                                  "the topology");
  }
}

constexpr std::string_view kNics = "the NICs are those of the topology";
constexpr std::string_view kSymmetric = "kernels for symmetric memory are not modelled";
constexpr std::string_view kRegistered = "buffers count as not registered";
constexpr std::string_view kTraffic = "traffic classes are not modelled";
constexpr std::string_view kMerge = "only the ports of one adapter are merged";
constexpr std::string_view kSockets = "the sockets are those of the profile";
constexpr std::string_view kSent = "receives decide for both ways";
constexpr std::string_view kFlush = "no flush of received data is timed by itself";
constexpr std::string_view kRemoved = "no release since 2.27 reads it";
constexpr std::string_view kFile = "the program has options of its own for this file";

constexpr std::array kVariables{
    modelled("NCCL_ALGO", algorithms),
    modelled("NCCL_PROTO", protocols),
    modelled("NCCL_MIN_NCHANNELS", number<&E::min_channels, 0, 64>),
    modelled("NCCL_MIN_NRINGS", number<&E::min_channels, 0, 64>),
    modelled("NCCL_MAX_NCHANNELS", number<&E::max_channels, 1, 64>),
    modelled("NCCL_MAX_NRINGS", number<&E::max_channels, 1, 64>),
    modelled("NCCL_MIN_CTAS", number<&E::min_ctas, 1, 64>),
    modelled("NCCL_MAX_CTAS", number<&E::max_ctas, 1, 64>),
    modelled("NCCL_NTHREADS", threads<&E::threads, 64, 512>),
    modelled("NCCL_LL128_NTHREADS", threads<&E::ll128_threads, 160, 640>),
    modelled("NCCL_THREAD_THRESHOLDS", thresholds),
    modelled("NCCL_NET_OVERHEAD", automatic<&E::net_overhead, 0, 1'000'000'000>),
    modelled("NCCL_LL128_C2C", flag<&E::ll128_c2c>),
    modelled("NCCL_NVLS_ENABLE", number<&E::nvls_enable, 0, 2>),
    modelled("NCCL_NVLS_NCHANNELS", automatic<&E::nvls_channels, 1, 64>),
    modelled("NCCL_NVLS_CHUNKSIZE", buffer<&E::nvls_chunk, 1024>),
    modelled("NCCL_NVLSTREE_MAX_CHUNKSIZE", automatic<&E::nvls_tree_max_chunk, 1024, kMaxBuffer>),
    modelled("NCCL_PAT_ENABLE", number<&E::pat_enable, 0, 2>),
    modelled("NCCL_COLLNET_ENABLE", flag<&E::collnet_enable>),
    modelled("NCCL_COLLNET_NODE_THRESHOLD", number<&E::collnet_node_threshold, 0, 1'000'000>),
    modelled("RCCL_MSCCL_ENABLE", flag<&E::rccl_msccl_enable>),
    modelled("RCCL_LL128_FORCE_ENABLE", flag<&E::rccl_ll128_force_enable>),
    modelled("NCCL_TUNER_CONFIG_FILE", text<&E::tuner_config_file>),

    modelled("NCCL_BUFFSIZE", buffer<&E::simple_buffer, 4096>),
    modelled("NCCL_LL_BUFFSIZE", buffer<&E::ll_buffer, 4096>),
    modelled("NCCL_LL128_BUFFSIZE", buffer<&E::ll128_buffer, 8 * 2048>),

    modelled("NCCL_P2P_NET_CHUNKSIZE", bytes<&E::p2p_net_chunk>),
    modelled("NCCL_P2P_PCI_CHUNKSIZE", bytes<&E::p2p_pci_chunk>),
    modelled("NCCL_P2P_NVL_CHUNKSIZE", bytes<&E::p2p_nvl_chunk>),
    modelled("NCCL_CHUNK_SIZE", bytes<&E::p2p_chunk>),
    modelled("NCCL_P2P_LL_THRESHOLD", number<&E::p2p_ll_threshold, 0, kMaxBuffer>),
    modelled("NCCL_ALLOC_P2P_NET_LL_BUFFERS", flag<&E::allocate_p2p_net_ll_buffers>),
    modelled("NCCL_MIN_P2P_NCHANNELS", number<&E::min_p2p_channels, 1, 64>),
    modelled("NCCL_MAX_P2P_NCHANNELS", number<&E::max_p2p_channels, 1, 64>),
    modelled("NCCL_NCHANNELS_PER_NET_PEER", automatic<&E::channels_per_net_peer, 1, 64>),
    modelled("NCCL_P2P_PER_CHANNEL_NET_BW", number<&E::p2p_per_channel_net_bandwidth, 1, 10'000>),
    modelled("NCCL_P2P_SCHEDULE_GROUP_SIZE", number<&E::p2p_schedule_group_size, 1, 1'000'000>),
    modelled("NCCL_P2P_EPOCH_ENABLE", flag<&E::p2p_epoch_enable>),
    modelled("NCCL_P2P_MAX_PEERS", automatic<&E::p2p_max_peers, 1, 100'000'000>),

    modelled("NCCL_P2P_LEVEL", path_level<&E::p2p_level>),
    modelled("NCCL_P2P_DISABLE", flag<&E::p2p_disable>),
    modelled("NCCL_P2P_READ_ENABLE", automatic<&E::p2p_read, 0, 1>),
    not_modelled("NCCL_P2P_DIRECT_DISABLE", "0", kRegistered),
    modelled("NCCL_SHM_DISABLE", flag<&E::shm_disable>),
    not_modelled("NCCL_SHM_LOCALITY", "2", "host memory is on the side of the receiver"),
    modelled("NCCL_NET_DISABLE_INTRA", flag<&E::net_disable_intra>),
    modelled("NCCL_NET_GDR_LEVEL", path_level<&E::net_gdr_level>),
    timeless("NCCL_NET_GDR_READ", automatic<&E::net_gdr_read, 0, 1>, "-2", kSent),
    modelled("NCCL_NET_GDR_C2C", flag<&E::net_gdr_c2c>),
    timeless("NCCL_NET_FORCE_FLUSH", flag<&E::net_force_flush>, "0", kFlush),
    timeless("NCCL_GDR_FLUSH_DISABLE", flag<&E::gdr_flush_disable>, "0", kFlush),
    modelled("NCCL_CROSS_NIC", number<&E::cross_nic, 0, 2>),
    modelled("NCCL_NETDEVS_POLICY", net_devices),
    modelled("NCCL_PXN_DISABLE", flag<&E::pxn_disable>),
    modelled("NCCL_P2P_PXN_LEVEL", number<&E::p2p_pxn_level, 0, 2>),
    modelled("NCCL_PXN_C2C", flag<&E::pxn_c2c>),
    modelled("NCCL_NVB_DISABLE", flag<&E::nvb_disable>),
    modelled("NCCL_MNNVL_ENABLE", number<&E::mnnvl_enable, 0, 2>),
    not_modelled("NCCL_MNNVL_RAIL_PER_HOST", "0", "rails are those of the topology"),
    modelled("NCCL_MNNVL_SCATTER_NETS_ENABLE", flag<&E::mnnvl_scatter_nets>),
    modelled("NCCL_TOPO_FILE", text<&E::topology_file>),
    modelled("NCCL_GRAPH_FILE", text<&E::graph_file>),

    modelled("NCCL_IB_QPS_PER_CONNECTION", number<&E::ib_queue_pairs, 1, kMaxQueuePairs>),
    modelled("NCCL_IB_SPLIT_DATA_ON_QPS", flag<&E::ib_split_data>),
    modelled("NCCL_IB_AR_THRESHOLD", number<&E::ib_adaptive_threshold, 0, kMaxBuffer>),
    modelled("NCCL_IB_ADAPTIVE_ROUTING", automatic<&E::ib_adaptive_routing, 0, 1>),
    not_modelled("NCCL_SOCKET_NTHREADS", "", kSockets),
    not_modelled("NCCL_NSOCKS_PERTHREAD", "", kSockets),

    not_modelled("NCCL_P2P_USE_CUDA_MEMCPY", "0", "copies are made by kernels"),
    not_modelled("NCCL_IB_TC", "-1", kTraffic),
    not_modelled("NCCL_IB_SL", "-1", kTraffic),
    not_modelled("NCCL_IB_FIFO_TC", "-1", kTraffic),
    modelled("NCCL_IB_MERGE_NICS", flag<&E::ib_merge_nics>),
    modelled("NCCL_NET_MERGE_LEVEL", merge_level),
    not_modelled("NCCL_NET_FORCE_MERGE", "", kMerge),
    not_modelled("NCCL_NET_MERGE_POLICY", "ALL", kMerge),
    not_modelled("NCCL_IB_HCA", "", kNics),
    not_modelled("NCCL_SOCKET_IFNAME", "", kNics),
    modelled("NCCL_NET", text<&E::network>),
    not_modelled("NCCL_NET_PLUGIN", "none", kNics),
    modelled("NCCL_IB_DISABLE", flag<&E::ib_disable>),
    not_modelled("NCCL_NET_SHARED_BUFFERS", "1", "buffers of sends over the network are shared"),
    not_modelled("NCCL_NET_SHARED_COMMS", "1", "connections of sends are shared"),
    not_modelled("NCCL_CGA_CLUSTER_SIZE", "4", "clusters of thread blocks are not modelled"),
    not_modelled("NCCL_CTA_POLICY", "DEFAULT", "the policy is DEFAULT"),
    not_modelled("NCCL_WIN_ENABLE", "1", kSymmetric),
    not_modelled("NCCL_SYM_KERNEL", "", kSymmetric),
    not_modelled("NCCL_SYM_CTAS", "0", kSymmetric),
    not_modelled("NCCL_SYM_CE_THRESHOLD", "8388608", kSymmetric),
    not_modelled("NCCL_SYM_GIN_KERNELS_ENABLE", "1", kSymmetric),
    not_modelled("NCCL_SYM_TMA_ENABLE", "0", kSymmetric),
    not_modelled("NCCL_LOCAL_REGISTER", "1", kRegistered),
    not_modelled("NCCL_GRAPH_REGISTER", "1", kRegistered),
    not_modelled("NCCL_MNNVL_UUID", "-1", "racks are those of the topology"),
    not_modelled("NCCL_MNNVL_CLIQUE_ID", "-1", "racks are those of the topology"),
    not_modelled("NCCL_HOSTID", "", "hosts are those of the topology"),
    not_modelled("NCCL_TUNER_PLUGIN", "none", "only the table of the example plugin is read"),
    not_modelled("NCCL_CONF_FILE", "", "the file is not read"),
    not_modelled("NCCL_TOPO_DUMP_FILE", "", kFile),
    not_modelled("NCCL_GRAPH_DUMP_FILE", "", kFile),
    not_modelled("NCCL_ALLGATHERV_ENABLE", "1", "broadcasts of a group are not joined"),
    not_modelled("NCCL_DYNAMIC_CHUNK_SIZE", "", kRemoved),
    not_modelled("NCCL_TREE_THRESHOLD", "", kRemoved),
    not_modelled("NCCL_LL_THRESHOLD", "", kRemoved),
    not_modelled("NCCL_SINGLE_RING_THRESHOLD", "", kRemoved),
};

// Variables without effect on time. Ranks on one GPU (NCCL_MULTI_RANK_GPU_ENABLE) are those of the
// topology.
constexpr std::array<std::string_view, 36> kWithoutEffect{"NCCL_MULTI_RANK_GPU_ENABLE",
                                                          "NCCL_TOPO_DUMP_FILE_RANK",
                                                          "NCCL_GRAPH_DUMP_FILE_RANK",
                                                          "NCCL_NVB_PRECONNECT",
                                                          "NCCL_RUNTIME_CONNECT",
                                                          "NCCL_CUMEM_ENABLE",
                                                          "NCCL_CUMEM_HOST_ENABLE",
                                                          "NCCL_DMABUF_ENABLE",
                                                          "NCCL_GDRCOPY_ENABLE",
                                                          "NCCL_IB_TIMEOUT",
                                                          "NCCL_IB_RETRY_CNT",
                                                          "NCCL_IB_GID_INDEX",
                                                          "NCCL_IB_ROCE_VERSION_NUM",
                                                          "NCCL_IB_ADDR_FAMILY",
                                                          "NCCL_IB_ADDR_RANGE",
                                                          "NCCL_IB_CUDA_SUPPORT",
                                                          "NCCL_IB_PCI_RELAXED_ORDERING",
                                                          "NCCL_IB_RETURN_ASYNC_EVENTS",
                                                          "NCCL_SOCKET_FAMILY",
                                                          "NCCL_OOB_NET_ENABLE",
                                                          "NCCL_COMM_BLOCKING",
                                                          "NCCL_COMM_ID",
                                                          "NCCL_ASYNC_ERROR_HANDLING",
                                                          "NCCL_BLOCKING_WAIT",
                                                          "NCCL_SET_THREAD_NAME",
                                                          "NCCL_RAS_ENABLE",
                                                          "NCCL_PROFILER_PLUGIN",
                                                          "NCCL_LAUNCH_MODE",
                                                          "NCCL_LAUNCH_ORDER_IMPLICIT",
                                                          "NCCL_IGNORE_CPU_AFFINITY",
                                                          "NCCL_IGNORE_DISABLED_P2P",
                                                          "NCCL_CHECKS_DISABLE",
                                                          "NCCL_CHECK_POINTERS",
                                                          "NCCL_DEBUG",
                                                          "NCCL_DEBUG_SUBSYS",
                                                          "NCCL_DEBUG_FILE"};

// Plugins of vendors have names of their own behind these.
constexpr std::array<std::string_view, 3> kPluginPrefixes{"NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_",
                                                          "NCCL_TESTS_"};

void read_variable(Environment& environment, std::string_view name, std::string_view value) {
  const auto* const known = std::ranges::find(kVariables, name, &Variable::name);
  const auto remark = [&](std::string_view why) {
    environment.remarks.push_back(shortened(std::string(name) + "=" + std::string(value)) +
                                  " has no effect here: " + std::string(why));
  };
  if (known != kVariables.end()) {
    if (known->read != nullptr) {
      known->read(environment, name, value);
    }
    if (!known->why.empty() && (known->harmless.empty() || value != known->harmless)) {
      remark(known->why);
    }
    return;
  }
  if (std::ranges::find(kWithoutEffect, name) != kWithoutEffect.end()) {
    return;
  }
  if (!name.starts_with("NCCL_") ||
      std::ranges::any_of(kPluginPrefixes, [&](auto prefix) { return name.starts_with(prefix); })) {
    remark("it is not a variable of NCCL itself");
    return;
  }
  std::vector<std::string> names;
  for (const Variable& variable : kVariables) {
    names.emplace_back(variable.name);
  }
  names.insert(names.end(), kWithoutEffect.begin(), kWithoutEffect.end());
  const auto nearest = nearest_word(name, names);
  throw ConfigError("unknown variable " + in_quotes(name) +
                    (nearest ? "; did you mean " + *nearest + "?" : ""));
}

// Variables whose values exclude each other.
void check_together(const Environment& environment) {
  if (environment.min_ctas > environment.max_ctas) {
    throw ConfigError("NCCL_MIN_CTAS: expected at most NCCL_MAX_CTAS (" +
                      std::to_string(environment.max_ctas) + "), found " +
                      std::to_string(environment.min_ctas));
  }
}

}  // namespace

Environment Environment::parse(const std::map<std::string, std::string>& variables) {
  Environment environment;
  for (const auto& [name, value] : variables) {
    if (name.empty()) {
      throw ConfigError("environment: expected the name of a variable, found \"\"");
    }
    read_variable(environment, name, value);
  }
  check_together(environment);
  return environment;
}

Environment Environment::parse(std::span<const std::string> assignments) {
  std::map<std::string, std::string> variables;
  for (const std::string& assignment : assignments) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError("environment: expected NAME=VALUE, found " + in_quotes(assignment));
    }
    const std::string name = assignment.substr(0, equals);
    if (!variables.emplace(name, assignment.substr(equals + 1)).second) {
      throw ConfigError(shortened(name) + ": given twice");
    }
  }
  return parse(variables);
}

std::vector<std::string_view> modelled_variables() {
  std::vector<std::string_view> names;
  for (const Variable& variable : kVariables) {
    if (variable.read != nullptr) {
      names.push_back(variable.name);
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace trainyard::nccl
