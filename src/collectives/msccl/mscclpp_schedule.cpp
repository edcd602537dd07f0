// SPDX-License-Identifier: Apache-2.0
#include "collectives/msccl/mscclpp_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "collectives/msccl/msccl_places.h"
#include "collectives/schedule/semantics.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

class PlanBuilder {
 public:
  PlanBuilder(const MscclppPlan& plan, const std::string& name)
      : plan_(plan), name_(name), places_(plan.algorithm) {}

  std::unique_ptr<Schedule> build() {
    std::size_t blocks = 1;
    for (int rank = 0; rank < ranks(); ++rank) {
      own_.push_back(places_.own());
      for (const auto& steps : steps_of(rank)) {
        block_lanes_[rank].push_back(add_lane(rank));
        for (const PlanStep& step : steps) {
          if (step.operation == PlanOperation::Barrier) {
            at_barrier_[{rank, step.barrier}].insert(block_lanes_[rank].back());
          }
        }
      }
      blocks = std::max(blocks, steps_of(rank).size());
    }
    for (int rank = 0; rank < ranks(); ++rank) {
      for (std::size_t block = 0; block < steps_of(rank).size(); ++block) {
        add_block(block_lanes_[rank][block], steps_of(rank)[block]);
      }
    }
    for (const auto& [lane, index, find] : waits_) {
      const Reached reached = find();
      lanes_[lane].steps[index] = {.kind = StepKind::Wait,
                                   .connection = reached.lane,
                                   .chunks = {.first = reached.steps, .count = 0}};
    }
    const MscclAlgorithm& algorithm = plan_.algorithm;
    auto schedule = std::make_unique<MscclSchedule>(
        ScheduleShape{.operation = algorithm.operation,
                      .algorithm = algorithm.name.empty() ? "mscclpp" : algorithm.name,
                      .ranks = ranks(),
                      .channels = static_cast<int>(blocks),
                      .root = RankId(0),
                      .chunk_count = std::ranges::max(own_),
                      .size_chunks = static_cast<std::uint32_t>(algorithm.chunks),
                      .lanes = static_cast<std::uint32_t>(lanes_.size()),
                      .connections = static_cast<std::uint32_t>(connections_.size())},
        lanes_, connections_, algorithm);
    prove(*schedule);
    return schedule;
  }

 private:
  // A lane that has taken so many steps.
  struct Reached {
    std::uint32_t lane = 0;
    std::uint32_t steps = 0;
  };
  using Puts = std::map<int, Reached>;  // Keys are GPUs.
  struct Release {
    Reached reached;
    Puts puts;
  };
  // The way to the memory of another GPU, and the lane there that stores, or that answers reads.
  struct Way {
    std::uint32_t connection = 0;
    std::uint32_t answers = 0;  // Connection of the answers.
    std::uint32_t lane = 0;
  };
  // One end of a channel: from, to, by port, number.
  using ChannelKey = std::tuple<int, int, bool, int>;

