// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_hccl.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>
#include <vector>

#include "cli/collective/collective_traffic.h"
#include "cli/common/common.h"
#include "cli/common/long_run_display.h"
#include "collectives/hccl/hccl_run.h"
#include "parallelism/run/tier_volumes.h"
#include "sim/check.h"

namespace trainyard {
namespace {

struct HcclRow {
  HcclPlan plan;
  HcclTiming timing;
  std::vector<TierVolume> volumes = {};
};

// "mesh+NHR": inside a server, then between.
std::string name_of(const HcclWay& way) {
  const std::string inside(to_string(way.inside));
  const std::string between(to_string(way.between));
  if (way == HcclWay{}) {
    return "direct";
  }
  return way.inside == HcclInside::None     ? between
         : way.between == HcclBetween::None ? inside
                                            : fmt::format("{}+{}", inside, between);
}

HcclCall call_of(const CollectiveRequest& request, Bytes size) {
  return {.operation = request.operation,
          .size = size,
          .fidelity = request.runtime.fidelity(),
          .packet = request.packet.options};
}

std::vector<HcclRow> time_sizes(const CollectiveRequest& request, const CollectiveInputs& inputs,
                                const HcclMachine& machine) {
  const LinkResources tiers(inputs.cluster.topology, inputs.cluster.routing.fabric);
  std::vector<HcclRow> rows(inputs.sizes.size());
  run_tasks(rows.size(), request.threads, "collective", [&](std::size_t index) {
    HcclRow& row = rows[index];
    row.plan = choose_hccl(machine, *request.hccl, request.operation, inputs.sizes[index]);
    row.timing = time_hccl(inputs.cluster, machine, row.plan, *request.runtime.hccl,
                           call_of(request, inputs.sizes[index]));
    row.volumes = tier_volumes(tiers, traffic_of(row.timing.link_use, "collective"));
    row.timing.link_use = {};
  });
  return rows;
}

// A note for each run of sizes with the same way for the same reason.
void add_choice_notes(const std::vector<HcclRow>& rows, const std::vector<Bytes>& sizes,
                      std::vector<std::string>& notes) {
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const HcclPlan& plan = rows[index].plan;
    if (index == 0 || rows[index - 1].plan.way != plan.way) {
      notes.push_back(fmt::format("{} from {} on: {}", name_of(plan.way), to_string(sizes[index]),
                                  plan.reason));
    }
  }
  if (rows.back().plan.loops > 1) {
    notes.push_back(fmt::format("{} goes in {} loops of at most {} (HCCL_BUFFSIZE)",
                                to_string(sizes.back()), rows.back().plan.loops,
                                to_string(rows.back().plan.loop)));
  }
}

ShownRun show(const CollectiveRequest& request, const CollectiveInputs& inputs,
              const HcclMachine& machine, const HcclPlan& plan, TraceRecorder& recorder) {
  const Bytes size = inputs.sizes.back();
  recorder.say("algorithm", name_of(plan.way));
  HcclCall call = call_of(request, size);
  call.trace = &recorder;
  const HcclTiming timing = time_hccl(inputs.cluster, machine, plan, *request.runtime.hccl, call);
  const std::string what = fmt::format("{} of {}", name_of(plan.way), to_string(size));
  return {.what = what,
          .time = timing.time,
          .traffic = traffic_of(timing.link_use, what),
          .note = fmt::format(
              "Its tasks, without the call itself{}.",
              plan.loops > 1 ? fmt::format("; of {} loops the first is drawn", plan.loops) : ""),
          .complaint = timing.complaint};
}

}  // namespace

CollectiveOutcome run_hccl(const CollectiveRequest& request, CollectiveInputs& inputs,
                           spdlog::logger& log) {
  CHECK(request.hccl.has_value(), "the runtime is another one");
  CollectiveOutcome run{.report = empty_report(request, inputs)};
  run.report.runtime = request.runtime.name();
  run.report.fidelity = to_string(request.runtime.fidelity());
  run.report.show_fingerprint = request.fingerprint;
  run.report.notes = std::move(inputs.notes);
  run.report.notes.push_back(
      "hccl runtime: HCCL of July 2025 called operator by operator from the host, with what its "
      "tasks cost in configs/hccl/profile.yaml; no measured table has fitted any of it");
  const HcclMachine machine = hccl_machine(inputs.cluster);
  const std::vector<HcclRow> rows = time_sizes(request, inputs, machine);
  for (std::size_t index = 0; index < rows.size(); ++index) {
    const HcclRow& timed = rows[index];
    if (timed.timing.complaint) {
      log.error("{} of {}: {}", to_string(request.operation), to_string(inputs.sizes[index]),
                *timed.timing.complaint);
      run.complete = false;
      continue;
    }
    CollectiveRow row =
        timed_row(request.operation, inputs.sizes[index], timed.timing.time, inputs);
    row.algorithm = name_of(timed.plan.way);
    row.channels = 1;
    row.protocol = "-";
    row.transfers = timed.timing.messages;
    row.fingerprint = timed.timing.fingerprint;
    row.volumes = timed.volumes;
    run.report.rows.push_back(std::move(row));
  }
  mark_best(run.report.rows);
  add_choice_notes(rows, inputs.sizes, run.report.notes);
  if (request.runtime.fidelity() == Fidelity::Packet) {
    add_packet_notes(request.packet, inputs.cluster.routing, run.report.notes);
  }
  add_part_notes(inputs.cluster, request.inputs, run.report.notes);
  run.show = [&request, &inputs, machine, plan = rows.back().plan](TraceRecorder& recorder) {
    return show(request, inputs, machine, plan, recorder);
  };
  return run;
}

}  // namespace trainyard
