// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/convolutional_run.h"

#include <spdlog/fmt/fmt.h>

#include "parallelism/lowering/convolutional_graph.h"
#include "parallelism/memory/convolutional_memory.h"
#include "parallelism/operators/convolution_time.h"
#include "parallelism/run/gpu_kinds.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// So that times and bytes of a step fit 64 bits.
constexpr double kMaxFlops = 1e16;
constexpr double kMaxKept = 1e15;

void check_images(const ConvolutionalWorkload& workload) {
  const auto samples = static_cast<double>(workload.batch);
  const double flops = samples * training_flops(workload.model);
  double kept = 0.0;
  for (const ImageLayer& layer : workload.model.layers) {
    kept += samples * (layer.forward.elements + static_cast<double>(layer.kept));
  }
  if (flops > kMaxFlops || kept > kMaxKept) {
    throw ConfigError(fmt::format(
        "batch.micro: expected at most {:.0e} operations and {:.0e} elements of activations, found "
        "{:.3g} and {:.3g}",
        kMaxFlops, kMaxKept, flops, kept));
  }
}

}  // namespace

ConvolutionalRun run_convolutional(const Cluster& cluster, const ConvolutionalWorkload& workload,
                                   const StepTables& tables) {
  const auto ranks = static_cast<int>(cluster.gpus.size());
  check_images(workload);
  const bool is_folded = !tables.shares_network && !tables.slow_rank && !tables.jitter.has_any();
  check_unfolded(tables, ranks);
  const GpuModel& gpu = gpu_of(cluster, "convolutional network");
  ConvolutionalRun run;
  const ConvolutionalJob job{.workload = workload,
                             .rates = convolutional_rates(gpu, tables.rates, workload.precision),
                             .ranks = ranks,
                             .is_folded = is_folded};
  run.peak = job.rates.peak;
  run.memory = convolutional_memory(workload, ranks);
  run.memory_size = device_capacity(gpu.memory.value);
  run.memory_verdict = describe_fit(run.memory, run.memory_size, "each rank", "");
  run.buckets = ranks > 1 ? gradient_buckets(workload.model, workload.bucket).size() : 0;
  const ParallelPlan plan = gradient_plan(workload, ranks);
  run.compression = compression_figures(network_parameters(workload.model.layers, plan), plan,
                                        gradient_software(), job.rates);
  run.graph = lower_convolutional(job);
  run_lowered(cluster, tables, SimTime(), "convolutional", run);
  return run;
}

}  // namespace trainyard
