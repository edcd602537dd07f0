// SPDX-License-Identifier: Apache-2.0
// Sends and receives over an engine: every message of every pair, in the order of NCCL's rounds.
//
// A rank meets its peers in rounds (point_to_point.h). What it sends to one is cut into parts, each
// on a channel; of the parts on one channel up to eight, a batch, run side by side in its block,
// each with a group of warps that sends and one that receives. A group takes the next batch when it
// has done its own part of this one, not when the whole block has. Each of its chunks over the
// network waits for the turns of the other connections of its batch, as in the closed form.
//
// Long sends are cut: the time is a straight line through that of a part of each send and that of
// half of the part, so all rounds are in both.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "nccl/timing/timing_state.h"
#include "nccl/tuning/chunking.h"
#include "nccl/tuning/point_to_point.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// An engine has a connection for each, with a few KiB of state.
constexpr std::size_t kMaxParts = 300'000;
constexpr std::uint64_t kUnits = 400'000;        // Units of all groups of warps in one run,
constexpr std::uint64_t kPacketUnits = 100'000;  // which are up to 64 packets each,
constexpr std::uint64_t kMinUnits = 16;          // but so many of each at least: twice its FIFO.
constexpr std::uint64_t kMaxUnits = 256;

constexpr Bytes kLowLatencyUnit{4'096};  // 512 threads hold 8 bytes each.

Bytes sent(Operation operation, int from, int to, int ranks, Bytes size) {
  switch (operation) {
    case Operation::AllToAll:
      return Bytes(size.count() / ranks);
    case Operation::SendReceive:
      return to == (from + 1) % ranks ? size : Bytes(0);
    case Operation::Scatter:
      return from == 0 ? Bytes(size.count() / ranks) : Bytes(0);
    case Operation::Gather:
      return to == 0 ? Bytes(size.count() / ranks) : Bytes(0);
    case Operation::AllReduce:
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllToAllV:
    case Operation::Broadcast:
    case Operation::Reduce:
    case Operation::Barrier:
      break;
  }
  CHECK(false, "an operation that is not made of sends and receives");
}

// A part of a send, on its channel.
struct Part {
  int from = 0;
  int to = 0;
  int round = 0;
  int channel = 0;
  Bytes bytes;
  bool far = false;  // To another node.
};

struct RoundExchange {
  PointToPointPlan near;  // Inside nodes.
  PointToPointPlan far;
  std::vector<Part> parts;  // Round after round.
  // Channels that each rank works on, by rank and round.
  std::vector<std::vector<int>> widths;
  int group_size = 1;
  SimTime turn;  // Turn of another connection, at both ends.

  [[nodiscard]] const PointToPointPlan& plan(const Part& part) const {
    return part.far ? far : near;
  }
  [[nodiscard]] Bytes longest() const {
    Bytes max;
    for (const Part& part : parts) {
      max = std::max(max, part.bytes);
    }
    return max;
  }
};

// The place of a round of a rank in the block of a channel: which group of warps of its batch works
// on it, how many there are, and the number of the batch.
struct Place {
  std::size_t group = 0;
  std::size_t of = 1;
  std::size_t batch = 0;
};
using Block = std::map<int, Place>;  // Places by round.

// The lanes of one exchange, with every send cut to `most` bytes a part.
class RoundsBuilder {
 public:
  RoundsBuilder(Timer::State& state, const RoundExchange& exchange)
      : state_(state), exchange_(exchange) {
    const int channels = state.communicator.p2p_channels;
    for (const std::vector<int>& widths : exchange.widths) {
      const auto batches = point_to_point_batches(widths, channels, state.communicator.nodes,
                                                  exchange.group_size, state.environment);
      for (const std::vector<PointToPointBatch>& of_channel : batches) {
        Block block;
        for (std::size_t number = 0; number < of_channel.size(); ++number) {
          const PointToPointBatch& batch = of_channel[number];
          for (std::size_t group = 0; group < batch.size(); ++group) {
            block[batch[group]] = {.group = group, .of = batch.size(), .batch = number};
          }
        }
        blocks_.push_back(std::move(block));
      }
    }
    for (const Part& part : exchange.parts) {
      if (part.far) {
        ++connections_[{part.from, block(part.from, part.channel).at(part.round).batch}];
      }
      wires_.push_back(state.complete.connect(
          {.from = part.from, .to = part.to, .channel = part.channel, .is_pair = true}));
    }
    make_ports();
  }

  [[nodiscard]] SimTime run(Bytes max) const {
    ReplayNetwork network;
    network.hosts = static_cast<std::uint32_t>(state_.communicator.ranks);
    network.ports = ports_;
    // Jobs by (rank, channel, group of warps, whether it sends).
    std::map<std::tuple<int, int, std::size_t, bool>, std::vector<TransferJob>> groups;
    for (std::size_t index = 0; index < exchange_.parts.size(); ++index) {
      const Part& part = exchange_.parts[index];
      TransferJob job = job_of(part, max);
      job.connection = connect(network, part, wires_[index]);
      for (const bool sends : {true, false}) {
        const int rank = sends ? part.from : part.to;
        const Place place = block(rank, part.channel).at(part.round);
        job.rate = rate(part).scaled(1.0 / static_cast<double>(place.of));
        job.cost = cost(part) + turns(part, rank, place);
        groups[{rank, part.channel, place.group, sends}].push_back(job);
      }
    }
    std::vector<ReplayLane> lanes;
    for (auto& [key, jobs] : groups) {
      const auto& [rank, channel, group, sends] = key;
      lanes.push_back({.rate = kMaxBandwidth,
                       .program = transfer_program(std::move(jobs), sends),
                       .rank = rank,
                       .channel = channel,
                       .work = sends ? "sends" : "receives"});
    }
    return state_.run_first(network, lanes, std::numeric_limits<std::uint64_t>::max(),
                            state_.recording(lanes));
  }

 private:
  [[nodiscard]] const Block& block(int rank, int channel) const {
    return blocks_[as_index(rank) * as_index(state_.communicator.p2p_channels) + as_index(channel)];
  }

  // Bytes that a block copies in a second.
  [[nodiscard]] Bandwidth rate(const Part& part) const {
    return exchange_.plan(part).protocol == Protocol::Simple ? state_.gpu.simple_rate
                                                             : state_.ll_rate(512);
  }

  [[nodiscard]] TransferJob job_of(const Part& part, Bytes max) const {
    const PointToPointPlan& plan = exchange_.plan(part);
    const bool simple = plan.protocol == Protocol::Simple;
    const bool whole = simple || plan.chunk.count() % kLowLatencyUnit.count() != 0;
    return {.bytes = std::min(part.bytes, max),
            .message = plan.chunk,
            .unit = whole ? plan.chunk : kLowLatencyUnit,
            .cost = cost(part)};
  }

  [[nodiscard]] SimTime cost(const Part& part) const {
    return exchange_.plan(part).protocol == Protocol::Simple ? state_.gpu.simple_cost
                                                             : state_.gpu.ll_cost;
  }

  // Returns how long a chunk at this end waits for the other connections of its batch, beyond what
  // the other groups of its block copy meanwhile.
  [[nodiscard]] SimTime turns(const Part& part, int rank, const Place& place) const {
    const auto found = connections_.find({rank, place.batch});
    if (!part.far || found == connections_.end()) {
      return SimTime();
    }
    const auto others = static_cast<std::int64_t>(place.of) - 1;
    const SimTime copies = transfer_time(exchange_.plan(part).chunk * others, rate(part));
    return std::max(SimTime(), exchange_.turn * (found->second - 1) - copies);
  }

  [[nodiscard]] std::uint32_t connect(ReplayNetwork& network, const Part& part,
                                      const Wire& wire) const {
    const TransferJob job = job_of(part, part.bytes);
    const auto units = static_cast<std::uint32_t>(job.message.count() / job.unit.count());
    return state_.add_connection(
        network, wire,
        {.protocol = exchange_.plan(part).protocol,
         .slots = std::uint32_t{kFifoSteps} * std::max(1U, units),
         .sender = part.far ? state_.complete.sending_rank(part.from, part.to) : part.from,
         .receiver = part.to});
  }

  void make_ports() {
    const std::vector<Bandwidth> near = state_.port_rates(state_.complete, exchange_.near.protocol);
    ports_ = state_.port_rates(state_.complete, exchange_.far.protocol);
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      if (state_.complete.ports()[port].kind == LinkKind::NvLink) {
        ports_[port] = near[port].scaled(state_.gpu.point_to_point_link);
      }
    }
  }

  Timer::State& state_;
  const RoundExchange& exchange_;
  std::vector<Block> blocks_;  // Blocks by rank and channel.
  std::vector<Wire> wires_;    // Wires by part.
  // Counts of connections over the network by rank and batch.
  std::map<std::pair<int, std::size_t>, std::int64_t> connections_;
  std::vector<Bandwidth> ports_;
};

