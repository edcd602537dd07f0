// SPDX-License-Identifier: Apache-2.0
// Lists what may be wrong with a machine, each as a what-if: the same job on a changed machine, or
// with changed settings of NCCL (docs/commands/doctor.md).
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "calibration/predict/validation_case.h"
#include "nccl/timing/profile.h"
#include "nccl/tuning/communicator.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// One degree or place of a fault. Empty fields stay as they are.
struct FaultVariant {
  std::string change;  // The change for the simulation: "NCCL_MAX_NCHANNELS=4".
  std::vector<std::pair<std::string, std::string>> environment = {};
  // Throws ConfigError where the machine does not work without what is lost.
  std::function<Cluster(const Cluster&)> machine = {};
  double gpu_speed = 1.0;  // Speed of thread blocks.
};

struct MachineFault {
  std::string code;   // "nic-down"
  std::string title;  // "a NIC is down"
  std::vector<FaultVariant> variants = {};
  std::string left_out = {};  // Why it makes no sense here; then there are no variants.
};

// The machine and the job as they are.
struct HealthyJob {
  const Cluster& cluster;
  const ValidationCase& item;  // Its variables: what the user set is no fault.
  const nccl::Communicator& communicator;
  nccl::MachineKind machine;
};

// All that are known, in a fixed order; the first represents none: "healthy", with one variant that
// changes nothing. `job` must outlive them.
[[nodiscard]] std::vector<MachineFault> faults_of(const HealthyJob& job);

// The speeds of thread blocks, all of them: a collective waits for its slowest GPU.
[[nodiscard]] nccl::Profile with_gpu_speed(const nccl::Profile& profile, double speed);

}  // namespace trainyard
