// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/collective/collective_groups.h"
#include "cli/collective/collective_hccl.h"
#include "cli/collective/collective_html.h"
#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_mpi.h"
#include "cli/collective/collective_nccl.h"
#include "cli/collective/collective_request.h"
#include "cli/collective/collective_traffic.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/log.h"
#include "cli/common/long_run_display.h"
#include "cli/common/mixed_options.h"
#include "cli/common/options.h"
#include "cli/common/plot.h"
#include "collectives/run/bounds.h"
#include "parallelism/run/tier_volumes.h"
#include "report/formats/output.h"
#include "report/formats/trace.h"
#include "report/results/collective_report.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample = R"(
OP is all_reduce, all_gather, reduce_scatter, alltoall, alltoallv, broadcast, reduce, sendrecv,
scatter, gather or barrier; sizes and columns are those of nccl-tests. With several algorithms, the
fastest of each size has a *. The status is 1 if a run never was complete, such as for lost packets.

Examples:
  trainyard collective all_reduce --cluster dgx-h100 -b 8 -e 8G --algo ring,tree
  trainyard collective all_reduce --cluster dgx-h100 --nodes 4 --against my.log
  trainyard collective alltoall --cluster hgx-h100-clos --nodes 16 --runtime plain --format csv
)";

// Size by size, the algorithms in the order asked for, then that of a file.
std::vector<CollectiveJob> jobs_of(const CollectiveRequest& request,
                                   const CollectiveInputs& inputs) {
  std::vector<CollectiveJob> jobs;
  PacketOptions unobserved = request.packet.options;
  unobserved.queue_times = false;
  unobserved.sample_every = {};
  for (const Bytes size : inputs.sizes) {
    CollectiveJob job = plain_job(request, inputs, size);
    job.packet = unobserved;
    for (const Algorithm algorithm : inputs.algorithms) {
      job.algorithm = algorithm;
      jobs.push_back(job);
    }
    if (inputs.imported) {
      job.schedule = inputs.imported.get();
      jobs.push_back(job);
    }
  }
  // Files are of the first algorithm at the largest size.
  CollectiveJob& observed = jobs[jobs.size() - inputs.runs()];
  observed.keeps_counters = request.packet.has_files();
  observed.packet = request.packet.options;
  return jobs;
}

struct PlainRun {
  CollectiveJob job;
  CollectiveResult result = {};          // Without the loads of links, which add up to
  std::vector<TierVolume> volumes = {};  // these.
};

std::vector<PlainRun> run_jobs(const Cluster& cluster, const std::vector<CollectiveJob>& jobs,
                               unsigned threads, spdlog::logger& log) {
  std::vector<PlainRun> runs(jobs.size());
  const LinkResources tiers(cluster.topology, cluster.routing.fabric);
  TransferDisplay display("collective", jobs.size(), log);
  run_tasks(jobs.size(), threads, "", [&](std::size_t index) {
    const CollectiveJob& job = runs[index].job = jobs[index];
    CollectiveResult& result = runs[index].result;
    result = run_collective(cluster, job, &display.progress());
    runs[index].volumes = tier_volumes(tiers, traffic_of(result.link_use, "collective"));
    result.link_use = {};
    log.debug("{} {} of {}: {}, {} channels, {} pieces, {} transfers", to_string(job.operation),
              algorithm_name(job), to_string(job.size), to_string(result.time), result.channels,
              result.pieces, result.network.messages);
  });
  return runs;
}

CollectiveRow row_of(const PlainRun& run, const CollectiveInputs& inputs) {
  CollectiveRow row = timed_row(run.job.operation, run.job.size, run.result.time, inputs);
  row.algorithm = algorithm_name(run.job);
  row.channels = run.result.channels;
  row.protocol = "-";
  row.transfers = run.result.network.messages;
  row.fingerprint = run.result.fingerprint;
  row.volumes = run.volumes;
  return row;
}

