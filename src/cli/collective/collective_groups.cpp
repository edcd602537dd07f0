// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_groups.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <deque>
#include <span>
#include <utility>

#include "cli/collective/collective_groups_nccl.h"
#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_traffic.h"
#include "cli/collective/groups_file.h"
#include "cli/common/common.h"
#include "collectives/placement/aggregation.h"
#include "collectives/run/run.h"
#include "sim/config_error.h"
#include "topology/cluster/reach.h"

namespace trainyard {
namespace {

using Jobs = std::vector<CommunicatorJob>;

// Without a choice, that of a training step, or of a barrier the first that can do it.
Algorithm algorithm_of(const CollectiveRequest& request, const GroupSpec& group,
                       Operation operation) {
  Algorithm algorithm = default_algorithm(operation);
  if (group.algorithm) {
    algorithm = *group.algorithm;
  } else if (!request.auto_algorithms) {
    algorithm = request.algorithms.front();
  } else if (!supports(algorithm, operation)) {
    algorithm = algorithms_for(operation).front();
  }
  if (!supports(algorithm, operation)) {
    throw ConfigError(fmt::format("group {}: expected an algorithm that can do {}, found {}",
                                  group.name, to_string(operation), to_string(algorithm)));
  }
  return algorithm;
}

CommunicatorJob job_of(const CollectiveRequest& request, const GroupSpec& group, Bytes size) {
  const Operation operation = group.operation.value_or(request.operation);
  const Bytes aligned = size_of_group(group, operation, size);
  return {.ranks = group.ranks,
          .job = {.operation = operation,
                  .algorithm = algorithm_of(request, group, operation),
                  .size = aligned,
                  .channels = request.channels,
                  .piece = request.piece,
                  .fidelity = request.runtime.fidelity(),
                  .packet = request.packet.options},
          .start = group.start};
}

// Refuses what a group cannot run on its part of the cluster.
void check_jobs(const Cluster& cluster, const std::vector<GroupSpec>& groups, const Jobs& jobs) {
  const Routing routing(cluster.topology, cluster.routing);
  const bool is_whole = !describe_unreachable(cluster);
  Cluster part = cluster;
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    keep_ranks(cluster.gpus, jobs[index].ranks, part);
    std::optional<std::string> error = placement_error(part, routing, jobs[index].job.algorithm);
    if (!error && !is_whole) {
      error = path_error(part, jobs[index].job);
    }
    if (error) {
      throw ConfigError(
          fmt::format("group {}: expected an algorithm that its ranks can run, found "
                      "{}: {}",
                      groups[index].name, to_string(jobs[index].job.algorithm), *error));
    }
  }
}

// The sizes of the runs; one without a size where all groups have their own.
std::vector<std::optional<Bytes>> sizes_of_runs(const CollectiveRequest& request,
                                                const std::vector<GroupSpec>& groups,
                                                std::vector<std::string>& notes) {
  const bool has_own =
      std::ranges::all_of(groups, [](const GroupSpec& group) { return group.size.has_value(); });
  if (!has_own) {
    std::size_t most = 0;
    for (const GroupSpec& group : groups) {
      most = std::max(most, group.ranks.size());
    }
    const auto sizes = message_sizes(request, static_cast<int>(most), std::nullopt, notes);
    return {sizes.begin(), sizes.end()};
  }
  if (request.min_size || request.greatest_size || request.factor) {
    throw ConfigError(
        "--groups: expected no sizes beside it, as each group of the file has its own, found "
        "-b, -e or -f");
  }
  return {std::nullopt};
}

// Says how many GPUs are in several groups.
void note_overlap(const std::vector<GroupSpec>& groups, std::vector<std::string>& notes) {
  std::vector<int> all;
  for (const GroupSpec& group : groups) {
    all.insert(all.end(), group.ranks.begin(), group.ranks.end());
  }
  std::ranges::sort(all);
  std::vector<int> doubled;
  for (std::size_t index = 1; index < all.size(); ++index) {
    if (all[index] == all[index - 1] && (doubled.empty() || doubled.back() != all[index])) {
      doubled.push_back(all[index]);
    }
  }
  if (!doubled.empty()) {
    notes.push_back(
        fmt::format("{} {} in several groups, whose collectives run side by side, as kernels "
                    "on streams of their own do: they share links, and nothing else is modelled",
                    doubled.size() == 1 ? "gpu" : "gpus",
                    ranks_text(doubled) + (doubled.size() == 1 ? " is" : " are")));
  }
}

// Each task is all groups at a size, or one of them alone at it.
struct RunOfSize {
  Jobs jobs;
  SharedRun together = {};
  std::vector<SharedRun> alone = {};
};

void run_all(const Cluster& cluster, std::vector<RunOfSize>& runs, unsigned threads) {
  const std::size_t tasks = runs.front().jobs.size() + 1;
  run_tasks(runs.size() * tasks, threads, "collective", [&](std::size_t index) {
    RunOfSize& run = runs[index / tasks];
    const std::size_t task = index % tasks;
    if (task == 0) {
      run.together = run_together(cluster, run.jobs);
      return;
    }
    CommunicatorJob job = run.jobs[task - 1];
    job.start = SimTime();
    run.alone[task - 1] = run_together(cluster, std::span(&job, 1));
  });
}

void add_rows(const std::vector<GroupSpec>& groups, const RunOfSize& run,
              const std::optional<Bytes>& size, GroupsReport& report) {
  SimTime first = SimTime::max();
  SimTime last;
  for (std::size_t index = 0; index < groups.size(); ++index) {
    const CommunicatorJob& job = run.jobs[index];
    // Each could be served before the others.
    const bool is_bound = job.job.fidelity == Fidelity::Analytical;
    const SimTime alone = run.alone[index].ends.front();
    report.rows.push_back({.group = groups[index].name,
                           .ranks = ranks_text(job.ranks),
                           .count = static_cast<int>(job.ranks.size()),
                           .operation = job.job.operation,
                           .size = job.job.size,
                           .algorithm = std::string(to_string(job.job.algorithm)),
                           .channels = run.together.channels[index],
                           .start = job.start,
                           .end = is_bound ? job.start + alone : run.together.ends[index],
                           .alone = alone});
    first = std::min(first, job.start);
    last = std::max({last, report.rows.back().end, run.together.ends[index]});
  }
  report.runs.push_back({.size = size,
                         .makespan = last - first,
                         .transfers = run.together.network.messages,
                         .fingerprint = run.together.fingerprint});
}

std::optional<std::string> complaint_of(const RunOfSize& run) {
  if (run.together.complaint) {
    return run.together.complaint;
  }
  for (const SharedRun& alone : run.alone) {
    if (alone.complaint) {
      return alone.complaint;
    }
  }
  return std::nullopt;
}

// Puts what was recorded of a group behind what there is, under its name.
void append_trace(const TraceRecorder& group, const std::string& name, TraceRecorder& all) {
  std::vector<TraceTrackId> tracks;
  for (const TraceTrack& track : group.tracks()) {
    tracks.push_back(all.add_track(fmt::format("{}, {}", name, track.group), track.name));
  }
  for (const TraceSpan& span : group.spans()) {
    all.add_span(tracks[span.track.value()], group.name(span.name), span.start, span.end,
                 group.detail(span.detail));
  }
}

ShownRun show(const Cluster& cluster, const std::vector<GroupSpec>& groups, Jobs jobs,
              const std::optional<Bytes>& size, TraceRecorder& recorder) {
  std::deque<TraceRecorder> recorders(jobs.size());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    recorders[index].say("algorithm", std::string(to_string(jobs[index].job.algorithm)));
    jobs[index].job.trace = &recorders[index];
  }
  const SharedRun run = run_together(cluster, jobs);
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    append_trace(recorders[index], groups[index].name, recorder);
  }
  const std::string what = size ? fmt::format("all groups at {}", to_string(*size)) : "all groups";
  return {.what = what,
          .time = run.ends.empty() ? SimTime() : *std::ranges::max_element(run.ends),
          .traffic = traffic_of(run.link_use, what),
          .complaint = run.complaint};
}

