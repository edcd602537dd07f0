// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_mpi.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/collective/collective_traffic.h"
#include "cli/common/common.h"
#include "cli/common/long_run_display.h"
#include "collectives/mpi/mpi_run.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/run/tier_volumes.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

struct MpiRun {
  MpiCall call;
  std::string wanted;  // The choice of the rules or the user,
  std::string name;    // and what the library's code makes of it.
  MpiTiming timing = {};
  std::vector<TierVolume> volumes = {};
};

std::vector<MpiRun> runs_of(const CollectiveRequest& request, const CollectiveInputs& inputs) {
  std::vector<MpiRun> runs;
  for (const Bytes size : inputs.sizes) {
    const MpiCall call{.library = request.mpi->rules.library,
                       .operation = request.operation,
                       .ranks = inputs.ranks(),
                       .size = size,
                       .root = RankId(static_cast<std::uint32_t>(request.root))};
    std::vector<std::string> wanted = request.mpi->algorithms;
    if (wanted.empty()) {
      wanted.push_back(request.mpi->rules.choose(call.operation, call.ranks, call.size));
    }
    for (std::string& each : wanted) {
      const std::optional<std::string> name = mpi_algorithm(each, call);
      if (!name) {
        throw ConfigError(
            fmt::format("--algo: expected an algorithm that has a schedule for {} of {} ranks, "
                        "found \"{}\"",
                        to_string(call.operation), call.ranks, each));
      }
      runs.push_back({.call = call, .wanted = std::move(each), .name = *name});
    }
  }
  return runs;
}

// Returns the time of the copies that torch.distributed makes before and after a call whose
// tensors are those of GPUs: of what a rank has, and of what it gets. A root alone has the whole of
// scatter, and gets that of gather.
SimTime staging_of(const MpiCall& call, const HostRates& rates) {
  const Bytes block = Bytes(call.size.count() / call.ranks);
  const bool has_block =
      call.operation == Operation::AllGather || call.operation == Operation::Gather;
  const bool gets_block = call.operation == Operation::Scatter;
  return rates.copy_to_host(has_block ? block : call.size) +
         rates.copy_to_gpu(gets_block ? block : call.size);
}

MpiTiming time_run(const CollectiveRequest& request, const CollectiveInputs& inputs,
                   const std::vector<NodeId>& nodes, const MpiRun& run, TraceRecorder* trace) {
  MpiTiming timing =
      time_mpi(inputs.cluster, nodes, run.name, run.call, request.mpi->rules, request.mpi->profile,
               request.runtime.fidelity(), request.packet.options, trace);
  if (request.mpi->stages) {
    timing.time += staging_of(run.call, host_rates(inputs.cluster));
  }
  return timing;
}

void time_runs(const CollectiveRequest& request, const CollectiveInputs& inputs,
               const std::vector<NodeId>& nodes, std::vector<MpiRun>& runs) {
  const LinkResources tiers(inputs.cluster.topology, inputs.cluster.routing.fabric);
  run_tasks(runs.size(), request.threads, "collective", [&](std::size_t index) {
    MpiRun& run = runs[index];
    run.timing = time_run(request, inputs, nodes, run, nullptr);
    run.volumes = tier_volumes(tiers, traffic_of(run.timing.link_use, "collective"));
    run.timing.link_use = {};
  });
}

ShownRun show(const CollectiveRequest& request, const CollectiveInputs& inputs,
              const std::vector<NodeId>& nodes, const MpiRun& run, TraceRecorder& recorder) {
  recorder.say("algorithm", run.wanted);
  const MpiTiming timing = time_run(request, inputs, nodes, run, &recorder);
  const std::string what = fmt::format("{} of {}", run.wanted, to_string(run.call.size));
  return {.what = what,
          .time = timing.time,
          .traffic = traffic_of(timing.link_use, what),
          .note = request.mpi->stages ? "A track is the CPU of a rank, without the copies of GPUs."
                                      : "A track is the CPU of a rank.",
          .complaint = timing.complaint};
}

