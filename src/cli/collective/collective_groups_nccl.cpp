// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_groups_nccl.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "cli/collective/collective_groups.h"
#include "cli/collective/collective_nccl.h"
#include "cli/common/common.h"
#include "nccl/tuning/point_to_point.h"
#include "parallelism/traffic/concurrent_calls.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Options by algorithm: groups that force none have those of the command line.
using OptionsOfAlgorithms = std::map<std::optional<Algorithm>, nccl::InitOptions>;

const nccl::InitOptions& options_of(const NcclChoice& choice, const GroupSpec& group,
                                    OptionsOfAlgorithms& known) {
  const auto [entry, is_new] = known.try_emplace(group.algorithm);
  if (is_new) {
    entry->second = choice.options.init_options();
    if (group.algorithm) {
      std::string name(to_string(*group.algorithm));
      std::erase(name, '-');  // NVLSTree is nvls-tree among the plain algorithms.
      const auto algorithm = nccl::parse_algorithm(name);
      if (!algorithm) {
        throw ConfigError(
            fmt::format("group {}: expected an algorithm of NCCL, or --runtime plain, found {}",
                        group.name, to_string(*group.algorithm)));
      }
      entry->second.environment.selection.set_algorithms(to_string(*algorithm));
    }
  }
  return entry->second;
}

ConcurrentCall call_of(const CollectiveRequest& request, const GroupSpec& group, Bytes size,
                       OptionsOfAlgorithms& known) {
  const Operation operation = group.operation.value_or(request.operation);
  if (operation == Operation::Barrier) {
    throw ConfigError(
        fmt::format("group {}: expected --runtime plain for barrier, found nccl", group.name));
  }
  return {.ranks = group.ranks,
          .operation = operation,
          .size = size_of_group(group, operation, size),
          .options = &options_of(request.nccl->choices.front(), group, known),
          .start = group.start};
}

GroupRow row_of(const GroupSpec& group, const ConcurrentCall& call, const ConcurrentTime& time) {
  const nccl::Communicator& communicator = *time.communicator;
  GroupRow row{.group = group.name,
               .ranks = ranks_text(call.ranks),
               .count = communicator.ranks,
               .operation = call.operation,
               .size = call.size,
               .start = call.start,
               .end = time.end,
               .alone = time.alone};
  if (time.plan) {
    row.algorithm = to_string(time.plan->algorithm);
    row.protocol = to_string(time.plan->protocol);
    row.channels = time.plan->channels;
    return row;
  }
  const Bytes of_peer(call.operation == Operation::SendReceive
                          ? call.size.count()
                          : call.size.count() / communicator.ranks);
  const nccl::PointToPointPlan plan = nccl::plan_point_to_point(
      communicator, call.options->environment, of_peer, communicator.nodes > 1);
  row.algorithm = "SendRecv";
  row.protocol = to_string(plan.protocol);
  row.channels = communicator.p2p_channels;
  return row;
}

struct NcclRun {
  std::vector<ConcurrentCall> calls = {};
  std::vector<ConcurrentTime> times = {};
};

GroupsRun makespan_of(const NcclRun& run, const std::optional<Bytes>& size) {
  SimTime first = SimTime::max();
  SimTime last;
  for (std::size_t index = 0; index < run.calls.size(); ++index) {
    first = std::min(first, run.calls[index].start);
    last = std::max(last, run.times[index].end);
  }
  return {.size = size, .makespan = last - first};
}

}  // namespace

void run_nccl_groups(const CollectiveRequest& request, const Cluster& cluster,
                     const std::vector<GroupSpec>& groups,
                     const std::vector<std::optional<Bytes>>& sizes, GroupsReport& report) {
  check_gpus_per_process(request.nccl->mode.gpus_per_process, cluster);
  const nccl::Profile profile = load_profile(request.inputs.profile);
  const std::optional<nccl::TunerTable> tuner = request.nccl->choices.front().options.tuner();
  std::optional<nccl::EngineSettings> engine;
  if (request.runtime.engine) {
    engine = {.fidelity = *request.runtime.engine, .packet = request.packet.options};
  }
  OptionsOfAlgorithms options;
  std::vector<NcclRun> runs(sizes.size());
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    for (const GroupSpec& group : groups) {
      runs[index].calls.push_back(call_of(request, group, sizes[index].value_or(Bytes()), options));
    }
  }
  // An object is of one thread and keeps what sizes share, so each works through every so many.
  nccl::SearchMemory searches;
  const std::size_t threads =
      request.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : request.threads;
  const std::size_t workers = std::min(threads, runs.size());
  std::vector<std::optional<ConcurrentCalls>> calls(workers);
  run_tasks(workers, request.threads, "collective", [&](std::size_t worker) {
    calls[worker].emplace(cluster, ConcurrentCalls::Settings{.profile = profile,
                                                             .mode = request.nccl->mode,
                                                             .engine = engine,
                                                             .tuner = tuner ? &*tuner : nullptr,
                                                             .searches = &searches});
    for (std::size_t index = worker; index < runs.size(); index += workers) {
      runs[index].times = calls[worker]->run(runs[index].calls);
    }
  });
  add_runtime_notes(request, report.notes);
  bool several_nodes = false;
  std::vector<std::string> remarks;
  for (std::size_t index = 0; index < runs.size(); ++index) {
    for (std::size_t group = 0; group < groups.size(); ++group) {
      const ConcurrentTime& time = runs[index].times[group];
      report.rows.push_back(row_of(groups[group], runs[index].calls[group], time));
      several_nodes = several_nodes || time.communicator->nodes > 1;
      append_once(time.communicator->remarks, remarks);
    }
    report.runs.push_back(makespan_of(runs[index], sizes[index]));
  }
  add_engine_notes(request, cluster, several_nodes, report.notes);
  report.notes.emplace_back(
      "side by side: what shares a link has it in max-min shares while it runs, and goes on at the "
      "pace of a call that has as much all the time");
  append_once(remarks, report.notes);
  for (const std::optional<ConcurrentCalls>& one : calls) {
    for (const std::string& reason : one->beyond_profile()) {
      append_once({"beyond what the profile was fitted to: " + reason}, report.notes);
    }
  }
}

}  // namespace trainyard
