// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_nccl.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "calibration/fit/intervals.h"
#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_traffic.h"
#include "cli/common/common.h"
#include "cli/common/mixed_options.h"
#include "cli/common/options.h"
#include "collectives/run/bounds.h"
#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "nccl/tuning/point_to_point.h"
#include "nccl/tuning/tuner_csv.h"
#include "parallelism/run/tier_volumes.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

struct Prepared {
  const NcclChoice* choice = nullptr;
  nccl::Communicator communicator;
};

bool is_available(const nccl::Communicator& communicator, nccl::Function function,
                  const NcclChoice& choice) {
  for (const nccl::Algorithm algorithm : nccl::kAlgorithms) {
    for (const nccl::Protocol protocol : nccl::kProtocols) {
      const bool meant = choice.algorithm.value_or(algorithm) == algorithm &&
                         choice.protocol.value_or(protocol) == protocol;
      if (meant && communicator.tuning.cell(function, algorithm, protocol).bandwidth > 0.0) {
        return true;
      }
    }
  }
  return false;
}

// Throws for a name of which no choice is left.
template <typename Value>
void require_each(const std::vector<NcclChoice>& choices, const std::vector<Prepared>& left,
                  std::optional<Value> NcclChoice::*part, std::string_view option,
                  std::string_view function) {
  for (const NcclChoice& choice : choices) {
    const bool found = std::ranges::any_of(
        left, [&](const Prepared& one) { return one.choice->*part == choice.*part; });
    if (choice.*part && !found) {
      fail_option(option, fmt::format("what NCCL has for {} on this cluster", function),
                  to_string(*(choice.*part)));
    }
  }
}

// A communicator for each choice that NCCL has. Of several algorithms with several protocols some
// pairs may be left out, with a note.
std::vector<Prepared> prepare(const CollectiveRequest& request, const Cluster& cluster,
                              std::vector<std::string>& notes) {
  const std::vector<NcclChoice>& choices = request.nccl->choices;
  const nccl::JobNodes nodes = nccl::job_nodes(cluster, choices.front().options.domains());
  std::vector<Prepared> made(choices.size());
  run_tasks(choices.size(), request.threads, "communicators", [&](std::size_t index) {
    made[index] = {
        .choice = &choices[index],
        .communicator =
            nccl::make_communicator(nodes, choices[index].options.init_options()).communicator};
  });
  const std::optional<nccl::Function> function = nccl::function_of(request.operation);
  if (!function) {
    return made;
  }
  std::erase_if(made, [&](const Prepared& one) {
    const bool forced = one.choice->algorithm || one.choice->protocol;
    const bool left_out = forced && !is_available(one.communicator, *function, *one.choice);
    if (left_out && !request.nccl->compares_all) {
      notes.push_back(fmt::format("left out: {}, which NCCL does not have for {} here",
                                  one.choice->options.environment.selection.text(),
                                  to_string(*function)));
    }
    return left_out;
  });
  if (request.nccl->compares_all) {
    notes.emplace_back("the first line of each size is what NCCL chooses");
  } else {
    require_each(choices, made, &NcclChoice::algorithm, "algo", to_string(*function));
  }
  require_each(choices, made, &NcclChoice::protocol, "proto", to_string(*function));
  return made;
}

// A row and, of runs over an engine, what that saw.
struct TimedRow {
  CollectiveRow row;
  std::optional<nccl::EngineOutcome> engine;
  std::optional<nccl::MachineKind> stranger = {};  // A machine that no measured table shows.
  std::optional<std::string> beyond = {};  // In what it is beyond the rows of a fitted profile.
};

TimedRow made_row(const CollectiveRequest& request, const CollectiveInputs& inputs, Bytes size,
                  const nccl::Timing& timing) {
  TimedRow made{.row = timed_row(request.operation, size, timing.time, inputs),
                .engine = timing.engine};
  made.row.fingerprint = timing.engine ? timing.engine->fingerprint : 0;
  return made;
}

