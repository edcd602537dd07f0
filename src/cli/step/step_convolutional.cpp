// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_convolutional.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/log.h"
#include "cli/common/long_run_display.h"
#include "cli/step/step_html.h"
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

ConvolutionalWorkload convolutional_workload(const StepRequest& request) {
  return load_convolutional_workload(find_workload(request.inputs.workload),
                                     configs_folder() / "workloads" / "convolutional",
                                     request.inputs.workload_settings);
}

}  // namespace

LoweredJob convolutional_job(const StepRequest& request, spdlog::logger& log) {
  const auto runs = [&request](ConvolutionalWorkload of) {
    return [&request, of = std::move(of)](const MachineModel& machine) -> LoweredRun {
      return run_convolutional(machine.cluster, of,
                               step_tables(request, machine.rates, machine.nccl));
    };
  };
  const ConvolutionalWorkload workload = convolutional_workload(request);
  LoweredJob job{.name = workload.name,
                 .machine = {.cluster = load_cluster_inputs(request.inputs, log),
                             .nccl = load_profile(request.inputs.profile),
                             .rates = load_gpu_rates(request.inputs.gpu_rates)},
                 .run = runs(workload),
                 .part_name = convolutional_part_name};
  const auto add_setting = [&](const std::string& key, bool ConvolutionalWorkload::*flag) {
    if (!(workload.*flag)) {
      ConvolutionalWorkload other = workload;
      other.*flag = true;
      job.settings.emplace_back(key + ": true", runs(std::move(other)));
    }
  };
  add_setting("overlap.data", &ConvolutionalWorkload::overlap_data);
  add_setting("channels_last", &ConvolutionalWorkload::has_channels_last);
  return job;
}

int run_convolutional_step(const OptionReader& reader, std::ostream& out) {
  const StepRequest request = read_graph_request(reader, "a convolutional network");
  spdlog::logger log = make_logger(reader);
  const ConvolutionalWorkload workload = convolutional_workload(request);
  const LoweredJob job = convolutional_job(request, log);
  const Cluster& cluster = job.machine.cluster;
  const ConvolutionalRun run = [&] {
    const LongRunDisplay display("step", &log);
    return run_convolutional(cluster, workload,
                             step_tables(request, job.machine.rates, job.machine.nccl));
  }();
  write_trace(request, run.graph, run.result);
  auto report = lowered_report<ConvolutionalReport>(request, cluster, "convolutional", "PyTorch",
                                                    workload, run);
  report.notes = convolutional_notes(request, workload, run);
  report.volumes = volumes_of(request, cluster, run.graph, job.machine.nccl, job.part_name);
  report.interval =
      unmeasured_interval(request, run.step.time, report.mfu(), "a convolution", report.notes);
  for (std::string& note : unmeasured_notes(job.machine.rates, cluster)) {
    report.notes.push_back(std::move(note));
  }
  add_part_notes(cluster, request.inputs, report.notes);
  const auto counts = counts_of(request, cluster, run.simulated, run.graph.operations().size());
  const Document document = with_effects(reader, document_of(report), counts);
  write_result(request.result, document, out,
               [&] { return lowered_html(request, job, run, document); });
  return 0;
}

}  // namespace trainyard
