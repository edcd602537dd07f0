// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic_run.h"

#include <spdlog/fmt/fmt.h>
#include <algorithm>

#include <cstddef>
#include <utility>

#include "network/traffic/traffic_flows.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/graph/path.h"

namespace trainyard {
namespace {

// An exbibyte: sums of bits stay in 64 bits.
constexpr Bytes kMaxTrafficBytes{std::int64_t{1} << 60};

class Runner {
 public:
  Runner(Simulator& simulator, Network& network, Routing& routing, const TrafficSpec& spec,
         std::int64_t expected_flows)
      : simulator_(simulator),
        network_(network),
        routing_(routing),
        expected_(static_cast<std::size_t>(expected_flows)),
        starts_(simulator, *this),
        ends_(simulator, *this) {
    flows_.reserve(expected_);
    network_.reserve(expected_);
    for (const TrafficGroup& group : spec.groups) {
      sources_.emplace_back(group);
      waiting_.push_back(sources_.back().next());
      schedule(waiting_.size() - 1);
    }
  }

  std::vector<FlowRecord> take_flows() { return std::move(flows_); }
  // Returns the time as of the end of the last flow: timers of the network may run on.
  [[nodiscard]] SimTime quiet_time() const { return quiet_time_; }

 private:
  // Two handlers, so that tokens need no tags: a group that has flows due, a flow that is complete.
  template <void (Runner::*kCall)(std::size_t)>
  class Handler final : public EventHandler {
   public:
    Handler(Simulator& simulator, Runner& runner) : EventHandler(simulator), runner_(runner) {}
    void on_event(std::uint64_t token) override { (runner_.*kCall)(token); }

   private:
    Runner& runner_;
  };

  void schedule(std::size_t group) {
    if (waiting_[group]) {
      simulator_.schedule_at(waiting_[group]->time, starts_, group);
    }
  }

  void start_due(std::size_t group) {
    std::optional<FlowStart>& next = waiting_[group];
    while (next && next->time == simulator_.now()) {
      start(group, *next);
      next = sources_[group].next();
    }
    schedule(group);
  }

  void start(std::size_t group, const FlowStart& flow) {
    const ConnectionId connection = network_.connect({.source = flow.source,
                                                      .target = flow.target,
                                                      .flow_label = flow.label,
                                                      .priority = flow.priority});
    const bool is_reached = routing_.route(flow.source, flow.target, flow.label, path_);
    CHECK(is_reached, "the network found a path and the routing none");
    const Topology& topology = routing_.topology();
    const SimTime alone =
        path_latency(topology, path_) + transfer_time(flow.size, path_bandwidth(topology, path_));
    flows_.push_back({.start = simulator_.now(),
                      .alone = alone,
                      .size = flow.size,
                      .source = flow.source,
                      .target = flow.target,
                      .group = static_cast<std::uint32_t>(group),
                      .label = flow.label,
                      .connection = connection});
    network_.send(connection, flow.size, ends_, flows_.size() - 1);
  }

  void end(std::size_t flow) {
    CHECK(!flows_[flow].end, "a flow was complete twice");
    flows_[flow].end = simulator_.now();
    if (++ended_ == expected_) {
      quiet_time_ = std::max(simulator_.now(), network_.quiet_time());
    }
  }

  Simulator& simulator_;
  Network& network_;
  Routing& routing_;
  std::size_t expected_;
  Handler<&Runner::start_due> starts_;
  Handler<&Runner::end> ends_;
  std::vector<FlowSource> sources_;
  std::vector<std::optional<FlowStart>> waiting_;  // The next flow of each group.
  std::vector<FlowRecord> flows_;
  std::size_t ended_ = 0;
  SimTime quiet_time_;
  std::vector<LinkId> path_;  // Scratch.
};

}  // namespace

std::vector<GroupPlan> plan_traffic(const Cluster& cluster, const TrafficSpec& spec) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<GroupPlan> plans;
  std::vector<LinkId> path;
  std::int64_t flows = 0;
  Bytes bytes;
  for (const TrafficGroup& group : spec.groups) {
    const auto fail = [&](const std::string& what) {
      throw ConfigError(fmt::format("{}: group {}: {}", spec.file, group.name, what));
    };
    GroupPlan plan;
    FlowSource source(group);
    for (auto flow = source.next(); flow; flow = source.next()) {
      ++plan.flows;
      plan.bytes += flow->size;
      if (++flows > kMaxTrafficFlows) {
        fail(fmt::format("expected at most {} flows in all, found more", kMaxTrafficFlows));
      }
      bytes += flow->size;
      if (bytes > kMaxTrafficBytes) {
        fail(fmt::format("expected at most {} in all, found more", to_string(kMaxTrafficBytes)));
      }
      if (!routing.route(flow->source, flow->target, flow->label, path)) {
        fail(fmt::format("no path leads from {} to {}: the cluster does not connect them",
                         cluster.topology.node(flow->source).name,
                         cluster.topology.node(flow->target).name));
      }
    }
    if (plan.flows == 0) {
      fail("expected a flow or more, found none: its duration is too short for its load");
    }
    plans.push_back(plan);
  }
  return plans;
}

TrafficRun run_traffic(Simulator& simulator, Network& network, Routing& routing,
                       const TrafficSpec& spec, std::int64_t expected_flows) {
  Runner runner(simulator, network, routing, spec, expected_flows);
  simulator.run();
  std::vector<FlowRecord> flows = runner.take_flows();
  CHECK(static_cast<std::int64_t>(flows.size()) == expected_flows, "other flows than planned");
  return {.flows = std::move(flows),
          .network = network.stats(),
          .quiet_time = runner.quiet_time(),
          .link_use = network.link_use(),
          .port_counters = network.port_counters(),
          .events = simulator.events_processed(),
          .fingerprint = simulator.fingerprint()};
}

std::vector<std::string> broken_promises(const Topology& topology, const TrafficSpec& spec,
                                         const TrafficRun& run, std::size_t max) {
  std::vector<std::string> lines;
  std::size_t waiting = 0;
  Bytes asked;
  for (const FlowRecord& flow : run.flows) {
    asked += flow.size;
    if (flow.end) {
      continue;
    }
    if (++waiting < max) {
      lines.push_back(fmt::format("group {}: {} waits for {} from {}, sent at {}",
                                  spec.groups[flow.group].name, topology.node(flow.target).name,
                                  to_string(flow.size), topology.node(flow.source).name,
                                  to_string(flow.start)));
    }
  }
  if (waiting > 0) {
    lines.push_back(fmt::format("{} of {} flows never were complete", waiting, run.flows.size()));
  } else if (run.network.bytes != asked) {
    lines.push_back(fmt::format("the network carried {} bytes where {} were asked for",
                                run.network.bytes.count(), asked.count()));
  }
  return lines;
}

}  // namespace trainyard
