// SPDX-License-Identifier: Apache-2.0
#include "collectives/run/run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "collectives/placement/placement.h"
#include "collectives/run/executor.h"
#include "network/engines/make_network.h"
#include "sim/config_error.h"

namespace trainyard {

namespace {

// A message is a few hundred bytes of state on a connection that it may wait for, and chunks are
// counted in 32 bits. 4,096 ranks can do an alltoall on one channel.
constexpr std::int64_t kMaxPieces = 65'536;
constexpr std::int64_t kMaxConnections = 16'777'216;
constexpr std::int64_t kMaxChunks = 2'147'483'648;
// The most that --chunk may make: a minute of the flow engine (benchmarks/README.md), and as many
// as a ring of 4,096 ranks on eight channels has without it.
constexpr std::uint64_t kMaxTransfers = 268'435'456;

int pieces_of(const CollectiveJob& job, const RankLayout& layout) {
  if (!job.piece) {
    return default_pieces(job.algorithm, job.operation, layout, job.size);
  }
  const std::int64_t share = job.size.count() / layout.channels();
  const std::int64_t pieces = (share + job.piece->count() - 1) / job.piece->count();
  if (pieces > kMaxPieces) {
    throw ConfigError(fmt::format(
        "--chunk: expected at least {} for {} ({} pieces on each of {} channels), found {}",
        to_string(Bytes((share + kMaxPieces - 1) / kMaxPieces)), to_string(job.size), kMaxPieces,
        layout.channels(), to_string(*job.piece)));
  }
  return std::max(1, static_cast<int>(pieces));
}

// Refuses what would not fit, before anything is allocated.
void check_extent(const CollectiveJob& job, const RankLayout& layout, int pieces) {
  const std::int64_t ranks = layout.ranks();
  const std::int64_t channels = layout.channels();
  const std::int64_t connections =
      channels * ranks * job.algorithm->partners(job.operation, layout);
  if (connections > kMaxConnections) {
    throw ConfigError(fmt::format(
        "{} of {} ranks on {} channels: expected at most {} connections, found {}; use fewer ranks "
        "or --channels",
        to_string(job.operation), ranks, channels, kMaxConnections, connections));
  }
  const std::int64_t cuts = job.algorithm->stages == nullptr ? 1 : pieces;
  const std::int64_t chunks =
      channels * ranks * std::max(cuts, job.algorithm->chunks(job.operation, layout));
  if (chunks > kMaxChunks) {
    throw ConfigError(fmt::format(
        "{} of {} ranks on {} channels: expected at most {} chunks, found {}; use a larger --chunk "
        "or fewer --channels",
        to_string(job.operation), ranks, channels, kMaxChunks, chunks));
  }
}

// Each is a step of its sender and one of its receiver.
std::uint64_t transfers_of(const Schedule& schedule) {
  std::uint64_t steps = 0;
  for (std::uint32_t lane = 0; lane < schedule.shape().lanes; ++lane) {
    steps += schedule.step_count(LaneId(lane));
  }
  return steps / 2;
}

// Refuses pieces that would keep anyone waiting for hours, with the least that would not.
void check_transfers(const CollectiveJob& job, ScheduleOptions options, const Schedule& schedule) {
  const std::uint64_t transfers = transfers_of(schedule);
  if (!job.piece || transfers <= kMaxTransfers) {
    return;
  }
  options.pieces = 1;
  const std::uint64_t whole = transfers_of(*make_schedule(job.algorithm, job.operation, options));
  if (whole == transfers) {
    return;  // Not because of the pieces.
  }
  const auto pieces = static_cast<std::int64_t>(std::max<std::uint64_t>(1, kMaxTransfers / whole));
  const std::int64_t share = job.size.count() / options.layout.channels();
  throw ConfigError(fmt::format(
      "--chunk: expected at least {} for {} of {} by {} ranks (at most {} transfers), found {}, "
      "which makes {} transfers",
      to_string(Bytes((share + pieces - 1) / pieces)), to_string(job.operation),
      to_string(job.size), options.layout.ranks(), kMaxTransfers, to_string(*job.piece),
      transfers));
}

std::optional<Bottleneck> busiest_link(const std::vector<LinkUse>& uses, const Topology& topology,
                                       SimTime time) {
  std::optional<Bottleneck> busiest;
  for (const LinkUse& use : uses) {
    const double busy = transfer_time(use.bytes, topology.link(use.link).spec.bandwidth) / time;
    if (!busiest || busy > busiest->utilisation) {
      busiest = {.link = use.link, .utilisation = busy};
    }
  }
  return busiest;
}

// Another network, with what is sent counted now and then.
class CountedNetwork final : public Network {
 public:
  CountedNetwork(Network& network, TransferProgress& progress)
      : network_(network), progress_(progress) {}

