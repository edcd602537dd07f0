// SPDX-License-Identifier: Apache-2.0
// Variables: NCCL's user guide (docs.nvidia.com/deeplearning/nccl/user-guide), "Environment
// Variables". A host is told from another one by NCCL_HOSTID (NVIDIA/nccl, src/misc/utils.cc:
// getHostHash), so that two processes with different ones may share a GPU in any version.
#include "calibrate/cuda/nccl_environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace trainyard::calibrate {
namespace {

constexpr const char* kSharing = "TRAINYARD_CALIBRATE_SHARING";

void set(const char* name, const std::string& value) {
  (void)::setenv(name, value.c_str(), 1);
}

// Each rank a host of its own, and only sockets on loopback between them.
void set_fake_host(const Options& options) {
  set("NCCL_HOSTID", fmt::format("trainyard-{}", options.rank));
  set("NCCL_NET", "Socket");
  set("NCCL_NET_PLUGIN", "none");
  set("NCCL_IB_DISABLE", "1");
  set("NCCL_SOCKET_IFNAME", "lo");
  set("NCCL_MNNVL_ENABLE", "0");
  set("NCCL_NVLS_ENABLE", "0");
}

// NCCL runs one CTA on a multiprocessor; those of both ranks must fit together, and clusters of
// them need room of their own.
void set_multi_rank() {
  set("NCCL_MULTI_RANK_GPU_ENABLE", "1");
  set("NCCL_NVLS_ENABLE", "0");
  set("NCCL_MAX_CTAS", "32");
  set("NCCL_CGA_CLUSTER_SIZE", "0");
}

}  // namespace

std::string_view mode_text(NcclMode mode) {
  switch (mode) {
    case NcclMode::Processes:
      return "process per GPU";
    case NcclMode::OneProcess:
      return "one process";
    case NcclMode::FakeHosts:
      return "two hosts on one GPU";
    case NcclMode::MultiRankGpu:
      return "two ranks on one GPU";
    case NcclMode::Network:
      break;
  }
  return "network";
}

void set_environment(const NcclSetting& setting, const Options& options) {
  if (!setting.algorithm.empty()) {
    set("NCCL_ALGO", setting.algorithm);
    set("NCCL_PROTO", setting.protocol);
  }
  if (setting.channels > 0) {
    set("NCCL_MIN_NCHANNELS", std::to_string(setting.channels));
    set("NCCL_MAX_NCHANNELS", std::to_string(setting.channels));
  }
  if (setting.mode == NcclMode::FakeHosts) {
    set_fake_host(options);
  } else if (setting.mode == NcclMode::MultiRankGpu) {
    set_multi_rank();
  }
  if (!setting.log) {
    return;
  }
  const std::filesystem::path folder(options.rendezvous);
  // All ranks get this: NCCL detects the topology once more to dump it, together with the ranks of
  // its node (ncclTopoGetSystem from 2.21 on), so that rank 0 alone would wait for ever. Rank 0
  // writes the file.
  set("NCCL_TOPO_DUMP_FILE", folder / topology_file(options));
  if (options.rank == 0) {
    set("NCCL_DEBUG", "INFO");
    set("NCCL_DEBUG_SUBSYS", "INIT,GRAPH,TUNING,ENV");
    set("NCCL_DEBUG_FILE", folder / log_file(options));
    set("NCCL_GRAPH_DUMP_FILE", folder / graph_file(options));
  }
}

std::string nccl_environment() {
  std::string all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).starts_with("NCCL_")) {
      all += fmt::format("{}\n", *entry);
    }
  }
  return all;
}

void set_sharing_of_the_gpu(bool at_once) {
  set(kSharing, at_once ? "mps" : "time slices");
}

std::string sharing_of_the_gpu() {
  const char* const value = std::getenv(kSharing);
  return value != nullptr ? value : "time slices";
}

std::string log_file(const Options& options) {
  return options.token + ".log.txt";
}

std::string topology_file(const Options& options) {
  return options.token + ".topology.xml";
}

std::string graph_file(const Options& options) {
  return options.token + ".graphs.xml";
}

}  // namespace trainyard::calibrate
