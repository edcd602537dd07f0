// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_convolutional.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>
#include <vector>

#include "calibration/training/step_intervals.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/log.h"
#include "cli/common/long_run_display.h"
#include "cli/step/step_request.h"
#include "parallelism/lowering/convolutional_graph.h"
#include "parallelism/run/convolutional_run.h"
#include "report/formats/output.h"
#include "report/steps/convolutional_report.h"

namespace trainyard {
namespace {

std::vector<std::string> convolutional_notes(const StepRequest& request,
                                             const ConvolutionalWorkload& workload,
                                             const ConvolutionalRun& run) {
  std::vector<std::string> notes{fmt::format(
      "a graph of {} operations on {} ranks (docs/models/convolutional.md); convolutions are timed "
      "as products of matrices, all else by what it reads and writes",
      run.graph.operations().size(), run.gpus())};
  for (std::string& note : graph_notes(request, run)) {
    notes.push_back(std::move(note));
  }
  if (run.gpus() > 1) {
    notes.push_back(fmt::format("gradients of 32 bits in {} buckets, {}", run.buckets,
                                workload.overlap_data ? "overlapped with computation" : "exposed"));
  }
  if (run.compression) {
    notes.push_back(run.compression->note());
  }
  notes.push_back(run.memory_verdict);
  return notes;
}

}  // namespace

int run_convolutional_step(const OptionReader& reader, std::ostream& out) {
  const StepRequest request = read_graph_request(reader, "a convolutional network");
  spdlog::logger log = make_logger(reader);
  const Cluster cluster = load_cluster_inputs(request.inputs, log);
  const ConvolutionalWorkload workload = load_convolutional_workload(
      find_workload(request.inputs.workload), configs_folder() / "workloads" / "convolutional",
      request.inputs.workload_settings);
  const nccl::Profile profile = load_profile(request.inputs.profile);
  const GpuRates rates = load_gpu_rates(request.inputs.gpu_rates);
  const ConvolutionalRun run = [&] {
    const LongRunDisplay display("step", &log);
    return run_convolutional(cluster, workload, step_tables(request, rates, profile));
  }();
  write_trace(request, run.graph, run.result);
  auto report = lowered_report<ConvolutionalReport>(request, cluster, "convolutional", "PyTorch",
                                                    workload, run);
  report.notes = convolutional_notes(request, workload, run);
  report.volumes = volumes_of(request, cluster, run.graph, profile, convolutional_part_name);
  if (!request.slow_rank && !request.jitter.has_any()) {
    // No constant was fitted to a convolution on any GPU.
    report.interval = around(
        run.step.time, StepIntervals::load(step_intervals_file()).band({.is_measured = false}));
    report.notes.emplace_back(
        "nine measured steps in ten of transformers were within such bounds, of generations of "
        "GPUs that took the shares of the others; no kernel of a convolution was measured");
  }
  for (std::string& note : unmeasured_notes(rates, cluster)) {
    report.notes.push_back(std::move(note));
  }
  add_part_notes(cluster, request.inputs, report.notes);
  const auto counts = counts_of(request, cluster, run.simulated, run.graph.operations().size());
  write_output(request.output,
               render(with_effects(reader, document_of(report), counts), request.format), out);
  return 0;
}

}  // namespace trainyard
