// SPDX-License-Identifier: Apache-2.0
// The files that commands are run on: the cluster, the workload with its software, and the
// constants of NCCL and of kernels.
#pragma once

#include <spdlog/logger.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/common/options.h"
#include "nccl/timing/profile.h"
#include "parallelism/run/resources.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"
#include "report/formats/document.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Files and changes to them, as the options name them.
struct InputNames {
  std::string cluster;
  ClusterOverrides overrides = {};
  std::string workload = {};  // Empty: none.
  std::vector<std::string> workload_settings = {};
  bool is_default_job = false;                // The command line has --model alone.
  std::optional<std::string> profile = {};    // Constants of NCCL instead of those shipped.
  std::optional<std::string> gpu_rates = {};  // Rates of kernels, the same.
  bool lists_estimates = false;               // Each estimate of the cluster is a note.

  // All of --set: those of the cluster, then those of the workload.
  [[nodiscard]] std::vector<std::string> settings() const;
};

// The option --model, of commands with --workload: a model in the place of the workload's own.
[[nodiscard]] Option model_option();
// Throws ConfigError without a workload and a model.
void require_job(const OptionReader& reader);
// The file of a workload or a model; a wrong name is answered with the nearest ones of both kinds.
[[nodiscard]] std::filesystem::path find_workload(std::string_view name_or_file);
[[nodiscard]] std::filesystem::path find_model(std::string_view name_or_file);

// Reads --cluster, --nodes, --gpus-per-node, --set, --pull, and --workload, --model, --profile,
// --gpu-rates and --estimates where the command has them. With a workload or a model, --set changes
// it where the first key is one of a workload. Throws ConfigError without a cluster.
[[nodiscard]] InputNames read_input_names(const OptionReader& reader);

struct JobInputs {
  Workload workload;
  SoftwareProfile software;
};

struct Inputs {
  Workload workload;
  MachineModel machine;
};

// Read and check the files, and log the warnings of the cluster. Throw ConfigError.
[[nodiscard]] Cluster load_cluster_inputs(const InputNames& names, spdlog::logger& log);
[[nodiscard]] Inputs load_inputs(const InputNames& names, spdlog::logger& log);
[[nodiscard]] JobInputs load_job(const std::string& workload,
                                 const std::vector<std::string>& settings = {});
[[nodiscard]] SoftwareProfile load_software(const std::string& name);
// A file, or the shipped one.
[[nodiscard]] nccl::Profile load_profile(const std::optional<std::string>& file);
[[nodiscard]] GpuRates load_gpu_rates(const std::optional<std::string>& file);

// Settings and links of the cluster.
[[nodiscard]] RunInputs run_inputs(const Cluster& cluster, std::vector<std::string> settings);
// Settings, links, and the options that change the cluster, for a report.
[[nodiscard]] RunInputs inputs_of_run(const Cluster& cluster, const InputNames& names);

// Says what the job is where the command line names a model alone.
void add_job_note(const InputNames& names, std::vector<std::string>& notes);

// Notes what the cluster stages through host memory, which parts are the user's, and how many
// values of the cluster nobody has measured or published, or each of these with its source.
void add_part_notes(const Cluster& cluster, const InputNames& names,
                    std::vector<std::string>& notes);

}  // namespace trainyard