// Adds up the bytes that rows put on links.
struct Volumes {
  const LinkResources& tiers;
  NcclTraffic& traffic;

  [[nodiscard]] std::vector<TierVolume> of(const std::optional<nccl::CallPlan>& call, Bytes size,
                                           nccl::Timer& timer) const {
    return tier_volumes(tiers, traffic.of(call, size, timer));
  }
};

nccl::CallPlan plan_of(const CollectiveRequest& request, const CollectiveInputs& inputs,
                       const Prepared& prepared, const nccl::TunerTable* tuner, Bytes size) {
  const nccl::Function function = *nccl::function_of(request.operation);
  return nccl::plan_call(prepared.communicator, prepared.choice->options.environment, function,
                         nccl::call_bytes(function, size, inputs.ranks()), {.tuner = tuner});
}

TimedRow collective_row(const CollectiveRequest& request, const CollectiveInputs& inputs,
                        const Prepared& prepared, const nccl::TunerTable* tuner, Bytes size,
                        nccl::Timer& timer, const Volumes& volumes) {
  const nccl::CallPlan plan = plan_of(request, inputs, prepared, tuner, size);
  const nccl::Timing timing = timer.collective(plan);
  TimedRow made = made_row(request, inputs, size, timing);
  CollectiveRow& row = made.row;
  row.algorithm = to_string(plan.algorithm);
  row.protocol = to_string(plan.protocol);
  row.channels = plan.channels;
  row.nccl = {.threads = plan.threads,
              .chunk = plan.parts.empty() ? Bytes(0) : plan.parts.front().chunk,
              .device = timing.device,
              .host = timing.host,
              .estimate_us = plan.time_us,
              .reason = plan.reason};
  row.volumes = volumes.of(plan, size, timer);
  return made;
}

// An operation that is made of sends and receives. Of those inside nodes and between them, what is
// shown is of those between, if there are any.
TimedRow exchange_row(const CollectiveRequest& request, const CollectiveInputs& inputs,
                      const Prepared& prepared, Bytes size, nccl::Timer& timer,
                      const Volumes& volumes) {
  const nccl::Communicator& communicator = prepared.communicator;
  const Bytes of_peer =
      request.operation == Operation::SendReceive ? size : Bytes(size.count() / inputs.ranks());
  const nccl::PointToPointPlan plan = nccl::plan_point_to_point(
      communicator, prepared.choice->options.environment, of_peer, communicator.nodes > 1);
  const nccl::Timing timing = timer.point_to_point(request.operation, size);
  TimedRow made = made_row(request, inputs, size, timing);
  CollectiveRow& row = made.row;
  row.algorithm = "SendRecv";
  row.protocol = to_string(plan.protocol);
  row.channels = communicator.p2p_channels;
  row.nccl = {.chunk = plan.chunk,
              .device = timing.device,
              .host = timing.host,
              .reason = "sends and receives"};
  row.volumes = volumes.of(std::nullopt, size, timer);
  return made;
}

// Between nodes, if the request has one. Files are of the first choice at the largest size.
std::optional<nccl::EngineSettings> engine_of(const CollectiveRequest& request, bool observed) {
  if (!request.runtime.engine) {
    return std::nullopt;
  }
  nccl::EngineSettings engine{.fidelity = *request.runtime.engine,
                              .packet = request.packet.options,
                              .keeps_counters = observed && request.packet.has_files(),
                              .extras = request.runtime.extras};
  if (!observed) {
    engine.packet.queue_times = false;
    engine.packet.sample_every = {};
  }
  return engine;
}

// Returns the measured errors. They are known only for calls back to back on fabrics without other
// traffic, predicted with the shipped profile.
std::optional<Intervals> intervals_of(const CollectiveRequest& request) {
  if (request.runtime.engine || !request.nccl->mode.back_to_back || request.inputs.profile) {
    return std::nullopt;
  }
  return Intervals::load(intervals_file());
}

