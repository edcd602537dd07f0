// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_rows.h"

#include <spdlog/fmt/fmt.h>

#include "calibration/measured/comparison.h"

namespace trainyard {

CollectiveReport empty_report(const CollectiveRequest& request, const CollectiveInputs& inputs) {
  CollectiveReport report;
  report.operation = request.operation;
  report.cluster = inputs.cluster.name;
  report.ranks = inputs.ranks();
  report.node_gpus = inputs.cluster.server_gpus;
  report.root = request.root;
  report.inputs = run_inputs(inputs.cluster, request.inputs.settings());
  report.estimates = inputs.cluster.estimates;
  report.inputs.options = machine_options(inputs.cluster, request.inputs.overrides);
  if (inputs.measured) {
    report.measured_name = inputs.measured->name;
    report.measured_source = inputs.measured->source;
  }
  return report;
}

CollectiveRow timed_row(Operation operation, Bytes size, SimTime time,
                        const CollectiveInputs& inputs) {
  CollectiveRow row;
  row.size = size;
  row.time = time;
  if (time > SimTime()) {
    row.algbw_gbps = static_cast<double>(size.count()) / time.seconds() / 1e9;
    row.busbw_gbps = row.algbw_gbps * bus_factor(operation, inputs.ranks());
  }
  if (inputs.measured) {
    if (const MeasuredRow* found = find_row(*inputs.measured, size)) {
      row.measured = *found;
    }
  }
  return row;
}

void add_estimate_note(const Cluster& cluster, std::vector<std::string>& notes) {
  if (cluster.estimates.empty()) {
    return;
  }
  std::vector<std::string> values;
  for (const std::string& estimate : cluster.estimates) {  // "PART: KEY = VALUE: SOURCE"
    values.push_back(estimate.substr(0, estimate.find(": ", estimate.find(": ") + 1)));
  }
  notes.push_back(fmt::format("estimates used (sources: trainyard topology --format json): {}",
                              fmt::join(values, "; ")));
}

}  // namespace trainyard
