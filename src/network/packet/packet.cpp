// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "sim/config_error.h"
#include "sim/host/run_host.h"
#include "topology/routing/fabric_router.h"

namespace trainyard {
namespace {

// Names the mechanism that stopped the links.
std::string_view name_of_deadlock(const PacketEngine& engine, const std::vector<LinkId>& cycle) {
  const auto is_paused = [&](LinkId link) {
    return (engine.port(link)->stops & Port::kPaused) != 0;
  };
  if (std::ranges::all_of(cycle, is_paused)) {
    return "PFC deadlock";
  }
  return std::ranges::none_of(cycle, is_paused) ? "credit deadlock" : "deadlock of PFC and credits";
}

// Adds switches that choose where the routing is adaptive. In dragonflies that is about ways of
// several lengths, and only done when a connection begins.
PacketOptions options_for(Routing& routing, const PacketOptions& options) {
  using Unit = AdaptiveOptions::Unit;
  const bool is_adaptive = routing.policy().switches_choose();
  const bool weighs_lengths = routing.fabric().weighs_lengths();
  if (options.adaptive && !is_adaptive) {
    throw ConfigError(fmt::format(
        "packet engine: expected a fabric with routing adaptive where switches choose ports, "
        "found {}",
        routing.policy().name));
  }
  if (options.adaptive && weighs_lengths && options.adaptive->unit != Unit::Connection) {
    throw ConfigError(fmt::format(
        "packet engine: expected the choice for a connection on a dragonfly, where ways differ in "
        "length, found that for a {}",
        options.adaptive->unit == Unit::Packet ? "packet" : "flowlet"));
  }
  PacketOptions all = options;
  if (is_adaptive && !weighs_lengths && !options.adaptive) {
    all.adaptive.emplace();
  }
  return all;
}

// All paths, by their numbers, where switches choose among them.
std::unique_ptr<Routing> routing_of_ways(const Routing& routing, const PacketOptions& options) {
  if (!options.adaptive || options.adaptive->unit == AdaptiveOptions::Unit::Connection) {
    return nullptr;
  }
  RoutingOptions all = routing.options();
  all.policy = RoutingPolicy::Spray;
  return std::make_unique<Routing>(routing.topology(), all);
}

}  // namespace

PacketNetwork::PacketNetwork(Simulator& simulator, Routing& routing, const PacketOptions& options)
    : EventHandler(simulator),
      simulator_(simulator),
      routing_(routing),
      engine_(routing.topology(), options_for(routing, options)),
      ways_(routing_of_ways(routing, engine_.fabric().options())),
      paths_(ways_ ? *ways_ : routing) {
  if (options.convergence) {
    expect_failures(options);
  }
}

// All that fail at one instant are known at one, and those that failed before still are.
void PacketNetwork::expect_failures(const PacketOptions& options) {
  std::map<SimTime, std::vector<LinkId>> failures;
  for (const LinkFailure& failure : options.failures) {
    failures[failure.time].push_back(failure.link);
  }
  const Routing& paths = ways_ ? *ways_ : routing_;
  std::vector<LinkId> failed;
  for (const auto& [time, links] : failures) {
    failed.insert(failed.end(), links.begin(), links.end());
    convergences_.push_back({.known = (time + *options.convergence).picoseconds(),
                             .routes = std::make_unique<SurvivingRoutes>(routing_.topology(),
                                                                         paths.options(), failed)});
  }
}

std::vector<PacketNetwork::Reroute> PacketNetwork::reroutes(const ConnectionSpec& spec,
                                                            std::uint32_t number) {
  std::vector<Reroute> later;
  std::vector<LinkId> path = route_;
  for (const Convergence& convergence : convergences_) {
    std::vector<LinkId> next = path;
    const auto outcome = convergence.routes->reroute({.source = spec.source,
                                                      .target = spec.target,
                                                      .flow_label = spec.flow_label,
                                                      .number = number},
                                                     next);
    if (outcome != SurvivingRoutes::Outcome::Moved) {
      continue;
    }
    if (convergence.known <= simulator_.now().picoseconds()) {
      path = next;
      route_ = next;
    } else if (next.front() == path.front() && next.back() == path.back()) {
      path = next;
      later.push_back({.from = convergence.known, .path = std::move(next)});
    }
  }
  return later;
}

// Where links are missing ways may differ in length: the shortest are taken.
std::vector<std::vector<LinkId>> PacketNetwork::ways_of(const ConnectionSpec& spec,
                                                        const std::vector<std::uint32_t>& numbers,
                                                        SurvivingRoutes* left) {
  std::vector<std::vector<LinkId>> ways;
  for (const std::uint32_t number : numbers) {
    if (!route_way(spec, number, left)) {
      continue;
    }
    if (!ways.empty()) {
      const std::vector<LinkId>& first = ways.front();
      if (route_.front() != first.front() || route_.back() != first.back() ||
          route_.size() > first.size()) {
        continue;
      }
      if (route_.size() < first.size()) {
        ways.clear();
      }
    }
    if (std::ranges::find(ways, route_) == ways.end()) {
      ways.push_back(route_);
    }
  }
  return ways;
}

// Its route_ is this way, or what is left of it. False if nothing is.
bool PacketNetwork::route_way(const ConnectionSpec& spec, std::uint32_t number,
                              SurvivingRoutes* left) {
  route_connection(*ways_, spec, number, route_);
  return left == nullptr || left->reroute({.source = spec.source,
                                           .target = spec.target,
                                           .flow_label = spec.flow_label,
                                           .number = number},
                                          route_) != SurvivingRoutes::Outcome::CutOff;
}

// Takes up to as many paths as are sprayed over. Connections between the same links share them, and
// those that they take later.
std::uint32_t PacketNetwork::connect_adaptive(const ConnectionSpec& spec) {
  const Picoseconds now = simulator_.now().picoseconds();
  const auto later = std::ranges::find_if(
      convergences_, [&](const Convergence& convergence) { return convergence.known > now; });
  SurvivingRoutes* const left =
      later == convergences_.begin() ? nullptr : std::prev(later)->routes.get();
  static_cast<void>(route_way(spec, 0, left));
  if (route_.empty()) {
    return kNoIndex;
  }
  const Topology& topology = routing_.topology();
  std::vector<LinkId> ends;
  for (const LinkId link : route_) {
    const bool leaves_switch = topology.node(topology.link(link).source).kind == NodeKind::Switch;
    const bool enters_switch = topology.node(topology.link(link).target).kind == NodeKind::Switch;
    if (!leaves_switch || !enters_switch) {
      ends.push_back(link);
    }
  }
  if (const auto found = first_of_.find(ends); found != first_of_.end()) {
    return engine_.add_twin(found->second, spec.priority);
  }
  std::vector<std::uint32_t> numbers = paths_.next(spec);
  numbers.insert(numbers.begin(), 0);
  std::vector<std::vector<LinkId>> ways = ways_of(spec, numbers, left);
  if (ways.empty()) {  // Nothing is left of any: it tries those of before, and gives up.
    ways = ways_of(spec, numbers, nullptr);
  }
  const std::uint32_t id = engine_.add_adaptive(ways, spec.priority);
  first_of_.emplace(std::move(ends), id);
  for (auto convergence = later; convergence != convergences_.end(); ++convergence) {
    std::vector<std::vector<LinkId>> next = ways_of(spec, numbers, convergence->routes.get());
    if (!next.empty() && next != ways && next.front().front() == ways.front().front() &&
        next.front().back() == ways.front().back()) {
      ways = std::move(next);
      engine_.reroute_ways(id, convergence->known, ways);
    }
  }
  return id;
}

std::uint32_t PacketNetwork::connect_sprayed(const ConnectionSpec& spec,
                                             const std::vector<std::uint32_t>& numbers) {
  std::vector<std::vector<LinkId>> paths = {route_};
  const std::uint32_t id = engine_.add_connection(route_, spec.priority);
  for (std::size_t i = 1; i < numbers.size(); ++i) {
    route_connection(routing_, spec, numbers[i], route_);
    engine_.add_alternative(id, route_);
    paths.push_back(route_);
  }
  leave_out_failed(id, paths);
  return id;
}

// Answers come back by the first path that is left. Once none would be left, those of before stay.
void PacketNetwork::leave_out_failed(std::uint32_t id,
                                     const std::vector<std::vector<LinkId>>& paths) {
  const Picoseconds now = simulator_.now().picoseconds();
  std::vector<bool> is_left(paths.size(), true);
  std::size_t back = 0;
  std::map<Picoseconds, std::size_t> backs;  // Path by the time from which on it is taken.
  for (const Convergence& convergence : convergences_) {
    std::vector<bool> works;
    for (const std::vector<LinkId>& path : paths) {
      works.push_back(std::ranges::none_of(
          path, [&](LinkId link) { return convergence.routes->has_failed(link); }));
    }
    const auto first = std::ranges::find(works, true);
    if (first == works.end()) {
      break;
    }
    for (std::size_t i = 0; i < paths.size(); ++i) {
      if (is_left[i] && !works[i]) {
        engine_.retire(id, convergence.known, paths[i]);
        is_left[i] = false;
      }
    }
    if (!works[back]) {
      back = static_cast<std::size_t>(first - works.begin());
      backs[std::max(now, convergence.known)] = back;
    }
  }
  for (const auto& [from, path] : backs) {
    engine_.reroute(id, from, paths[path]);
  }
}

ConnectionId PacketNetwork::connect(const ConnectionSpec& spec) {
  if (ways_) {
    connections_.push_back(connect_adaptive(spec));
    wake_at_border();
    return ConnectionId(static_cast<std::uint32_t>(connections_.size() - 1));
  }
  const bool is_sprayed = routing_.policy().sprays;
  std::vector<std::uint32_t> numbers =
      is_sprayed ? paths_.next(spec) : std::vector<std::uint32_t>{spec.path};
  // Answers come back by the first path: those of all connections would share one spine.
  const std::size_t turn = connections_.size() % numbers.size();
  std::rotate(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(turn), numbers.end());
  route_connection(routing_, spec, numbers.front(), route_);
  if (numbers.size() > 1) {
    connections_.push_back(connect_sprayed(spec, numbers));
  } else {
    const std::vector<Reroute> later = reroutes(spec, numbers.front());
    connections_.push_back(route_.empty() ? kNoIndex
                                          : engine_.add_connection(route_, spec.priority));
    for (const Reroute& reroute : later) {
      engine_.reroute(connections_.back(), reroute.from, reroute.path);
    }
  }
  wake_at_border();  // The new path may have shortened the windows.
  return ConnectionId(static_cast<std::uint32_t>(connections_.size() - 1));
}

void PacketNetwork::send(ConnectionId id, Bytes size, EventHandler& done, std::uint64_t token) {
  CHECK(size >= Bytes(0), "a message of negative size");
  const std::uint32_t connection = connections_[id.value()];
  if (connection == kNoIndex) {
    ++local_messages_;
    local_bytes_ += size;
    simulator_.schedule(SimTime(), done, token);
    return;
  }
  engine_.send(connection, {.time = simulator_.now().picoseconds(),
                            .size = size.count(),
                            .done = &done,
                            .token = token});
  if (!engine_.is_shared() || !wakes_soonest()) {
    wake_at_border();
  }
}

// Nothing that is sent now is due in a window before the one that holds this instant. Processes of
// a team need not ask each other for more.
bool PacketNetwork::wakes_soonest() const {
  const Picoseconds window = engine_.window();
  const Picoseconds now = simulator_.now().picoseconds();
  return wake_time_ <= SimTime((now / window + 1) * window);
}

void PacketNetwork::wake_at_border() {
  const Picoseconds border = engine_.next_border();
  if (border == kNeverTime) {
    return;
  }
  const SimTime time = std::max(simulator_.now(), SimTime(border));
  if (time < wake_time_) {
    wake_time_ = time;
    simulator_.schedule_at(time, *this, ++wake_generation_);
  }
}

void PacketNetwork::on_event(std::uint64_t token) {
  if (token != wake_generation_) {
    return;
  }
  wake_time_ = SimTime::max();
  while (engine_.next_border() <= simulator_.now().picoseconds()) {
    engine_.run_window(completions_);
    end_if_cancelled();  // Windows of a large fabric take long, and nothing is half done here.
  }
  for (const PacketEngine::Completion& completion : completions_) {
    simulator_.schedule_at(SimTime(completion.time), *completion.done, completion.token);
    last_end_ = std::max(last_end_, SimTime(completion.time));
  }
  completions_.clear();
  wake_at_border();
}

NetworkStats PacketNetwork::stats() const {
  engine_.gather();
  const PacketEngine::Counts counts = engine_.counts();
  return {.messages = counts.messages + local_messages_,
          .bytes = Bytes(counts.bytes) + local_bytes_,
          .connections = connections_.size(),
          .packets = engine_.stats()};
}

std::optional<std::string> PacketNetwork::complaint() const {
  engine_.gather();
  if (engine_.incomplete() == 0) {
    return std::nullopt;
  }
  const PacketStats stats = engine_.stats();
  std::string text = fmt::format("{} messages are not complete: {} packets were lost",
                                 engine_.incomplete(), stats.drops);
  if (stats.bit_errors + stats.link_down > 0) {
    text +=
        fmt::format(" ({} by bit errors, {} on failed links)", stats.bit_errors, stats.link_down);
  }
  if (stats.storm_drops > 0) {
    text += fmt::format(" ({} by watchdogs in {} pause storms)", stats.storm_drops, stats.storms);
  }
  const Topology& topology = routing_.topology();
  if (!engine_.failures().empty()) {
    const PacketEngine::Failure& first = engine_.failures().front();
    const auto [source, target] = engine_.ends_of(first.connection);
    text += fmt::format("; {} connections gave up after too many retries, such as {} -> {} at {}",
                        engine_.failures().size(), topology.node(source).name,
                        topology.node(target).name, to_string(SimTime(first.time)));
  }
  const std::vector<LinkId> cycle = engine_.deadlock();
  if (!cycle.empty()) {
    text +=
        fmt::format("; {}, each link stopped by the next one:", name_of_deadlock(engine_, cycle));
    for (const LinkId id : cycle) {
      const Link& link = topology.link(id);
      text += fmt::format(" {} -> {},", topology.node(link.source).name,
                          topology.node(link.target).name);
    }
    text.pop_back();
    const int channels = routing_.options().fabric.virtual_channels;
    text += channels > 1 ? fmt::format(
                               "; the fabric has {} virtual channels, which may keep it from "
                               "that, the packet engine has one.",
                               channels)
                         : ".";
  }
  return text;
}

std::optional<std::vector<PortCounters>> PacketNetwork::port_counters() const {
  engine_.gather();
  std::vector<PortCounters> all;
  for (std::uint32_t number = 0; number < routing_.topology().link_count(); ++number) {
    const LinkId link(number);
    if (const Port* const port = engine_.port(link)) {
      const PortTally& counted = port->counters;
      const PacketLosses::Tally lost = engine_.fabric().losses().tally(link);
      all.push_back({.link = link,
                     .packets = counted.packets,
                     .bytes = Bytes(static_cast<std::int64_t>(counted.bytes)),
                     .ecn_marked = counted.marks,
                     .dropped = counted.drops + lost.bit_errors + lost.link_down,
                     .no_room = counted.drops - counted.storm_drops,
                     .bit_errors = lost.bit_errors,
                     .link_down = lost.link_down,
                     .in_storms = counted.storm_drops,
                     .pause_frames_sent = counted.pauses_sent,
                     .pause_frames_received = counted.pauses_received,
                     .storms = engine_.storms(*port),
                     .paused = SimTime(engine_.paused_time(*port)),
                     .starved = SimTime(engine_.starved_time(*port)),
                     .queue_max = Bytes(counted.max_queued),
                     .queue_p50 = engine_.queue_percentile(*port, 50),
                     .queue_p99 = engine_.queue_percentile(*port, 99)});
    }
  }
  return all;
}

// The engine has no connection of a node to itself.
std::optional<PacketSamples> PacketNetwork::samples() const {
  std::optional<PacketSamples> samples = engine_.samples();
  if (!samples) {
    return std::nullopt;
  }
  std::vector<ConnectionId> ids;
  for (std::uint32_t number = 0; number < connections_.size(); ++number) {
    if (connections_[number] != kNoIndex) {
      ids.emplace_back(number);
    }
  }
  for (RateSample& rate : samples->rates) {
    rate.connection = ids[rate.connection.value()];
  }
  return samples;
}

std::optional<ConnectionCounters> PacketNetwork::connection_counters(
    ConnectionId connection) const {
  engine_.gather();
  const std::uint32_t number = connections_[connection.value()];
  return number == kNoIndex ? ConnectionCounters{} : engine_.counters(number);
}

}  // namespace trainyard