  [[nodiscard]] int ranks() const { return static_cast<int>(plan_.algorithm.gpus.size()); }
  [[nodiscard]] const std::vector<std::vector<PlanStep>>& steps_of(int rank) const {
    return plan_.steps[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] int rank_of(std::uint32_t lane) const {
    return static_cast<int>(lanes_[lane].rank.value());
  }

  [[noreturn]] void fail(const std::string& place, const std::string& what) const {
    throw ConfigError(fmt::format("{}: {}: {}", name_, place, what));
  }

  std::uint32_t add_lane(int rank) {
    lanes_.push_back({.rank = RankId(static_cast<std::uint32_t>(rank)), .steps = {}});
    origins_.emplace_back();
    return static_cast<std::uint32_t>(lanes_.size() - 1);
  }
  std::uint32_t connect(int from, int to) {
    connections_.push_back({.source = RankId(static_cast<std::uint32_t>(from)),
                            .target = RankId(static_cast<std::uint32_t>(to))});
    return static_cast<std::uint32_t>(connections_.size() - 1);
  }
  const Way& way(std::uint32_t lane, int peer, bool reads) {
    const auto [entry, is_new] = ways_.try_emplace({lane, peer, reads});
    if (is_new) {
      const int rank = rank_of(lane);
      entry->second = {.connection = connect(rank, peer),
                       .answers = reads ? connect(peer, rank) : 0,
                       .lane = add_lane(peer)};
    }
    return entry->second;
  }

  Reached push(std::uint32_t lane, const Step& step) {
    lanes_[lane].steps.push_back(step);
    origins_[lane].push_back(step_->place);
    return {.lane = lane, .steps = static_cast<std::uint32_t>(lanes_[lane].steps.size())};
  }
  // A message without bytes.
  static Step message(StepKind kind, std::uint32_t connection) {
    return {.kind = kind, .connection = connection, .chunks = {}};
  }
  // A wait for what `find` names once all is laid out.
  void wait(std::uint32_t lane, std::function<Reached()> find) {
    waits_.emplace_back(lane, lanes_[lane].steps.size(), std::move(find));
    push(lane, {});
  }

  [[nodiscard]] ChunkRange range(const PlanBuffer& buffer) const {
    return {.first = places_.at(buffer.rank, buffer.buffer, buffer.first),
            .count = static_cast<std::uint32_t>(buffer.count)};
  }

  Reached put(std::uint32_t lane, ChunkRange from, const PlanBuffer& to) {
    const Way& there = way(lane, to.rank, false);
    push(lane, {.kind = StepKind::Send, .connection = there.connection, .chunks = from});
    return push(there.lane,
                {.kind = StepKind::Receive, .connection = there.connection, .chunks = range(to)});
  }
  // Asks another GPU for what stands there; returns what take() gets.
  std::uint32_t ask(std::uint32_t lane, const PlanBuffer& from) {
    const Way& there = way(lane, from.rank, true);
    push(lane, message(StepKind::Send, there.connection));
    push(there.lane, message(StepKind::Receive, there.connection));
    push(there.lane, {.kind = StepKind::Send, .connection = there.answers, .chunks = range(from)});
    return there.answers;
  }
  void take(std::uint32_t lane, std::uint32_t answers, ChunkRange to) {
    push(lane, {.kind = StepKind::Receive, .connection = answers, .chunks = to});
  }
  Reached copy(std::uint32_t lane, ChunkRange from, ChunkRange to) {
    return push(lane, {.kind = StepKind::Copy, .connection = from.first, .chunks = to});
  }

  void write_packets(const PlanBuffer& to, Reached written) {
    for (std::uint32_t chunk = 0; chunk < range(to).count; ++chunk) {
      if (!packets_.emplace(std::pair(to.rank, range(to).first + chunk), written).second) {
        fail(step_->place, "expected packets of a chunk to be written once, found a second time");
      }
    }
  }
  void await_packets(std::uint32_t lane, const PlanBuffer& from) {
    for (std::uint32_t chunk = 0; chunk < range(from).count; ++chunk) {
      wait(lane, [this, rank = from.rank, place = range(from).first + chunk, step = step_] {
        const auto found = packets_.find({rank, place});
        if (found == packets_.end()) {
          fail(step->place, fmt::format("expected packets in {}, found nothing that writes them",
                                        places_.name_of(place)));
        }
        return found->second;
      });
    }
  }

  // Notes which lane does something by number, of which one alone may.
  template <typename Key>
  void claim(std::map<Key, std::uint32_t>& users, const Key& key, std::uint32_t lane,
             std::string_view what) {
    if (users.try_emplace(key, lane).first->second != lane) {
      fail(step_->place,
           fmt::format("expected one thread block of a GPU that {}, found two", what));
    }
  }

  void signal(std::uint32_t lane, const PlanChannel& channel) {
    const ChannelKey key{rank_of(lane), channel.peer, channel.is_port, channel.number};
    claim(signallers_, key, lane, "signals on a channel");
    const Way& there = way(lane, channel.peer, false);
    for (const auto& [other, put] : follows_[lane]) {
      wait(there.lane, [find = put, peer = channel.peer, &there] {
        const Puts puts = find();
        const auto found = puts.find(peer);
        return found == puts.end() ? Reached{.lane = there.lane} : found->second;
      });
    }
    push(lane, message(StepKind::Send, there.connection));
    signals_[key].push_back(push(there.lane, message(StepKind::Receive, there.connection)));
  }

  // How far lanes of other GPUs are with what `lane` has put there until now.
  [[nodiscard]] Puts puts_of(std::uint32_t lane) const {
    Puts puts;
    for (const auto& [key, there] : ways_) {
      if (std::get<0>(key) == lane && !std::get<2>(key)) {
        puts[std::get<1>(key)] = {
            .lane = there.lane,
            .steps = static_cast<std::uint32_t>(lanes_[there.lane].steps.size())};
      }
    }
    return puts;
  }

  void await_signal(std::uint32_t lane, const PlanChannel& channel) {
    const ChannelKey key{channel.peer, rank_of(lane), channel.is_port, channel.number};
    claim(waiters_, key, lane, "waits on a channel");
    wait(lane, [this, key, number = awaited_[key]++, step = step_] {
      const std::vector<Reached>& signals = signals_[key];
      if (number >= signals.size()) {
        fail(step->place,
             fmt::format("expected signal {} of GPU {} on this channel, found {} in all",
                         number + 1, std::get<0>(key), signals.size()));
      }
      return signals[number];
    });
  }

  void meet(std::uint32_t lane) {
    const int barrier = step_->barrier;
    auto& reached = reached_[{lane, barrier}];
    const std::size_t number = reached.size();
    reached.push_back(static_cast<std::uint32_t>(lanes_[lane].steps.size()));
    put_before_[{lane, barrier}].push_back(puts_of(lane));
    for (const std::uint32_t other : at_barrier_[{rank_of(lane), barrier}]) {
      if (other != lane) {
        wait(lane, [this, other, barrier, number, step = step_] {
          const auto& theirs = reached_[{other, barrier}];
          if (number >= theirs.size()) {
            fail(step->place,
                 "expected the barrier as often in each of its thread blocks, found "
                 "it less often in one");
          }
          return Reached{.lane = other, .steps = theirs[number]};
        });
        follows_[lane][{false, static_cast<int>(other)}] = [this, other, barrier, number] {
          return put_before_[{other, barrier}][number];
        };
      }
    }
  }

  void acquire(std::uint32_t lane, int semaphore) {
    const std::pair key{rank_of(lane), semaphore};
    claim(acquirers_, key, lane, "acquires a semaphore");
    const int number =
        acquired_[key]++ -
        plan_.semaphores[static_cast<std::size_t>(key.first)][static_cast<std::size_t>(semaphore)];
    if (number < 0) {
      return;
    }
    wait(lane, [this, key, number, step = step_] {
      const std::vector<Release>& releases = releases_[key];
      if (static_cast<std::size_t>(number) >= releases.size()) {
        fail(step->place, fmt::format("expected release {} of the semaphore, found {} in all",
                                      number + 1, releases.size()));
      }
      return releases[static_cast<std::size_t>(number)].reached;
    });
    follows_[lane][{true, semaphore}] = [this, key, number] {
      return releases_[key][static_cast<std::size_t>(number)].puts;
    };
  }

  void reduce(std::uint32_t lane) {
    const PlanStep& step = *step_;
    const auto count = static_cast<std::uint32_t>(step.sources[0].count);
    std::uint32_t& own = own_[lanes_[lane].rank.value()];
    const ChunkRange sum{.first = own, .count = count};
    own += count;
    const bool has_packets = step.operation != PlanOperation::Reduce;
    const int here = rank_of(lane);
    copy(lane, range(step.sources[0]), sum);
    // A thread block reads from all others at once.
    std::vector<std::pair<std::uint32_t, ChunkRange>> reads;  // Answers and where they go.
    std::vector<ChunkRange> terms;
    for (std::size_t index = 1; index < step.sources.size(); ++index) {
      const PlanBuffer& source = step.sources[index];
      if (source.rank != here) {
        reads.emplace_back(ask(lane, source), ChunkRange{.first = own, .count = count});
        own += count;
        terms.push_back(reads.back().second);
        continue;
      }
      if (has_packets) {
        await_packets(lane, source);
      }
      terms.push_back(range(source));
    }
    for (const auto& [answers, to] : reads) {
      take(lane, answers, to);
    }
    for (const ChunkRange& term : terms) {
      push(lane, {.kind = StepKind::Add, .connection = term.first, .chunks = sum});
    }
    for (std::size_t index = 0; index < step.targets.size(); ++index) {
      const PlanBuffer& target = step.targets[index];
      const Reached written =
          target.rank != here ? put(lane, sum, target) : copy(lane, sum, range(target));
      if (has_packets && index > 0) {
        write_packets(target, written);
      }
    }
  }

  void add_block(std::uint32_t lane, const std::vector<PlanStep>& steps) {
    for (const PlanStep& step : steps) {
      step_ = &step;
      add_step(lane);
    }
  }

  void add_step(std::uint32_t lane) {
    const PlanStep& step = *step_;
    switch (step.operation) {
      case PlanOperation::Nothing:
        return;
      case PlanOperation::Barrier:
        return meet(lane);
      case PlanOperation::Signal:
        for (const PlanChannel& channel : step.channels) {
          signal(lane, channel);
        }
        return;
      case PlanOperation::Wait:
        for (const PlanChannel& channel : step.channels) {
          await_signal(lane, channel);
        }
        return;
      case PlanOperation::Release:
        for (const int semaphore : step.semaphores) {
          const std::pair key{rank_of(lane), semaphore};
          claim(releasers_, key, lane, "releases a semaphore");
          releases_[key].push_back(
              {.reached = {.lane = lane,
                           .steps = static_cast<std::uint32_t>(lanes_[lane].steps.size())},
               .puts = puts_of(lane)});
        }
        return;
      case PlanOperation::Acquire:
        for (const int semaphore : step.semaphores) {
          acquire(lane, semaphore);
        }
        return;
      case PlanOperation::Reduce:
      case PlanOperation::ReducePackets:
      case PlanOperation::ReduceCopyPackets:
        return reduce(lane);
      case PlanOperation::Put:
      case PlanOperation::PutSignal:
      case PlanOperation::PutPackets:
      case PlanOperation::ReadPutPackets:
      case PlanOperation::Get:
      case PlanOperation::Copy:
      case PlanOperation::CopyPackets:
      case PlanOperation::UnpackPackets:
        return move(lane);
    }
  }

  // Data without a sum, target by target.
  void move(std::uint32_t lane) {
    const PlanStep& step = *step_;
    const PlanOperation kind = step.operation;
    const int here = rank_of(lane);
    if (kind == PlanOperation::ReadPutPackets) {
      await_packets(lane, step.sources[0]);
    }
    for (std::size_t index = 0; index < step.targets.size(); ++index) {
      const PlanBuffer& source = step.sources[kind == PlanOperation::ReadPutPackets ? 0 : index];
      const PlanBuffer& target = step.targets[index];
      if (kind == PlanOperation::UnpackPackets) {
        await_packets(lane, source);
      }
      if (source.rank != here) {
        take(lane, ask(lane, source), range(target));
        continue;
      }
      const Reached written = target.rank != here ? put(lane, range(source), target)
                                                  : copy(lane, range(source), range(target));
      if (kind == PlanOperation::PutPackets || kind == PlanOperation::ReadPutPackets ||
          kind == PlanOperation::CopyPackets) {
        write_packets(target, written);
      }
      if (kind == PlanOperation::PutSignal) {
        signal(lane, step.channels[index]);
      }
    }
  }

  void prove(const Schedule& schedule) const {
    const std::optional<Violation> violation = find_violation(schedule);
    if (!violation) {
      return;
    }
    if (!violation->lane) {
      fail(fmt::format("gpus[{}]", violation->rank.value_or(RankId(0)).value()), violation->text);
    }
    fail(origins_[violation->lane->value()][violation->step], violation->text);
  }

  const MscclppPlan& plan_;
  const std::string& name_;
  MscclPlaces places_;
  const PlanStep* step_ = nullptr;  // The step that is laid out.
  std::vector<StoredSchedule::Lane> lanes_;
  std::vector<std::vector<std::string>> origins_;  // Places in the file, by lane and step.
  std::vector<ScheduleConnection> connections_;
  std::vector<std::uint32_t> own_;  // The next place of each rank for sums.
  std::map<int, std::vector<std::uint32_t>> block_lanes_;
  std::map<std::tuple<std::uint32_t, int, bool>, Way> ways_;  // Keys: lane, GPU, whether it reads.
  std::vector<std::tuple<std::uint32_t, std::size_t, std::function<Reached()>>> waits_;
  std::map<std::pair<int, std::uint32_t>, Reached> packets_;  // Keys: rank, place.
  std::map<ChannelKey, std::vector<Reached>> signals_;
  std::map<ChannelKey, std::size_t> awaited_;
  std::map<ChannelKey, std::uint32_t> signallers_;
  std::map<ChannelKey, std::uint32_t> waiters_;
  std::map<std::pair<int, int>, std::vector<Release>> releases_;  // Keys: rank, semaphore.
  std::map<std::pair<int, int>, int> acquired_;
  std::map<std::pair<int, int>, std::uint32_t> releasers_;
  std::map<std::pair<int, int>, std::uint32_t> acquirers_;
  std::map<std::pair<int, int>, std::set<std::uint32_t>> at_barrier_;  // Keys: rank, barrier.
  // Keys: lane, barrier. Each time: the steps taken, and what was put until then.
  std::map<std::pair<std::uint32_t, int>, std::vector<std::uint32_t>> reached_;
  std::map<std::pair<std::uint32_t, int>, std::vector<Puts>> put_before_;
  // The signals of a thread block follow also what its last partners at a barrier or a semaphore
  // had put.
  std::map<std::uint32_t, std::map<std::pair<bool, int>, std::function<Puts()>>> follows_;
};

}  // namespace

std::unique_ptr<Schedule> mscclpp_schedule(const MscclppPlan& plan, const std::string& name) {
  return PlanBuilder(plan, name).build();
}

}  // namespace trainyard