RoundExchange make_exchange(const Communicator& communicator, const Environment& environment,
                            const Wiring& wiring, Operation operation, Bytes size) {
  const int ranks = communicator.ranks;
  const Bytes of_pair = sent(operation, 0, operation == Operation::Gather ? 0 : 1, ranks, size);
  RoundExchange exchange;
  exchange.near = plan_point_to_point(communicator, environment, of_pair, false);
  exchange.far = plan_point_to_point(communicator, environment, of_pair, true);
  exchange.group_size = schedule_group_size(communicator.first_rank, environment);
  exchange.widths.assign(as_index(ranks), std::vector<int>(as_index(ranks), 0));
  for (int rank = 0; rank < ranks; ++rank) {
    const auto rounds = point_to_point_schedule(rank, ranks, exchange.group_size);
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      const int to = rounds[round].send_to;
      const Bytes bytes = sent(operation, rank, to, ranks, size);
      if (to == rank || bytes.count() == 0) {
        continue;
      }
      const bool far = wiring.node_of(rank) != wiring.node_of(to);
      const PointToPointPlan& plan = far ? exchange.far : exchange.near;
      int used = 0;
      for (int index = 0; index < plan.parts; ++index) {
        if (const Bytes part = plan.bytes_of_part(index, bytes); part.count() > 0) {
          exchange.parts.push_back(
              {.from = rank,
               .to = to,
               .round = static_cast<int>(round),
               .channel = channel_of_part(static_cast<int>(round), index, communicator.p2p_channels,
                                          communicator.nodes, exchange.group_size),
               .bytes = part,
               .far = far});
          ++used;
        }
      }
      for (const int end : {rank, to}) {
        exchange.widths[as_index(end)][round] =
            std::max(exchange.widths[as_index(end)][round], used);
      }
    }
  }
  // Both ends of a send come to it in the order of rounds.
  std::stable_sort(exchange.parts.begin(), exchange.parts.end(),
                   [](const Part& a, const Part& b) { return a.round < b.round; });
  return exchange;
}

}  // namespace