void add_comparison(const CollectiveRequest& request, const CollectiveInputs& inputs,
                    CollectiveReport& report) {
  if (!request.compare) {
    return;
  }
  report.show_bounds = true;
  const CollectiveBounds bounds(inputs.cluster, request.operation,
                                RankId(static_cast<std::uint32_t>(request.root)),
                                inputs.matrix ? &*inputs.matrix : nullptr);
  for (CollectiveRow& row : report.rows) {
    row.bound = bounds.at(row.size).time();
  }
  std::vector<std::string> fastest;
  for (const Crossover& each : crossovers(report.rows)) {
    fastest.push_back(fmt::format("{} from {}", each.algorithm, to_string(each.size)));
  }
  report.notes.insert(report.notes.begin(), fmt::format("fastest: {}", fmt::join(fastest, ", ")));
}

// Adds notes on what was assumed or left out, and on options that changed nothing.
void add_request_notes(const CollectiveRequest& request, const CollectiveInputs& inputs,
                       std::vector<std::string>& notes) {
  const bool has_nvls = std::ranges::find(inputs.algorithms, &kNvls) != inputs.algorithms.end();
  const bool in_nccl =
      request.operation != Operation::Barrier && request.operation != Operation::AllToAllV;
  notes.push_back(fmt::format(
      "plain runtime: links and latencies only; without launch, protocol and proxy costs{} small "
      "sizes come out faster than NCCL runs them{}",
      in_nccl ? ", which --runtime nccl adds for NVIDIA GPUs," : "",
      has_nvls ? "; nvls does at any size, as nothing but its bytes is charged"
               : "; NCCL prefers NVLS (--algo nvls) on NVSwitch nodes from Hopper on"));
  if (request.runtime.fidelity() == Fidelity::Analytical) {
    notes.push_back("analytical: a lower bound; transfers do not see each other");
  }
  if (request.runtime.fidelity() == Fidelity::Packet) {
    add_packet_notes(request.packet, inputs.cluster.routing, notes);
  }
  if (inputs.ranks() == 1) {
    notes.push_back("one rank: nothing crosses a link");
  }
  for (const Algorithm algorithm : inputs.algorithms) {
    if (request.piece && algorithm->stages == nullptr) {
      notes.push_back(
          fmt::format("--chunk did not influence {}: it has no pipeline", to_string(algorithm)));
    }
  }
}

// For each algorithm at the largest size: how it was laid out, what bounds it and, with packets,
// how they fared.
void add_job_notes(const Cluster& cluster, const CollectiveJob& job, const CollectiveResult& result,
                   std::vector<std::string>& notes) {
  const std::string_view algorithm = algorithm_name(job);
  for (const std::string& remark : result.remarks) {
    notes.push_back(fmt::format("{}: {}", algorithm, remark));
  }
  if (job.fidelity == Fidelity::Packet) {
    notes.push_back(fmt::format("{} at {}: packets: {}", algorithm, to_string(job.size),
                                describe(result.network.packets)));
  }
  for (const std::string& note : extra_notes(result.extras, result.network.packets)) {
    notes.push_back(fmt::format("{} at {}: {}", algorithm, to_string(job.size), note));
  }
  if (!result.bottleneck) {
    return;
  }
  const Link& link = cluster.topology.link(result.bottleneck->link);
  notes.push_back(fmt::format(
      "{} at {}: busiest link {} -> {} ({}, {:.1f} GB/s) is in use {:.1f} % of the time", algorithm,
      to_string(job.size), cluster.topology.node(link.source).name,
      cluster.topology.node(link.target).name, to_string(link.spec.kind),
      link.spec.bandwidth.gigabytes_per_second(), 100.0 * result.bottleneck->utilisation));
}

CollectiveReport report_of(const CollectiveRequest& request, CollectiveInputs& inputs,
                           const std::vector<PlainRun>& runs) {
  CollectiveReport report = empty_report(request, inputs);
  report.runtime = request.runtime.name();
  report.fidelity = request.runtime.engine_name();
  report.show_fingerprint = request.fingerprint;
  for (const PlainRun& run : runs) {
    report.rows.push_back(row_of(run, inputs));
  }
  mark_best(report.rows);
  report.notes = std::move(inputs.notes);
  add_request_notes(request, inputs, report.notes);
  for (const PlainRun& run : runs) {
    if (run.job.size == inputs.sizes.back()) {
      add_job_notes(inputs.cluster, run.job, run.result, report.notes);
    }
  }
  add_part_notes(inputs.cluster, request.inputs, report.notes);
  return report;
}