// A timer is of one thread and keeps what sizes share, so each works through every so many sizes.
// Sends and receives on ports are a formula, of which all but the sizes is computed once.
std::size_t timers_of(const CollectiveRequest& request, std::size_t sizes) {
  if (!nccl::function_of(request.operation) && !request.runtime.engine) {
    return 1;
  }
  const std::size_t threads =
      request.threads == 0 ? std::max(1U, std::thread::hardware_concurrency()) : request.threads;
  return std::min(threads, sizes);
}

// Size by size, the choices in their order.
std::vector<TimedRow> run_sizes(const CollectiveRequest& request, const CollectiveInputs& inputs,
                                const std::vector<Prepared>& prepared, spdlog::logger& log) {
  const nccl::Profile profile = load_profile(request.inputs.profile);
  const std::optional<nccl::TunerTable> tuner = request.nccl->choices.front().options.tuner();
  const std::size_t workers = timers_of(request, inputs.sizes.size());
  const std::optional<Intervals> intervals = intervals_of(request);
  const LinkResources tiers(inputs.cluster.topology, inputs.cluster.routing.fabric);
  NcclTraffic traffic(inputs.cluster, request.operation,
                      RankId(static_cast<std::uint32_t>(request.root)));
  const CollectiveBounds bounds(inputs.cluster, request.operation,
                                RankId(static_cast<std::uint32_t>(request.root)));
  const Volumes volumes{.tiers = tiers, .traffic = traffic};
  std::vector<TimedRow> rows(inputs.sizes.size() * prepared.size());
  run_tasks(workers * prepared.size(), request.threads, "collective", [&](std::size_t task) {
    const std::size_t choice = task % prepared.size();
    const Prepared& one = prepared[choice];
    nccl::Timer timer(inputs.cluster, one.communicator, profile, one.choice->options.environment,
                      request.nccl->mode, engine_of(request, false));
    for (std::size_t index = task / prepared.size(); index < inputs.sizes.size();
         index += workers) {
      const Bytes size = inputs.sizes[index];
      if (choice == 0 && index + 1 == inputs.sizes.size()) {
        timer.use(engine_of(request, true));
      }
      TimedRow& made = rows[index * prepared.size() + choice];
      made = nccl::function_of(request.operation)
                 ? collective_row(request, inputs, one, tuner ? &*tuner : nullptr, size, timer,
                                  volumes)
                 : exchange_row(request, inputs, one, size, timer, volumes);
      CollectiveRow& row = made.row;
      if (profile.basis) {
        made.beyond =
            profile.basis->beyond(timer.machine(), request.operation, inputs.ranks(), size);
      }
      if (intervals) {
        const nccl::MachineKind machine = timer.machine();
        row.interval =
            bounded(intervals->around(row.time, machine, size), row.time, bounds.at(size).time());
        if (!intervals->is_known(machine)) {
          made.stranger = machine;
        }
      }
      log.debug("{} {} {} of {}: {}, {} channels", to_string(request.operation), row.algorithm,
                row.protocol, to_string(size), to_string(row.time), row.channels);
    }
  });
  return rows;
}

// Takes away the runs that never were complete, and says why; notes how packets fared.
CollectiveOutcome collected(const CollectiveRequest& request, std::vector<TimedRow>& rows,
                            Bytes largest, CollectiveReport report, spdlog::logger& log) {
  CollectiveOutcome run{.report = std::move(report)};
  std::size_t first_of_size = 0;
  for (TimedRow& timed : rows) {
    const std::string what = fmt::format("{} {} at {}", timed.row.algorithm, timed.row.protocol,
                                         to_string(timed.row.size));
    if (timed.engine && timed.engine->complaint) {
      log.error("{} {}: {}", to_string(request.operation), what, *timed.engine->complaint);
      run.complete = false;
      continue;
    }
    if (timed.engine && request.runtime.engine == Fidelity::Packet && timed.row.size == largest) {
      run.report.notes.push_back(
          fmt::format("{}: packets: {}", what, describe(timed.engine->network.packets)));
    }
    if (timed.engine && timed.row.size == largest) {
      for (const std::string& note :
           extra_notes(timed.engine->extras, timed.engine->network.packets)) {
        run.report.notes.push_back(fmt::format("{}: {}", what, note));
      }
    }
    std::vector<CollectiveRow>& shown = run.report.rows;
    if (shown.empty() || shown.back().size != timed.row.size) {
      first_of_size = shown.size();
    } else if (request.nccl->compares_all &&
               shown[first_of_size].algorithm == timed.row.algorithm) {
      continue;  // NCCL's own choice.
    }
    shown.push_back(std::move(timed.row));
  }
  mark_best(run.report.rows);
  return run;
}