// A note for each name that stands for another one, with the sizes where it does.
void add_names(const std::vector<MpiRun>& runs, std::vector<std::string>& notes) {
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const MpiRun& run = runs[index];
    const bool is_new =
        index == 0 || runs[index - 1].wanted != run.wanted || runs[index - 1].name != run.name;
    if (run.name != run.wanted && is_new) {
      notes.push_back(fmt::format("{} of {}: {} runs it as {}", run.wanted,
                                  to_string(run.call.size), title_of(run.call.library), run.name));
    }
  }
}

// Returns where ranks are, how messages go, and where costs are from.
std::string main_note(const CollectiveRequest& request) {
  return fmt::format(
      "{} runtime: {} between host memories, a rank for each GPU on a core of its own beside the "
      "nearest memory; inside a host {}, between hosts by TCP, with the costs of {}, which are "
      "those of one machine",
      request.runtime.hosts, request.mpi->rules.release,
      request.mpi->profile.shared ? "through shared memory" : "by TCP over the loopback",
      request.mpi->profile_name);
}

// Operations for which MPICH's devices compose algorithms by node.
void add_mpich_note(const CollectiveRequest& request, const CollectiveInputs& inputs,
                    std::vector<std::string>& notes) {
  const Operation operation = request.operation;
  const bool composes = operation == Operation::AllReduce || operation == Operation::Broadcast ||
                        operation == Operation::Reduce;
  if (request.mpi->rules.library == MpiLibrary::Mpich && composes &&
      inputs.ranks() > inputs.cluster.nodes) {
    notes.push_back(
        "several ranks of a host: this is MPICH with MPIR_CVAR_DEVICE_COLLECTIVES=none; its device "
        "ch4 goes through the memory of a host first for this operation");
  }
}

}  // namespace

CollectiveOutcome run_mpi(const CollectiveRequest& request, CollectiveInputs& inputs,
                          spdlog::logger& log) {
  CHECK(request.mpi.has_value(), "the runtime is another one");
  CollectiveOutcome run{.report = empty_report(request, inputs)};
  run.report.runtime = request.runtime.name();
  run.report.fidelity = to_string(request.runtime.fidelity());
  run.report.show_fingerprint = request.fingerprint;
  run.report.notes = std::move(inputs.notes);
  run.report.notes.push_back(main_note(request));
  add_mpich_note(request, inputs, run.report.notes);
  if (request.mpi->stages) {
    run.report.notes.emplace_back(
        "tensors of GPUs: each time begins with a copy to host memory and ends with one back");
  }
  std::vector<MpiRun> runs = runs_of(request, inputs);
  const std::vector<NodeId> nodes = mpi_nodes(inputs.cluster, request.runtime.hosts);
  time_runs(request, inputs, nodes, runs);
  for (const MpiRun& timed : runs) {
    if (timed.timing.complaint) {
      log.error("{} of {}: {}", to_string(request.operation), to_string(timed.call.size),
                *timed.timing.complaint);
      run.complete = false;
      continue;
    }
    CollectiveRow row = timed_row(request.operation, timed.call.size, timed.timing.time, inputs);
    row.algorithm = timed.wanted;
    row.channels = 1;
    row.protocol = "-";
    row.transfers = timed.timing.messages;
    row.fingerprint = timed.timing.fingerprint;
    row.volumes = timed.volumes;
    run.report.rows.push_back(std::move(row));
  }
  mark_best(run.report.rows);
  add_names(runs, run.report.notes);
  if (request.runtime.fidelity() == Fidelity::Packet) {
    add_packet_notes(request.packet, inputs.cluster.routing, run.report.notes);
  }
  add_part_notes(inputs.cluster, request.inputs, run.report.notes);
  const auto first = std::ranges::find(runs, runs.back().call.size,
                                       [](const MpiRun& one) { return one.call.size; });
  run.show = [&request, &inputs, nodes, shown = *first](TraceRecorder& recorder) {
    return show(request, inputs, nodes, shown, recorder);
  };
  return run;
}

}  // namespace trainyard
