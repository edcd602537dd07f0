// SPDX-License-Identifier: Apache-2.0
#include "parallelism/step_run.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <string>

#include "parallelism/cluster_times.h"
#include "parallelism/software_memory.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// The one kind of GPU that all ranks have.
const GpuModel& gpu_of(const Cluster& cluster, const Catalogue& catalogue) {
  const Topology& topology = cluster.topology;
  const std::string& name = topology.parts()[topology.node(cluster.gpus.front()).part];
  for (const NodeId gpu : cluster.gpus) {
    const std::string& other = topology.parts()[topology.node(gpu).part];
    if (other != name) {
      throw ConfigError(fmt::format(
          "step: expected GPUs of one kind, as passes of unequal ones are not modelled yet, found "
          "{} and {}",
          name, other));
    }
  }
  return catalogue.gpus().at(name);
}

void add_memory(const Workload& workload, const SoftwareProfile& software, const GpuModel& gpu,
                StepRun& run) {
  const StepMemory memory = step_memory(workload.model, run.plan, software);
  run.memory = memory.highest().highest().use;
  run.memory_size = gpu.memory.value;
  run.memory_verdict = memory_verdict(memory, run.memory_size).text;
}

}  // namespace

StepRun run_workload(const Cluster& cluster, const Workload& workload,
                     const SoftwareProfile& software, const StepTables& tables) {
  StepRun run{.plan = plan_for(workload, static_cast<int>(cluster.gpus.size())),
              .step = {},
              .overlap = overlap_of(workload.overlap, software)};
  const GpuModel& gpu = gpu_of(cluster, tables.catalogue);
  const ComputeRates rates = compute_rates(gpu, tables.rates, software, workload.precision);
  add_memory(workload, software, gpu, run);
  run.peak = rates.peak;
  std::optional<ClusterTimes::Nccl> runtime;
  if (tables.nccl != nullptr) {
    runtime.emplace(ClusterTimes::Nccl{
        .catalogue = tables.catalogue, .profile = *tables.nccl, .engine = tables.engine});
  }
  ClusterTimes times(cluster, runtime, tables.fidelity);
  run.step = step_time({.model = workload.model,
                        .plan = run.plan,
                        .rates = rates,
                        .software = software,
                        .overlap = run.overlap,
                        .server_of_rank = times.servers(),
                        .domain_of_rank = times.domains(),
                        .loads = workload.routing},
                       times);
  run.calls = times.calls();
  run.simulated = times.simulated();
  return run;
}

}  // namespace trainyard