  ConnectionId connect(const ConnectionSpec& spec) override { return network_.connect(spec); }
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override {
    constexpr std::uint64_t kCounted = 4'096;
    if (++sent_ % kCounted == 0) {
      progress_.done += kCounted;
    }
    network_.send(connection, size, done, token);
  }
  [[nodiscard]] SimTime quiet_time() const override { return network_.quiet_time(); }
  void reserve(std::size_t connections) override { network_.reserve(connections); }
  [[nodiscard]] NetworkStats stats() const override { return network_.stats(); }
  [[nodiscard]] std::vector<LinkUse> link_use() const override { return network_.link_use(); }

 private:
  Network& network_;
  TransferProgress& progress_;
  std::uint64_t sent_ = 0;
};

CollectiveResult run_schedule(const Cluster& cluster, Routing& routing, const CollectiveJob& job,
                              const Schedule& schedule, std::span<const NodeId> nodes,
                              TransferProgress* progress) {
  Simulator simulator;
  const auto network = make_network(job.fidelity, simulator, routing, job.packet, job.extras);
  std::optional<CountedNetwork> counted;
  if (progress != nullptr) {
    counted.emplace(*network, *progress);
    progress->all += transfers_of(schedule);
    ++progress->runs;
  }
  Executor executor(simulator, counted ? *counted : *network, schedule, nodes, job.size, job.trace);
  executor.start();
  simulator.run();
  CollectiveResult result{.channels = schedule.shape().channels,
                          .fingerprint = simulator.fingerprint(),
                          .network = network->stats(),
                          .complaint = network->complaint(),
                          .extras = extra_results(*network)};
  if (job.keeps_counters) {
    result.port_counters = network->port_counters();
    result.samples = network->samples();
  }
  if (result.complaint) {
    return result;
  }
  const std::optional<std::string> violation = executor.contract_violation();
  CHECK(!violation, *violation);
  result.time = executor.finish_time();
  result.link_use = network->link_use();
  result.bottleneck = busiest_link(result.link_use, cluster.topology, result.time);
  return result;
}

struct PlacedSchedule {
  Placement placement;
  std::unique_ptr<Schedule> schedule;
};

PlacedSchedule placed_schedule(const Cluster& cluster, const Routing& routing,
                               const CollectiveJob& job) {
  PlacedSchedule placed{.placement = place(cluster, routing, job.algorithm, job.channels),
                        .schedule = {}};
  ScheduleOptions& options = placed.placement.options;
  options.root = job.root;
  options.pieces = pieces_of(job, options.layout);
  options.matrix = job.matrix;
  check_extent(job, options.layout, options.pieces);
  placed.schedule = make_schedule(job.algorithm, job.operation, options);
  return placed;
}

// An executor that begins when its event comes.
class LateExecutor final : private EventHandler {
 public:
  LateExecutor(Simulator& simulator, Network& network, const CommunicatorJob& job,
               PlacedSchedule placed)
      : EventHandler(simulator),
        placed_(std::move(placed)),
        executor_(simulator, network, *placed_.schedule, placed_.placement.nodes, job.job.size,
                  job.job.trace) {
    simulator.schedule(job.start, *this, 0);
  }

  [[nodiscard]] const Executor& executor() const { return executor_; }
  [[nodiscard]] int channels() const { return placed_.schedule->shape().channels; }

 private:
  void on_event(std::uint64_t /*token*/) override { executor_.start(); }

