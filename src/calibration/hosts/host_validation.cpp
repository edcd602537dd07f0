// SPDX-License-Identifier: Apache-2.0
#include "calibration/hosts/host_validation.h"

#include <spdlog/fmt/fmt.h>

#include <optional>

#include "calibration/hosts/host_calibration.h"

namespace trainyard {
namespace {

enum class Rows { All, Unfitted };

HostPredictions predict(const HostSet& set, const HostCollectives& collectives,
                        const MpiProfile& profile, const TaskRunner& run_tasks, Rows wanted) {
  HostPredictions made;
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < set.rows.size(); ++place) {
    const HostRow& row = set.rows[place];
    const bool is_collective = row.operation().has_value();
    const std::optional<double> seconds = host_time(row, profile);
    if (is_collective && set.is_crowded(row)) {
      ++made.crowded;
    } else if (!is_collective && !seconds) {
      ++made.silent;
    } else if (wanted == Rows::All || (is_collective && !row.is_between_hosts())) {
      made.rows.push_back({.row = row,
                           .measured_us = host_measured_us(row),
                           .predicted_us = seconds.value_or(0.0) * 1e6});
      places.push_back(place);
    }
  }
  run_tasks(made.rows.size(), [&](std::size_t index) {
    HostPrediction& one = made.rows[index];
    if (one.row.operation()) {
      one.predicted_us = collectives.time(places[index], profile).microseconds();
    }
  });
  return made;
}

}  // namespace

HostPredictions predict_unfitted(const HostSet& set, const HostCollectives& collectives,
                                 const MpiProfile& profile, const TaskRunner& run_tasks) {
  return predict(set, collectives, profile, run_tasks, Rows::Unfitted);
}

HostPredictions predict_host(const HostSet& set, const Cluster& cluster, const MpiRules& rules,
                             const MpiProfile& profile, const TaskRunner& run_tasks) {
  return predict(set, HostCollectives(set, cluster, rules), profile, run_tasks, Rows::All);
}

std::vector<std::string> notes_of(const HostPredictions& predictions) {
  std::vector<std::string> notes;
  if (predictions.crowded > 0) {
    notes.push_back(fmt::format("{} rows of more ranks than the host has cores: not compared",
                                predictions.crowded));
  }
  if (predictions.silent > 0) {
    notes.push_back(
        fmt::format("{} rows of sockets and long messages of TCP: no key of the profile is for "
                    "them",
                    predictions.silent));
  }
  return notes;
}

}  // namespace trainyard