void write_files(const CollectiveRequest& request, const Cluster& cluster, const TimedRow& row) {
  if (!request.packet.has_files()) {
    return;
  }
  if (!row.engine) {
    throw ConfigError(fmt::format("--{}: expected several nodes, found one, without a fabric",
                                  request.packet.counters_file ? "counters" : "samples"));
  }
  write_packet_files(request.packet, cluster.topology, row.engine->port_counters,
                     row.engine->samples);
}

// One note for each reason, with the sizes that it is of.
void add_beyond_notes(const std::vector<TimedRow>& rows, std::vector<std::string>& notes) {
  std::map<std::string, std::pair<Bytes, Bytes>> sizes;
  for (const TimedRow& timed : rows) {
    if (timed.beyond) {
      const Bytes size = timed.row.size;
      auto& range = sizes.try_emplace(*timed.beyond, size, size).first->second;
      range.first = std::min(range.first, size);
      range.second = std::max(range.second, size);
    }
  }
  for (const auto& [reason, range] : sizes) {
    const std::string which =
        range.first == range.second
            ? to_string(range.first)
            : fmt::format("{} to {}", to_string(range.first), to_string(range.second));
    notes.push_back(
        fmt::format("beyond what the profile was fitted to ({}): sizes {}", reason, which));
  }
}

void add_interval_note(const TimedRow& first, std::vector<std::string>& notes) {
  if (!first.row.interval) {
    return;
  }
  notes.push_back(
      first.stranger
          ? fmt::format("low to high: no measured table shows {}; nine measured times in ten were "
                        "within such bounds on other machines that none shows",
                        to_string(*first.stranger))
          : "low to high: nine measured times in ten were within such bounds on machines of this "
            "kind that no constant was fitted to");
}

// The first way at the largest size: the thread blocks that are run one by one, below the kernel
// as a whole.
ShownRun show(const CollectiveRequest& request, const CollectiveInputs& inputs,
              const Prepared& prepared, TraceRecorder& recorder) {
  const Bytes size = inputs.sizes.back();
  const nccl::Profile profile = load_profile(request.inputs.profile);
  const std::optional<nccl::TunerTable> tuner = request.nccl->choices.front().options.tuner();
  nccl::Timer timer(inputs.cluster, prepared.communicator, profile,
                    prepared.choice->options.environment, request.nccl->mode,
                    engine_of(request, false));
  std::optional<nccl::CallPlan> plan;
  if (nccl::function_of(request.operation)) {
    plan = plan_of(request, inputs, prepared, tuner ? &*tuner : nullptr, size);
  }
  const std::string way =
      plan ? fmt::format("{} {}", to_string(plan->algorithm), to_string(plan->protocol))
           : "SendRecv";
  recorder.say("algorithm", way);
  const TraceTrackId whole = recorder.add_track("call", "kernel");
  timer.record(&recorder);
  const nccl::Timing timing =
      plan ? timer.collective(*plan) : timer.point_to_point(request.operation, size);
  ShownRun shown{.what = fmt::format("{} of {}", way, to_string(size)), .time = timing.time};
  if (timing.engine) {
    shown.complaint = timing.engine->complaint;
  }
  shown.note = recorder.spans().empty()
                   ? "The event model has this call in closed form, without thread blocks."
                   : "A track is a thread block from the start of the kernel; those of nodes that "
                     "do the same are there once, and of long calls the first units, which the "
                     "others repeat.";
  recorder.add_span(whole, shown.what, SimTime(), timing.device, {.category = "kernel"});
  NcclTraffic traffic(inputs.cluster, request.operation,
                      RankId(static_cast<std::uint32_t>(request.root)));
  shown.traffic = traffic.of(plan, size, timer);
  return shown;
}

}  // namespace

