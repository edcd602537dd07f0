// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/collective/collective_inputs.h"
#include "cli/collective/collective_request.h"
#include "cli/collective/collective_traffic.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "cli/explain/explain_runs.h"
#include "collectives/placement/aggregation.h"
#include "collectives/run/run.h"
#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "nccl/tuning/tuner_csv.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

SimTime ended(const std::optional<std::string>& complaint, SimTime time) {
  if (complaint) {
    throw ConfigError("explain: expected a run that ends, found one that never is complete: " +
                      *complaint);
  }
  return time;
}

CollectiveJob job_of(const CollectiveRequest& request, const CollectiveInputs& inputs, Bytes size) {
  CollectiveJob job = plain_job(request, inputs, size);
  if (inputs.imported) {
    job.schedule = inputs.imported.get();
  } else {
    job.algorithm = inputs.algorithms.front();
  }
  return job;
}

// NCCL's choice on the cluster as it is.
class ChosenCalls {
 public:
  ChosenCalls(const CollectiveRequest& request, const Cluster& cluster)
      : request_(request),
        choice_(request.nccl->choices.front()),
        communicator_(nccl::make_communicator(nccl::job_nodes(cluster, choice_.options.domains()),
                                              choice_.options.init_options())
                          .communicator),
        tuner_(choice_.options.tuner()) {}

  [[nodiscard]] std::optional<nccl::CallPlan> plan(Bytes size) const {
    const auto function = nccl::function_of(request_.operation);
    if (!function) {
      return std::nullopt;
    }
    return nccl::plan_call(communicator_, choice_.options.environment, *function,
                           nccl::call_bytes(*function, size, communicator_.ranks),
                           {.tuner = tuner_ ? &*tuner_ : nullptr});
  }

  [[nodiscard]] std::vector<SimTime> times(const MachineModel& machine,
                                           const std::vector<Bytes>& sizes) const {
    std::optional<nccl::EngineSettings> engine;
    if (request_.runtime.engine) {
      engine = nccl::EngineSettings{.fidelity = *request_.runtime.engine,
                                    .packet = request_.packet.options};
    }
    nccl::Timer timer(machine.cluster, communicator_, machine.nccl, choice_.options.environment,
                      request_.nccl->mode, engine);
    std::vector<SimTime> times;
    for (const Bytes size : sizes) {
      const std::optional<nccl::CallPlan> call = plan(size);
      const nccl::Timing timing =
          call ? timer.collective(*call) : timer.point_to_point(request_.operation, size);
      times.push_back(ended(timing.engine ? timing.engine->complaint : std::nullopt, timing.time));
    }
    return times;
  }
  [[nodiscard]] std::vector<LinkTraffic> traffic(const MachineModel& machine, Bytes size) const {
    nccl::Timer timer(machine.cluster, communicator_, machine.nccl, choice_.options.environment,
                      nccl::LaunchMode());
    return NcclTraffic(machine.cluster, request_.operation,
                       RankId(static_cast<std::uint32_t>(request_.root)))
        .of(plan(size), size, timer);
  }
  [[nodiscard]] const nccl::Communicator& communicator() const { return communicator_; }

 private:
  const CollectiveRequest& request_;
  const NcclChoice& choice_;
  nccl::Communicator communicator_;
  std::optional<nccl::TunerTable> tuner_;
};

// At the largest size, by a plain run.
std::vector<LinkTraffic> plain_traffic(const Cluster& cluster, const CollectiveJob& job) {
  return traffic_of(run_collective(cluster, job).link_use,
                    fmt::format("{} {}", to_string(job.operation), algorithm_name(job)));
}

std::vector<std::string> limits_of(const CollectiveRequest& request, bool several_nodes) {
  std::vector<std::string> limits;
  if (!request.nccl) {
    limits.emplace_back("launch, protocols, proxies and what GPUs copy: --runtime nccl has them");
  } else {
    limits.emplace_back(
        "another choice of NCCL that a real change of the hardware might bring: choices are kept");
    limits.emplace_back("computation beside the collective, which takes SMs and memory bandwidth");
  }
  if (several_nodes && request.runtime.engine != Fidelity::Packet) {
    limits.emplace_back("queues, ECN and PFC in the fabric: --fidelity packet has them");
  }
  limits.emplace_back("traffic of other jobs, and ranks that come late");
  return limits;
}

