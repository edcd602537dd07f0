// SPDX-License-Identifier: Apache-2.0
// Predicts measured training steps: each run on the cluster of its case, with the software and the
// rates that `trainyard step` would take.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "calibration/training/step_values.h"
#include "calibration/training/training_score.h"
#include "hw/parts/catalogue.h"
#include "nccl/timing/profile.h"
#include "parallelism/closed_forms/step_time.h"
#include "parallelism/run/step_run.h"
#include "parallelism/traffic/cluster_times.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Files that every prediction reads, once. May be shared by threads.
struct StepConstants {
  // `configs`: the folder of that name. Throws ConfigError.
  StepConstants(const std::filesystem::path& configs, const Catalogue& gpus_and_links);
  // Whether there are rates of kernels on the GPUs of all rows that are predicted.
  [[nodiscard]] bool are_measured(const LoadedTrainingCase& loaded) const;

  std::filesystem::path folder;
  const Catalogue& catalogue;
  nccl::Profile profile;
  GpuRates rates;
  std::unique_ptr<nccl::SearchMemory> searches;  // Searches of nodes.
};

// Serves one thread: it keeps clusters and the times of collectives that it has seen.
class StepPrediction {
 public:
  explicit StepPrediction(const StepConstants& constants,
                          StepMethod method = StepMethod::ClosedForms)
      : constants_(constants), method_(method) {}

  // Predicts with these rates. Throws ConfigError for what is not modelled, or has no rates.
  [[nodiscard]] StepTime predict(const TrainingCase& item, const TrainingRun& run,
                                 const StepValues& values);

 private:
  // A machine whose cluster the times refer to: it stays where it is.
  struct Machine {
    Machine(Cluster built, const StepConstants& constants);
    Cluster cluster;
    ClusterTimes times;
  };
  [[nodiscard]] Machine& machine_of(const TrainingCase& item, const TrainingRun& run);
  [[nodiscard]] const SoftwareProfile& software_of(const TrainingRun& run);

  const StepConstants& constants_;
  StepMethod method_;
  // Machines by case, kind of GPU, number of GPUs and of those in a node.
  std::map<std::tuple<std::string, std::string, int, int>, std::unique_ptr<Machine>> machines_;
  std::map<std::string, SoftwareProfile> software_;
};

}  // namespace trainyard
