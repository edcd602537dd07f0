// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_recommender.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/log.h"
#include "cli/common/long_run_display.h"
#include "cli/step/step_html.h"
#include "cli/step/step_request.h"
#include "parallelism/lowering/recommender_graph.h"
#include "parallelism/run/recommender_run.h"
#include "report/formats/output.h"
#include "report/steps/recommender_report.h"

namespace trainyard {
namespace {

std::string tables_note(const RecommenderRun& run) {
  const TableShare& max = run.sharding.dealt[run.sharding.busiest()];
  if (max.tables.empty()) {
    return "no table is sharded: all are on every rank, or cut by rows";
  }
  return fmt::format(
      "tables are sharded by what they look up: rank {} has {} pieces and looks up most, the "
      "mean rank {:.0f} % of that",
      run.sharding.busiest(), max.tables.size(), 100.0 * run.sharding.balance());
}

std::vector<std::string> notes_of(const StepRequest& request, const RecommenderSoftware& software,
                                  const RecommenderRun& run) {
  std::vector<std::string> notes{fmt::format(
      "a graph of {} operations on {} ranks (docs/models/recommenders.md); parts are those of "
      "rank {}, which waits least for others",
      run.graph.operations().size(), run.gpus(), run.step.critical_rank)};
  for (std::string& note : graph_notes(request, run)) {
    notes.push_back(std::move(note));
  }
  notes.push_back(tables_note(run));
  const auto word = [](bool overlaps) {
    return overlaps ? "overlapped with computation" : "exposed";
  };
  notes.push_back(
      fmt::format("software {}: {} operators; indices {}, traffic of tables {}, gradients {}",
                  software.name, software.fusion, word(run.overlaps_input),
                  word(run.overlaps_tables), word(run.overlaps_data)));
  notes.push_back(run.memory_verdict);
  return notes;
}

RecommenderWorkload recommender_workload(const StepRequest& request) {
  return load_recommender_workload(find_workload(request.inputs.workload),
                                   configs_folder() / "workloads" / "recommenders",
                                   request.inputs.workload_settings);
}

RecommenderSoftware software_of(const RecommenderWorkload& workload) {
  return RecommenderSoftware::load(find_config("software/recommenders", workload.software));
}

}  // namespace

LoweredJob recommender_job(const StepRequest& request, spdlog::logger& log) {
  const RecommenderWorkload workload = recommender_workload(request);
  const RecommenderSoftware software = software_of(workload);
  const auto runs = [&request, software](RecommenderWorkload of) {
    return [&request, software, of = std::move(of)](const MachineModel& machine) -> LoweredRun {
      RecommenderSoftware with = software;
      with.fixed = machine.software.fixed;  // A machine with faster launches has less of it.
      return run_recommender(machine.cluster, of, with,
                             step_tables(request, machine.rates, machine.nccl));
    };
  };
  LoweredJob job{.name = workload.name,
                 .machine = {.cluster = load_cluster_inputs(request.inputs, log),
                             .nccl = load_profile(request.inputs.profile),
                             .rates = load_gpu_rates(request.inputs.gpu_rates)},
                 .run = runs(workload),
                 .part_name = recommender_part_name};
  job.machine.software.fixed = software.fixed;
  const auto add_setting = [&](const std::string& key,
                               std::optional<bool> RecommenderWorkload::*choice, bool is_usual) {
    if (!(workload.*choice).value_or(is_usual)) {
      RecommenderWorkload other = workload;
      other.*choice = true;
      job.settings.emplace_back(key + ": true", runs(std::move(other)));
    }
  };
  add_setting("overlap.input", &RecommenderWorkload::overlap_input, software.overlap_input);
  add_setting("overlap.tables", &RecommenderWorkload::overlap_tables, software.overlap_tables);
  add_setting("overlap.data", &RecommenderWorkload::overlap_data, software.overlap_data);
  return job;
}

int run_recommender_step(const OptionReader& reader, std::ostream& out) {
  const StepRequest request = read_graph_request(reader, "a recommendation model");
  spdlog::logger log = make_logger(reader);
  const RecommenderWorkload workload = recommender_workload(request);
  const RecommenderSoftware software = software_of(workload);
  const LoweredJob job = recommender_job(request, log);
  const Cluster& cluster = job.machine.cluster;
  const RecommenderRun run = [&] {
    const LongRunDisplay display("step", &log);
    return run_recommender(cluster, workload, software,
                           step_tables(request, job.machine.rates, job.machine.nccl));
  }();
  write_trace(request, run.graph, run.result);
  auto report = lowered_report<RecommenderReport>(request, cluster, "recommender", software.name,
                                                  workload, run);
  report.notes = notes_of(request, software, run);
  report.interval =
      unmeasured_interval(request, run.step.time, report.mfu(), "a table", report.notes);
  report.volumes = volumes_of(request, cluster, run.graph, job.machine.nccl, job.part_name);
  add_part_notes(cluster, request.inputs, report.notes);
  const auto counts = counts_of(request, cluster, run.simulated, run.graph.operations().size());
  const Document document = with_effects(reader, document_of(report), counts);
  write_result(request.result, document, out,
               [&] { return lowered_html(request, job, run, document); });
  return 0;
}

}  // namespace trainyard
