// SPDX-License-Identifier: Apache-2.0
// The runs behind `trainyard explain`, whatever is explained.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallelism/run/resources.h"
#include "parallelism/traffic/link_bytes.h"
#include "report/results/explain_report.h"

namespace trainyard {

// How much better and worse each resource is made.
inline constexpr double kExplainFactor = 1.1;

// The times that are explained, on that machine: as many as there are labels, all positive. Called
// from several threads at once.
using TimesOf = std::function<std::vector<SimTime>(const MachineModel&)>;

struct ExplainLabel {
  std::string label;
  std::string how;
};

// The inputs that are the same for every resource.
struct ExplainTask {
  const MachineModel& machine;
  std::vector<Resource> resources;
  std::vector<ExplainLabel> labels;
  unsigned threads = 0;
};

// Runs everything and fills in times, effects, and as improvements the resources that help. Throws
// ConfigError where nothing takes any time.
[[nodiscard]] std::vector<ExplainedTime> explain_times(const ExplainTask& task,
                                                       const TimesOf& times_of);

// Another setting, and its time where it can be run.
struct SettingVariant {
  std::string what;
  std::function<std::optional<SimTime>()> run;  // Nothing: it cannot be.
};
// Adds those that help to the improvements, and sorts all of them. ConfigErrors of variants mean
// that they cannot be.
void add_settings(std::span<const SettingVariant> variants, unsigned threads, ExplainedTime& time);

// The busiest links in a run of that time, those that are alike together; the five busiest kinds.
[[nodiscard]] std::vector<ContendedLinks> contended_links(const Topology& topology,
                                                          std::span<const LinkTraffic> traffic,
                                                          SimTime time);
// Adds those of the traffic, which is that of this time, and the volumes of all links.
void add_links(const Cluster& cluster, std::span<const LinkTraffic> traffic, ExplainedTime& time);

}  // namespace trainyard