// Adds the rows of all runs, and what is shown of them.
void run_plain_groups(const CollectiveRequest& request, const std::vector<GroupSpec>& groups,
                      const std::vector<std::optional<Bytes>>& sizes, GroupsOutcome& outcome,
                      spdlog::logger& log) {
  const Cluster& cluster = *outcome.cluster;
  GroupsReport& report = outcome.report;
  std::vector<RunOfSize> runs(sizes.size());
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    for (const GroupSpec& group : groups) {
      runs[index].jobs.push_back(job_of(request, group, sizes[index].value_or(Bytes())));
    }
    runs[index].alone.resize(groups.size());
  }
  check_jobs(cluster, groups, runs.front().jobs);
  run_all(cluster, runs, request.threads);
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    if (const auto complaint = complaint_of(runs[index])) {
      log.error("groups: {}", *complaint);
      outcome.complete = false;
      continue;
    }
    add_rows(groups, runs[index], sizes[index], report);
  }
  report.notes.emplace_back(
      "plain runtime: links and latencies only, without launch, protocol and proxy costs");
  if (request.runtime.fidelity() == Fidelity::Analytical) {
    report.notes.emplace_back(
        "analytical: a lower bound; each communicator could be served before the others, so that "
        "it "
        "takes its time alone, and only the makespan has what all of them put on a link");
  }
  if (request.runtime.fidelity() == Fidelity::Packet) {
    add_packet_notes(request.packet, cluster.routing, report.notes);
  }
  outcome.show = [cluster = outcome.cluster.get(), groups, jobs = runs.back().jobs,
                  size = sizes.back()](TraceRecorder& recorder) {
    return show(*cluster, groups, jobs, size, recorder);
  };
}

}  // namespace

