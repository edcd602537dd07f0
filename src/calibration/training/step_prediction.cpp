// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/step_prediction.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "nccl/machine/job_nodes.h"
#include "parallelism/lowering/step_graph.h"
#include "parallelism/run/gpu_kinds.h"
#include "parallelism/workload/workload.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Uses the first ones of the GPUs that are there.
void use_gpus(Cluster& cluster, const TrainingRun& run) {
  const auto gpus = static_cast<std::size_t>(run.gpus);
  if (cluster.gpus.size() < gpus) {
    throw ConfigError(fmt::format("step: expected {} GPUs in the cluster of the case, found {}",
                                  run.gpus, cluster.gpus.size()));
  }
  cluster.gpus.resize(gpus);
}

// Measured steps are of years before NCCL 2.30, from which on a GPU that is the only one of its
// group below a PCIe switch takes the first of two NICs there (nccl/machine/machine.cpp).
constexpr nccl::Version kMeasuredVersion = nccl::Version::V2_28;

// NCCL or RCCL, where they run: plain rings stand in for what other GPUs have, as in
// `trainyard step`.
std::optional<ClusterTimes::Nccl> runtime_on(const Cluster& cluster,
                                             const StepConstants& constants) {
  for (const GpuModel* const gpu : gpu_kinds(cluster).models) {
    if (!nccl::library_of(*gpu)) {
      return std::nullopt;
    }
  }
  return ClusterTimes::Nccl{.profile = constants.profile,
                            .version = kMeasuredVersion,
                            .searches = constants.searches.get()};
}

}  // namespace

StepConstants::StepConstants(const std::filesystem::path& configs, const Catalogue& gpus_and_links)
    : folder(configs),
      catalogue(gpus_and_links),
      profile(nccl::Profile::load(configs / "nccl" / "profile.yaml")),
      rates(GpuRates::load(configs / "hardware" / "gpu-rates.yaml")),
      searches(std::make_unique<nccl::SearchMemory>()) {}

bool StepConstants::are_measured(const LoadedTrainingCase& loaded) const {
  return std::ranges::all_of(loaded.rows, [&](const TrainingCaseRow& row) {
    if (!row.run) {
      return true;
    }
    const auto gpu = catalogue.gpus().find(row.run->gpu);
    return gpu == catalogue.gpus().end() || rates.are_measured(gpu->second);
  });
}

StepPrediction::Machine::Machine(Cluster built, const StepConstants& constants)
    : cluster(std::move(built)), times(cluster, runtime_on(cluster, constants), Fidelity::Flow) {}

StepPrediction::Machine& StepPrediction::machine_of(const TrainingCase& item,
                                                    const TrainingRun& run) {
  std::unique_ptr<Machine>& machine = machines_[{item.name, run.gpu, run.gpus, run.gpus_per_node}];
  if (!machine) {
    ClusterOverrides overrides = item.overrides(run);
    if (constants_.catalogue.gpus().contains(run.gpu)) {
      overrides.settings.push_back("server.gpu=" + run.gpu);  // Rows of a case may have several.
    }
    Cluster cluster = load_cluster(item.cluster, constants_.catalogue, overrides);
    use_gpus(cluster, run);
    machine = std::make_unique<Machine>(std::move(cluster), constants_);
  }
  return *machine;
}

const SoftwareProfile& StepPrediction::software_of(const TrainingRun& run) {
  if (!run.software.profile) {
    throw ConfigError("step: expected parallel.software in the case, found none");
  }
  const std::string& name = *run.software.profile;
  const auto found = software_.find(name);
  if (found != software_.end()) {
    return found->second;
  }
  const std::filesystem::path folder = constants_.folder / "software";
  return software_.emplace(name, SoftwareProfile::load(folder / (name + ".yaml"), folder))
      .first->second;
}

StepTime StepPrediction::predict(const TrainingCase& item, const TrainingRun& run,
                                 const StepValues& values) {
  const SoftwareProfile software = values.adjusted(software_of(run));
  Machine& machine = machine_of(item, run);
  const Topology& topology = machine.cluster.topology;
  const std::string& part = topology.parts()[topology.node(machine.cluster.gpus.front()).part];
  const GpuModel& gpu = machine.cluster.catalogue.gpus().at(part);
  const ComputeRates rates =
      compute_rates(gpu, values.leaves_out_own ? values.rates.without(gpu) : values.rates, software,
                    run.precision);
  const OverlapChoice choice{.tensor = run.software.overlaps_tensor,
                             .data = run.software.overlaps_data,
                             .pipeline = run.software.overlaps_pipeline,
                             .expert = run.software.overlaps_experts};
  machine.times.use_plan(run.plan);
  const StepJob job{.model = run.model,
                    .plan = run.plan,
                    .rates = rates,
                    .software = software,
                    .overlap = overlap_of(choice, software),
                    .server_of_rank = machine.times.servers(),
                    .domain_of_rank = machine.times.domains()};
  return method_ == StepMethod::Graph ? run_step_graph(job, machine.times, Folding::Folded).step
                                      : step_time(job, machine.times);
}

}  // namespace trainyard