std::string how_of(const std::optional<nccl::CallPlan>& call,
                   const nccl::Communicator& communicator) {
  return call ? fmt::format("{} {}, {} channels", to_string(call->algorithm),
                            to_string(call->protocol), call->channels)
              : fmt::format("sends and receives, {} channels", communicator.p2p_channels);
}

void explain_nccl(const CollectiveRequest& request, const CollectiveInputs& inputs,
                  const MachineModel& machine, RunExplanation& made) {
  const ChosenCalls calls(request, inputs.cluster);
  std::vector<ExplainLabel> labels;
  for (const Bytes size : inputs.sizes) {
    labels.push_back(
        {.label = to_string(size), .how = how_of(calls.plan(size), calls.communicator())});
  }
  made.times = explain_times(
      {.machine = machine,
       .resources = resources_of(inputs.cluster, {.nccl = true}),
       .labels = labels,
       .threads = request.threads},
      [&](const MachineModel& changed) { return calls.times(changed, inputs.sizes); });
  const Bytes largest = inputs.sizes.back();
  std::vector<SettingVariant> variants;
  const auto function = nccl::function_of(request.operation);
  if (function && request.nccl->choices.front().options.environment.selection.text().empty()) {
    for (const nccl::Algorithm algorithm : nccl::kAlgorithms) {
      for (const nccl::Protocol protocol : nccl::kProtocols) {
        variants.push_back(
            {.what = fmt::format("NCCL_ALGO={} NCCL_PROTO={}", to_string(algorithm),
                                 to_string(protocol)),
             .run = [&, algorithm, protocol]() -> std::optional<SimTime> {
               const nccl::CallPlan plan = *calls.plan(largest);
               if (calls.communicator().tuning.cell(*function, algorithm, protocol).bandwidth <=
                       0.0 ||
                   (plan.algorithm == algorithm && plan.protocol == protocol)) {
                 return std::nullopt;
               }
               CollectiveRequest forced = request;
               forced.nccl->choices.resize(1);
               nccl::SelectionFilter& selection =
                   forced.nccl->choices.front().options.environment.selection;
               selection.set_algorithms(to_string(algorithm));
               selection.set_protocols(to_string(protocol));
               return ChosenCalls(forced, inputs.cluster).times(machine, {largest}).front();
             }});
      }
    }
  }
  add_settings(variants, request.threads, made.times.back());
  add_links(inputs.cluster, calls.traffic(machine, largest), made.times.back());
  if (!made.times.back().links.empty()) {
    made.notes.emplace_back(
        "busiest links: what NCCL's channels carry by their own ways, with the flags of LL and "
        "LL128");
  }
}

