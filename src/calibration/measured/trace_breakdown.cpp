// SPDX-License-Identifier: Apache-2.0
// Between two starts or ends the same operations run: a line through all of them, in order of time.
#include "calibration/measured/trace_breakdown.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Computation stands before all names.
const std::string kComputation;

std::string name_of(const KinetoEvent& event) {
  switch (event.kind) {
    case KinetoKind::Work:
      return kComputation;
    case KinetoKind::Call:
      return std::string(to_string(event.operation));
    case KinetoKind::Send:
    case KinetoKind::Receive:
      break;
  }
  return "send and receive";
}

struct Edge {
  SimTime time;
  int change = 0;
  std::size_t name = 0;
};

}  // namespace

SimTime TraceBreakdown::shown_traffic() const {
  SimTime sum;
  for (const Traffic& each : traffic) {
    sum += each.time;
  }
  return sum;
}

TraceBreakdown breakdown_of(const KinetoTrace& trace, int steps) {
  CHECK(steps >= 1, "a trace has at least one step");
  if (trace.events.empty()) {
    throw ConfigError(trace.name + ": expected operations of a GPU, found none");
  }
  std::map<std::string, std::size_t> numbers;
  for (const KinetoEvent& event : trace.events) {
    numbers.emplace(name_of(event), 0);
  }
  std::vector<std::string> names;
  for (auto& [name, number] : numbers) {
    number = names.size();
    names.push_back(name);
  }
  std::vector<Edge> edges;
  for (const KinetoEvent& event : trace.events) {
    const std::size_t name = numbers.at(name_of(event));
    edges.push_back({.time = event.start, .change = 1, .name = name});
    edges.push_back({.time = event.start + event.time, .change = -1, .name = name});
  }
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.time < b.time; });
  std::vector<SimTime> times(names.size());
  std::vector<int> running(names.size(), 0);
  SimTime last = edges.front().time;
  for (const Edge& edge : edges) {
    const auto shown = std::find_if(running.begin(), running.end(), [](int n) { return n > 0; });
    if (shown != running.end()) {
      times[static_cast<std::size_t>(shown - running.begin())] += edge.time - last;
    }
    last = edge.time;
    running[edge.name] += edge.change;
  }
  TraceBreakdown made;
  const auto share = [&](SimTime time) { return SimTime(time.picoseconds() / steps); };
  made.time = share(last - edges.front().time);
  made.idle = made.time;
  for (std::size_t index = 0; index < names.size(); ++index) {
    const SimTime time = share(times[index]);
    made.idle = made.idle - time;
    if (names[index] == kComputation) {
      made.computation = time;
    } else {
      made.traffic.push_back({.operation = names[index], .time = time});
    }
  }
  return made;
}

}  // namespace trainyard
