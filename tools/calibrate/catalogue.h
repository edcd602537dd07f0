// SPDX-License-Identifier: Apache-2.0
// All that can be measured, in the order in which it is: which machines have it, and how long it
// takes. Backends take measurements by their identifiers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibrate/machine.h"
#include "calibrate/options.h"

namespace trainyard::calibrate {

// How the ranks of a measurement of NCCL come to be.
enum class NcclMode {
  Processes,     // One process for each GPU of this node.
  OneProcess,    // One process drives all GPUs of this node.
  FakeHosts,     // Two processes on one GPU, each its own host for NCCL: sockets on loopback.
  MultiRankGpu,  // Two processes on one GPU by NCCL_MULTI_RANK_GPU_ENABLE: peer access.
  Network,       // The processes of a launcher, on several nodes.
};

// What NCCL is told by its environment; empty and 0 leave the choice to it.
struct NcclSetting {
  NcclMode mode = NcclMode::Processes;
  std::string algorithm = {};  // As NCCL_ALGO takes it.
  std::string protocol = {};
  int channels = 0;
  bool log = false;  // Runs each operation once, for what NCCL says of itself.
};

struct Measurement {
  std::string id;
  std::string what;
  int min_gpus = 1;
  bool with_cublaslt = false;
  std::optional<NcclSetting> nccl = {};
  // On a machine of 2023; the plan's estimate, and a third of the watchdog's patience.
  int seconds = 0;
};

[[nodiscard]] const std::vector<Measurement>& catalogue();

// Those that the options ask for. Throws ConfigError where a pattern of --only matches none.
[[nodiscard]] std::vector<Measurement> planned(const Options& options);

// Why it cannot be had on this machine; empty where it can.
[[nodiscard]] std::string why_not(const Measurement& measurement, const Machine& machine);

// The measurement of a mode of NCCL that comes first, in which nothing is forced.
[[nodiscard]] std::string first_of_mode(NcclMode mode);

[[nodiscard]] int timeout_of(const Measurement& measurement, const Options& options);

// "2.30.3" as 23003, which is how NCCL counts from 2.9 on; 0 for anything else.
[[nodiscard]] int nccl_version_code(const std::string& version);

// Two processes share a GPU only where it runs them at once, or where time is of no matter.
[[nodiscard]] inline bool shares_a_gpu(NcclMode mode) {
  return mode == NcclMode::FakeHosts || mode == NcclMode::MultiRankGpu;
}

}  // namespace trainyard::calibrate