  PlacedSchedule placed_;
  Executor executor_;
};

}  // namespace

std::optional<std::string> path_error(const Cluster& cluster, const CollectiveJob& job) {
  Routing routing(cluster.topology, cluster.routing);
  const PlacedSchedule placed = placed_schedule(cluster, routing, job);
  ScheduleConnections connections(*placed.schedule, placed.placement.nodes);
  std::vector<LinkId> path;
  for (std::uint32_t index = 0; index < placed.schedule->shape().connections; ++index) {
    const ConnectionSpec spec = connections.next();
    if (!routing.route(spec.source, spec.target, spec.flow_label, path, 0, spec.nic_turns)) {
      return fmt::format("no path leads from {} to {}", cluster.topology.node(spec.source).name,
                         cluster.topology.node(spec.target).name);
    }
  }
  return std::nullopt;
}

CollectiveResult run_collective(const Cluster& cluster, const CollectiveJob& job,
                                TransferProgress* progress) {
  Routing routing(cluster.topology, cluster.routing);
  if (job.schedule != nullptr) {
    CHECK(job.schedule->shape().operation == job.operation, "a schedule of another operation");
    return run_schedule(cluster, routing, job, *job.schedule, cluster.gpus, progress);
  }
  const auto [placement, schedule] = placed_schedule(cluster, routing, job);
  check_transfers(job, placement.options, *schedule);
  CollectiveResult result =
      run_schedule(cluster, routing, job, *schedule, placement.nodes, progress);
  result.pieces = placement.options.pieces;
  result.remarks = placement.remarks;
  return result;
}

std::vector<LinkUse> link_use_of(const Cluster& cluster, Routing& routing,
                                 const CollectiveJob& job) {
  CHECK(job.schedule == nullptr, "a schedule that has its places already");
  if (routing.policy().sprays) {
    return run_collective(cluster, job).link_use;
  }
  const auto [placement, schedule] = placed_schedule(cluster, routing, job);
  const ScheduleShape& shape = schedule->shape();
  const Chunking chunking(shape, job.size);
  std::vector<Bytes> sent(shape.connections);
  for (std::uint32_t lane = 0; lane < shape.lanes; ++lane) {
    const std::uint64_t steps = schedule->step_count(LaneId(lane));
    for (std::uint64_t index = 0; index < steps; ++index) {
      const Step step = schedule->step(LaneId(lane), index);
      if (step.kind == StepKind::Send) {
        sent[step.connection] += chunking.bytes(step.chunks);
      }
    }
  }
  ScheduleConnections connections(*schedule, placement.nodes);
  std::vector<Bytes> carried(cluster.topology.link_count());
  std::vector<LinkId> path;
  for (const Bytes bytes : sent) {
    const ConnectionSpec spec = connections.next();
    route_connection(routing, spec, spec.path, path);
    for (const LinkId link : path) {
      carried[link.value()] += bytes;
    }
  }
  return use_of(carried);
}

SharedRun run_together(const Cluster& cluster, std::span<const CommunicatorJob> jobs) {
  CHECK(!jobs.empty(), "communicators to run");
  const CollectiveJob& first = jobs.front().job;
  Routing routing(cluster.topology, cluster.routing);
  Simulator simulator;
  const auto network = make_network(first.fidelity, simulator, routing, first.packet, first.extras);
  Cluster group = cluster;
  std::vector<std::unique_ptr<LateExecutor>> executors;
  for (const CommunicatorJob& each : jobs) {
    CHECK(each.job.schedule == nullptr, "an algorithm by name");
    keep_ranks(cluster.gpus, each.ranks, group);
    PlacedSchedule placed = placed_schedule(group, routing, each.job);
    check_transfers(each.job, placed.placement.options, *placed.schedule);
    executors.push_back(
        std::make_unique<LateExecutor>(simulator, *network, each, std::move(placed)));
  }
  simulator.run();
  SharedRun run{.fingerprint = simulator.fingerprint(),
                .network = network->stats(),
                .link_use = network->link_use(),
                .complaint = network->complaint()};
  for (const auto& each : executors) {
    run.channels.push_back(each->channels());
    if (!run.complaint) {
      const std::optional<std::string> violation = each->executor().contract_violation();
      CHECK(!violation, *violation);
      // Messages that do not see each other end before their links have carried them all.
      run.ends.push_back(first.fidelity == Fidelity::Analytical ? each->executor().finish_time()
                                                                : each->executor().end());
    }
  }
  return run;
}

Bytes aligned_size(Operation operation, Bytes size, int ranks) {
  if (row_of(operation).splits) {
    constexpr std::int64_t kAlignment = 16;
    const std::int64_t part = size.count() / ranks / kAlignment * kAlignment;
    return Bytes(part * ranks);
  }
  return operation == Operation::Barrier ? Bytes(0) : size;
}

}  // namespace trainyard