void add_runtime_notes(const CollectiveRequest& request, std::vector<std::string>& notes) {
  notes.push_back(
      fmt::format("{} runtime: {} with the speeds of kernels, transports and hosts in {}",
                  request.runtime.name(), request.runtime.library(),
                  request.inputs.profile.value_or("configs/nccl/profile.yaml")));
  notes.insert(notes.end(), request.runtime.notes.begin(), request.runtime.notes.end());
  const nccl::LaunchMode& mode = request.nccl->mode;
  const std::string launch =
      mode.cuda_graph ? "replayed from CUDA graphs"
      : mode.gpus_per_process == 1
          ? "launched by one process for each GPU"
          : fmt::format("launched by processes of {} GPUs", mode.gpus_per_process);
  notes.push_back(
      mode.back_to_back
          ? fmt::format("times are between calls back to back, as of nccl-tests, {}", launch)
          : fmt::format("times are of one call by itself, {}", launch));
}

void add_engine_notes(const CollectiveRequest& request, const Cluster& cluster, bool several_nodes,
                      std::vector<std::string>& notes) {
  if (!request.runtime.engine) {
    return;
  }
  const std::string fidelity = request.runtime.engine_name();
  if (!several_nodes) {
    notes.push_back(fmt::format(
        "--fidelity {} did not influence the result: one node does not use the fabric", fidelity));
    return;
  }
  notes.push_back(fmt::format(
      "{}: messages between nodes are carried by this engine, all else is as with ports",
      fidelity));
  if (request.runtime.engine == Fidelity::Analytical) {
    notes.push_back("analytical: messages do not see each other in the fabric");
  }
  if (request.runtime.engine == Fidelity::Packet) {
    add_packet_notes(request.packet, cluster.routing, notes);
  }
}

CollectiveOutcome run_nccl(const CollectiveRequest& request, CollectiveInputs& inputs,
                           spdlog::logger& log) {
  CHECK(request.nccl.has_value(), "the runtime is another one");
  check_gpus_per_process(request.nccl->mode.gpus_per_process, inputs.cluster);
  CollectiveReport report = empty_report(request, inputs);
  report.runtime = request.runtime.name();
  report.fidelity = request.runtime.engine ? request.runtime.engine_name() : "ports";
  report.notes = std::move(inputs.notes);
  add_runtime_notes(request, report.notes);
  const std::vector<Prepared> prepared = prepare(request, inputs.cluster, report.notes);
  const bool several_nodes = prepared.front().communicator.nodes > 1;
  add_engine_notes(request, inputs.cluster, several_nodes, report.notes);
  report.show_fingerprint = request.fingerprint && several_nodes;
  std::vector<TimedRow> rows = run_sizes(request, inputs, prepared, log);
  add_interval_note(rows.front(), report.notes);
  add_beyond_notes(rows, report.notes);
  write_files(request, inputs.cluster, rows[rows.size() - prepared.size()]);
  CollectiveOutcome run = collected(request, rows, inputs.sizes.back(), std::move(report), log);
  for (const Prepared& one : prepared) {
    append_once(one.communicator.remarks, run.report.notes);
  }
  add_part_notes(inputs.cluster, request.inputs, run.report.notes);
  run.show = [&, first = std::make_shared<const Prepared>(prepared.front())](
                 TraceRecorder& recorder) { return show(request, inputs, *first, recorder); };
  return run;
}

}  // namespace trainyard