SimTime Timer::State::rounds(Operation operation, Bytes size) {
  RoundExchange exchange = make_exchange(communicator, environment, complete, operation, size);
  exchange.turn = turn_of_connection(operation);
  if (exchange.parts.size() > kMaxParts) {
    throw ConfigError(fmt::format(
        "{} over the {} engine: expected at most {} parts of sends, found {} between {} ranks; use "
        "fewer, or --fidelity ports",
        to_string(operation), to_string(engine->fidelity), kMaxParts, exchange.parts.size(),
        communicator.ranks));
  }
  const RoundsBuilder builder(*this, exchange);
  const std::uint64_t all = engine->fidelity == Fidelity::Packet ? kPacketUnits : kUnits;
  const std::uint64_t units = std::clamp<std::uint64_t>(
      all / (2 * std::max<std::size_t>(1, exchange.parts.size())), kMinUnits, kMaxUnits);
  const Bytes longest = exchange.longest();
  const Bytes part =
      std::min(longest, communicator.p2p_chunk * static_cast<std::int64_t>(units / 2 * 2));
  SimTime time = builder.run(part);
  if (part < longest) {
    const Bytes half(part.count() / 2);
    TraceRecorder* const recorder = std::exchange(trace, nullptr);  // One run is recorded.
    const SimTime rest = time - builder.run(half);
    trace = recorder;
    const double factor =
        static_cast<double>((longest - part).count()) / static_cast<double>((part - half).count());
    time += SimTime(static_cast<std::int64_t>(static_cast<double>(rest.picoseconds()) * factor));
  }
  const Protocol protocol = std::max(exchange.near.protocol, exchange.far.protocol);
  return profile.ring_base[protocol] + profile.per_channel * send_channels(operation, size) + time;
}

}  // namespace trainyard::nccl