Bytes size_of_group(const GroupSpec& group, Operation operation, Bytes size) {
  const auto ranks = static_cast<int>(group.ranks.size());
  const Bytes aligned = aligned_size(operation, group.size.value_or(size), ranks);
  if (aligned == Bytes(0) && operation != Operation::Barrier) {
    throw ConfigError(
        fmt::format("group {}: expected at least {} bytes (-b), 16 for each rank, found {}",
                    group.name, 16 * ranks, to_string(group.size.value_or(size))));
  }
  return aligned;
}

GroupsOutcome run_groups(const CollectiveRequest& request, spdlog::logger& log) {
  GroupsOutcome outcome;
  GroupsReport& report = outcome.report;
  outcome.cluster = std::make_unique<const Cluster>(load_ranks(request, report.notes, log));
  const Cluster& cluster = *outcome.cluster;
  const std::vector<GroupSpec> groups =
      read_groups(*request.groups, static_cast<int>(cluster.gpus.size()));
  const auto sizes = sizes_of_runs(request, groups, report.notes);
  report.cluster = cluster.name;
  report.runtime = request.runtime.name();
  report.inputs = inputs_of_run(cluster, request.inputs);
  report.estimates = cluster.estimates;
  if (request.nccl) {
    report.fidelity = request.runtime.engine ? to_string(*request.runtime.engine) : "ports";
    run_nccl_groups(request, cluster, groups, sizes, report);
  } else {
    report.fidelity = to_string(request.runtime.fidelity());
    run_plain_groups(request, groups, sizes, outcome, log);
  }
  note_overlap(groups, report.notes);
  add_part_notes(cluster, request.inputs, report.notes);
  return outcome;
}

}  // namespace trainyard
