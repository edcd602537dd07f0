// SPDX-License-Identifier: Apache-2.0
// Between two starts or ends the same operations run: a line through all of them, in order of time.
#include "calibration/measured/trace_breakdown.h"

#include <algorithm>
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
    case KinetoKind::Recorded:
      return "collective";  // Which one is not known, or not modelled.
    case KinetoKind::Send:
    case KinetoKind::Receive:
      break;
  }
  return "send and receive";
}

// The operations of one name.
struct NamedOperations {
  int running = 0;
  SimTime time;  // Time in which they show.
};

struct Edge {
  SimTime time;
  int change = 0;
  NamedOperations* of = nullptr;
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
  std::map<std::string, NamedOperations> names;
  std::vector<Edge> edges;
  for (const KinetoEvent& event : trace.events) {
    NamedOperations& of = names[name_of(event)];
    edges.push_back({.time = event.start, .change = 1, .of = &of});
    edges.push_back({.time = event.start + event.time, .change = -1, .of = &of});
  }
  std::ranges::stable_sort(edges, {}, &Edge::time);
  SimTime last = edges.front().time;
  for (const Edge& edge : edges) {
    const auto shown =
        std::ranges::find_if(names, [](const auto& one) { return one.second.running > 0; });
    if (shown != names.end()) {
      shown->second.time += edge.time - last;
    }
    last = edge.time;
    edge.of->running += edge.change;
  }
  TraceBreakdown made;
  const auto share = [&](SimTime time) { return SimTime(time.picoseconds() / steps); };
  made.time = share(last - edges.front().time);
  made.idle = made.time;
  for (const auto& [name, of] : names) {
    const SimTime time = share(of.time);
    made.idle = made.idle - time;
    if (name == kComputation) {
      made.computation = time;
    } else {
      made.traffic.push_back({.operation = name, .time = time});
    }
  }
  return made;
}

}  // namespace trainyard