// Takes away the runs that never were complete, and says why.
void leave_out_broken(std::vector<PlainRun>& runs, spdlog::logger& log) {
  std::erase_if(runs, [&](const PlainRun& run) {
    if (run.result.complaint) {
      log.error("{} {} of {}: {}", to_string(run.job.operation), algorithm_name(run.job),
                to_string(run.job.size), *run.result.complaint);
    }
    return run.result.complaint.has_value();
  });
}

ShownRun show(const Cluster& cluster, CollectiveJob job, TraceRecorder& recorder) {
  const std::string algorithm(algorithm_name(job));
  recorder.say("algorithm", algorithm);
  job.trace = &recorder;
  const CollectiveResult run = run_collective(cluster, job);
  const std::string what = fmt::format("{} of {}", algorithm, to_string(job.size));
  return {.what = what,
          .time = run.time,
          .traffic = traffic_of(run.link_use, what),
          .complaint = run.complaint};
}

CollectiveOutcome run_plain(const CollectiveRequest& request, CollectiveInputs& inputs,
                            spdlog::logger& log) {
  std::vector<PlainRun> runs =
      run_jobs(inputs.cluster, jobs_of(request, inputs), request.threads, log);
  const PlainRun& largest_of_first = runs[runs.size() - inputs.runs()];
  write_packet_files(request.packet, inputs.cluster.topology, largest_of_first.result.port_counters,
                     largest_of_first.result.samples);
  const CollectiveJob shown = largest_of_first.job;
  const std::size_t asked = runs.size();
  leave_out_broken(runs, log);
  return {.report = report_of(request, inputs, runs),
          .complete = runs.size() == asked,
          .show = [&cluster = inputs.cluster, shown](TraceRecorder& recorder) {
            return show(cluster, shown, recorder);
          }};
}

// Returns nothing for what an engine with packets, or one beside NCCL's event model, has done.
std::optional<RunCounts> counts_of(const CollectiveRequest& request, const Cluster& cluster,
                                   const CollectiveReport& report) {
  if (request.runtime.engine == Fidelity::Packet || (request.nccl && request.runtime.engine)) {
    return std::nullopt;
  }
  RunCounts counts{.gpus = cluster.gpus.size(), .communicators = request.nccl ? 1U : 0U};
  for (const CollectiveRow& row : report.rows) {
    counts.rank_calls += row.nccl ? static_cast<std::size_t>(report.ranks) : 0;
    counts.events += row.transfers;
  }
  return counts;
}

int run_collective_command(const OptionReader& reader, std::ostream& out) {
  const CollectiveRequest request = read_collective_request(reader);
  spdlog::logger log = make_logger(reader);
  if (request.groups) {
    const GroupsOutcome run = run_groups(request, log);
    const Document document = with_effects(reader, document_of(run.report));
    write_result(request.result, document, out, [&] { return groups_html(document, run); });
    return run.complete ? 0 : 1;
  }
  CollectiveInputs inputs = load_collective_inputs(request, log);
  CollectiveOutcome run = request.nccl   ? run_nccl(request, inputs, log)
                          : request.hccl ? run_hccl(request, inputs, log)
                          : request.mpi  ? run_mpi(request, inputs, log)
                                         : run_plain(request, inputs, log);
  add_comparison(request, inputs, run.report);
  if (request.trace) {
    TraceRecorder recorder;
    (void)run.show(recorder);
    write_file(*request.trace, chrome_trace(recorder));
  }
  if (request.plot && !run.report.rows.empty()) {
    write_plot(*request.plot, render(run.report, Format::Json));
  }
  const Document document =
      with_effects(reader, document_of(run.report), counts_of(request, inputs.cluster, run.report));
  write_result(request.result, document, out,
               [&] { return collective_html(document, run.report, inputs.cluster, run.show); });
  return run.complete ? 0 : 1;
}

}  // namespace

Command collective_command() {
  return {.name = "collective",
          .form = "collective OP",
          .summary = "time and bandwidth over message sizes, in nccl-tests' columns",
          .usage = "collective OP --cluster NAME|FILE [options]",
          .arguments = collective_arguments(),
          .options = collective_options(),
          .example = kExample,
          .run = run_collective_command,
          .is_swept = true};
}

}  // namespace trainyard