void explain_plain(const CollectiveRequest& request, const CollectiveInputs& inputs,
                   const MachineModel& machine, RunExplanation& made) {
  const auto time_of = [&](const Cluster& cluster, const CollectiveJob& job) {
    const CollectiveResult run = run_collective(cluster, job);
    return ended(run.complaint, run.time);
  };
  std::vector<ExplainLabel> labels;
  for (const Bytes size : inputs.sizes) {
    const CollectiveJob job = job_of(request, inputs, size);
    labels.push_back({.label = to_string(size),
                      .how = job.schedule != nullptr
                                 ? std::string(job.schedule->shape().algorithm)
                                 : fmt::format("{}, {}", to_string(job.algorithm),
                                               to_string(request.runtime.fidelity()))});
  }
  made.times =
      explain_times({.machine = machine,
                     .resources = resources_of(inputs.cluster, {.nccl = false}),
                     .labels = labels,
                     .threads = request.threads},
                    [&](const MachineModel& changed) {
                      std::vector<SimTime> times;
                      for (const Bytes size : inputs.sizes) {
                        times.push_back(time_of(changed.cluster, job_of(request, inputs, size)));
                      }
                      return times;
                    });
  const CollectiveJob largest = job_of(request, inputs, inputs.sizes.back());
  std::vector<SettingVariant> variants;
  for (const Algorithm algorithm : algorithms_for(request.operation)) {
    if (algorithm != largest.algorithm || largest.schedule != nullptr) {
      variants.push_back({.what = fmt::format("--algo {}", to_string(algorithm)),
                          .run = [&, algorithm]() -> std::optional<SimTime> {
                            const Routing routing(inputs.cluster.topology, inputs.cluster.routing);
                            if (placement_error(inputs.cluster, routing, algorithm)) {
                              return std::nullopt;
                            }
                            CollectiveJob job = largest;
                            job.schedule = nullptr;
                            job.algorithm = algorithm;
                            return time_of(inputs.cluster, job);
                          }});
    }
  }
  add_settings(variants, request.threads, made.times.back());
  add_links(inputs.cluster, plain_traffic(inputs.cluster, largest), made.times.back());
}

RunExplanation explain(const CollectiveRequest& request, const CollectiveInputs& inputs) {
  if (request.hccl || request.mpi) {
    throw ConfigError(fmt::format("--runtime: expected nccl, rccl or plain to explain, found {}",
                                  request.runtime.name()));
  }
  const MachineModel machine{.cluster = inputs.cluster,
                             .nccl = load_profile(request.inputs.profile)};
  RunExplanation made;
  made.factor = kExplainFactor;
  made.header = {fmt::format("Explained by Trainyard: {} on {}, {} ranks on {}, runtime {}",
                             to_string(request.operation), inputs.cluster.name, inputs.ranks(),
                             counted(inputs.cluster.nodes, "node"), request.runtime.name())};
  made.notes = inputs.notes;
  if (request.nccl) {
    explain_nccl(request, inputs, machine, made);
  } else {
    explain_plain(request, inputs, machine, made);
  }
  made.limits = limits_of(request, inputs.cluster.nodes > 1);
  add_part_notes(inputs.cluster, request.inputs, made.notes);
  return made;
}

// One algorithm, and the largest size if no other is asked for.
void settle(CollectiveRequest& request) {
  if (request.operation == Operation::Barrier || request.operation == Operation::AllToAllV) {
    return;
  }
  if (!request.min_size) {
    request.min_size = request.greatest_size.value_or(gib(1));
    request.greatest_size = request.min_size;
  }
}

void check_one(const CollectiveRequest& request, CollectiveInputs& inputs) {
  if (request.nccl && request.nccl->choices.size() > 1) {
    throw ConfigError(fmt::format("--algo, --proto: expected one way to explain, found {}",
                                  request.nccl->choices.size()));
  }
  if (request.nccl) {
    return;
  }
  if (request.auto_algorithms) {  // The ring, which all but exchanges have.
    inputs.algorithms.resize(1);
  } else if (inputs.runs() > 1) {
    throw ConfigError(
        fmt::format("--algo: expected one algorithm to explain, found {}", inputs.runs()));
  }
}

int run_explain_collective(const OptionReader& reader, std::ostream& out) {
  CollectiveRequest request = read_collective_request(reader);
  settle(request);
  spdlog::logger log = make_logger(reader);
  CollectiveInputs inputs = load_collective_inputs(request, log);
  check_one(request, inputs);
  write_result(request.result, with_effects(reader, document_of(explain(request, inputs))), out);
  return 0;
}

}  // namespace

Command explain_collective() {
  Command row = collective_command();
  row.name = "explain";
  row.form = "explain collective";
  row.usage = "explain collective OP --cluster NAME|FILE [options]";
  row.options = without(
      "groups against against-other-ranks trace plot compare fingerprint counters samples "
      "sample-every",
      row.options);
  row.example = {};
  row.run = run_explain_collective;
  return row;
}

}  // namespace trainyard
