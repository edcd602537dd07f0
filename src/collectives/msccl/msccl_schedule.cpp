// SPDX-License-Identifier: Apache-2.0
#include "collectives/msccl/msccl_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "collectives/msccl/msccl_places.h"
#include "collectives/schedule/semantics.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

class MscclBuilder {
 public:
  MscclBuilder(const MscclAlgorithm& algorithm, const std::string& name)
      : algorithm_(algorithm), name_(name), places_(algorithm) {}

  std::unique_ptr<Schedule> build() {
    check_parts();
    std::uint32_t first_lane = 0;
    for (int rank = 0; rank < ranks(); ++rank) {
      const MscclGpu& gpu = algorithm_.gpus[static_cast<std::size_t>(rank)];
      check_gpu(rank, gpu);
      own_ = places_.own();
      count_steps(gpu);
      for (std::size_t block = 0; block < gpu.blocks.size(); ++block) {
        add_block(rank, block, first_lane);
      }
      max_places_ = std::max(max_places_, own_);
      first_lane += static_cast<std::uint32_t>(gpu.blocks.size());
    }
    auto schedule = std::make_unique<MscclSchedule>(
        ScheduleShape{.operation = algorithm_.operation,
                      .algorithm = algorithm_.name.empty() ? "msccl" : algorithm_.name,
                      .ranks = ranks(),
                      .channels = algorithm_.channels,
                      .root = RankId(static_cast<std::uint32_t>(algorithm_.root)),
                      .chunk_count = std::max(max_places_, places_.own()),
                      .size_chunks = static_cast<std::uint32_t>(algorithm_.chunks),
                      .lanes = first_lane,
                      .connections = static_cast<std::uint32_t>(connections_.size())},
        std::move(lanes_), connections_, algorithm_);
    prove(*schedule);
    return schedule;
  }

 private:
  // Where a step of ours is in the file.
  struct Origin {
    FilePlace place;
    std::string element;
  };

  void check_parts() const {
    const Origin at{.place = algorithm_.place, .element = "algo"};
    const bool is_exchange = algorithm_.operation == Operation::AllToAll;
    const bool has_parts = algorithm_.operation == Operation::AllGather ||
                           algorithm_.operation == Operation::ReduceScatter || is_exchange;
    if (has_parts && algorithm_.chunks % ranks() != 0) {
      fail(at, fmt::format("nchunksperloop: expected a multiple of {} GPUs, found {}", ranks(),
                           algorithm_.chunks));
    }
    if (is_exchange && algorithm_.in_place) {
      fail(at, "expected inplace=\"0\" for alltoall, found \"1\"");
    }
  }

  [[nodiscard]] int ranks() const { return static_cast<int>(algorithm_.gpus.size()); }

  [[noreturn]] void fail(const Origin& at, const std::string& what) const {
    throw ConfigError(
        fmt::format("{}:{}:{}: {}: {}", name_, at.place.line, at.place.column, at.element, what));
  }

  void check_gpu(int rank, const MscclGpu& gpu) const {
    const Origin at{.place = gpu.place, .element = fmt::format("gpu[{}]", rank)};
    const auto at_most = [&](const char* key, int found, int max) {
      if (found > max) {
        fail(at,
             fmt::format("{}: expected at most {} for {} of {} chunks on {} GPUs, found {}", key,
                         max, to_string(algorithm_.operation), algorithm_.chunks, ranks(), found));
      }
    };
    at_most("i_chunks", gpu.input_chunks, places_.inputs());
    at_most("o_chunks", gpu.output_chunks, places_.outputs());
    std::map<std::pair<int, int>, std::size_t> senders;
    std::map<std::pair<int, int>, std::size_t> receivers;
    for (std::size_t block = 0; block < gpu.blocks.size(); ++block) {
      const MscclBlock& here = gpu.blocks[block];
      const Origin block_at{.place = here.place,
                            .element = fmt::format("gpu[{}].tb[{}]", rank, block)};
      for (const auto& [key, peer] :
           {std::pair{"send", here.send_peer}, std::pair{"recv", here.receive_peer}}) {
        if (peer >= ranks() || peer == rank) {
          fail(block_at, fmt::format("{}: expected another GPU from 0 to {}, or -1, found {}", key,
                                     ranks() - 1, peer));
        }
        auto& known = std::string_view(key) == "send" ? senders : receivers;
        const auto [other, is_new] = known.try_emplace({peer, here.channel}, block);
        if (peer >= 0 && !is_new) {
          fail(block_at,
               fmt::format("{}: expected one thread block for GPU {} on channel {}, found "
                           "tb[{}] as well",
                           key, peer, here.channel, other->second));
        }
      }
    }
  }

  [[nodiscard]] static bool receives(MscclStepType type) {
    return type == MscclStepType::Receive || type == MscclStepType::ReceiveCopySend ||
           type == MscclStepType::ReceiveReduceSend || type == MscclStepType::ReceiveReduceCopy ||
           type == MscclStepType::ReceiveReduceCopySend;
  }
  [[nodiscard]] static bool sends(MscclStepType type) {
    return type == MscclStepType::Send || type == MscclStepType::ReceiveCopySend ||
           type == MscclStepType::ReceiveReduceSend || type == MscclStepType::ReceiveReduceCopySend;
  }
  [[nodiscard]] static bool reads_source(MscclStepType type) {
    return type != MscclStepType::Receive && type != MscclStepType::ReceiveCopySend;
  }
  [[nodiscard]] static bool writes_target(MscclStepType type) {
    return type != MscclStepType::Send && type != MscclStepType::ReceiveReduceSend;
  }
  // Both reduced and kept elsewhere, or not kept.
  [[nodiscard]] static bool needs_own_place(const MscclStep& step) {
    const bool moves =
        step.source_buffer != step.target_buffer || step.source_offset != step.target_offset;
    return step.type == MscclStepType::ReceiveReduceSend ||
           (moves && (step.type == MscclStepType::ReceiveReduceCopy ||
                      step.type == MscclStepType::ReceiveReduceCopySend));
  }
  // Steps of ours for one of the file.
  [[nodiscard]] static std::uint32_t length(const MscclStep& step) {
    const std::uint32_t wait = step.depends_on_block >= 0 ? 1 : 0;
    if (step.type == MscclStepType::Nothing) {
      return wait;
    }
    if (step.type == MscclStepType::ReceiveReduceSend) {
      return wait + 3;
    }
    return wait + (needs_own_place(step) ? 3 : 1) +
           (receives(step.type) && sends(step.type) ? 1 : 0);
  }
  // Counts how many steps of ours are done when one of the file is, for each thread block.
  void count_steps(const MscclGpu& gpu) {
    done_.clear();
    for (const MscclBlock& block : gpu.blocks) {
      std::uint32_t sum = 0;
      std::vector<std::uint32_t>& done = done_.emplace_back();
      for (const MscclStep& step : block.steps) {
        sum += length(step);
        done.push_back(sum);
      }
    }
  }

  [[nodiscard]] std::uint32_t connect(int source, int target, int channel) {
    const auto [entry, is_new] = numbers_.try_emplace(
        {source, target, channel}, static_cast<std::uint32_t>(connections_.size()));
    if (is_new) {
      connections_.push_back({.source = RankId(static_cast<std::uint32_t>(source)),
                              .target = RankId(static_cast<std::uint32_t>(target))});
    }
    return entry->second;
  }

  void add_block(int rank, std::size_t number, std::uint32_t first_lane) {
    const MscclBlock& block = algorithm_.gpus[static_cast<std::size_t>(rank)].blocks[number];
    lanes_.push_back({.rank = RankId(static_cast<std::uint32_t>(rank)), .steps = {}});
    origins_.emplace_back();
    int own = 0;
    for (std::size_t index = 0; index < block.steps.size(); ++index) {
      const MscclStep& step = block.steps[index];
      const Origin at{.place = step.place,
                      .element = fmt::format("gpu[{}].tb[{}].step[{}]", rank, number, index)};
      check_step(rank, block, step, at);
      if (step.depends_on_block >= 0) {
        const auto lane = first_lane + static_cast<std::uint32_t>(step.depends_on_block);
        const std::uint32_t count = done_[static_cast<std::size_t>(step.depends_on_block)]
                                         [static_cast<std::size_t>(step.depends_on_step)];
        push({.kind = StepKind::Wait, .connection = lane, .chunks = {.first = count, .count = 0}});
      }
      add_step(rank, block, step);
      own = std::max(own, needs_own_place(step) ? step.count : 0);
      origins_.back().resize(lanes_.back().steps.size(), at);
      CHECK(lanes_.back().steps.size() == done_[number][index], "a step of another length");
    }
    own_ += static_cast<std::uint32_t>(own);
  }

  void check_step(int rank, const MscclBlock& block, const MscclStep& step,
                  const Origin& at) const {
    const MscclGpu& gpu = algorithm_.gpus[static_cast<std::size_t>(rank)];
    if (sends(step.type) && block.send_peer < 0) {
      fail(at, "sends, but its thread block has send=\"-1\"");
    }
    if (receives(step.type) && block.receive_peer < 0) {
      fail(at, "receives, but its thread block has recv=\"-1\"");
    }
    const auto in_range = [&](const char* key, MscclBuffer buffer, int offset) {
      const int chunks = buffer == MscclBuffer::Input    ? gpu.input_chunks
                         : buffer == MscclBuffer::Output ? gpu.output_chunks
                                                         : gpu.scratch_chunks;
      if (offset + step.count > chunks) {
        fail(at, fmt::format("{}: expected chunks of a buffer of {}, found {} to {}", key, chunks,
                             offset, offset + step.count - 1));
      }
    };
    if (step.type != MscclStepType::Nothing && reads_source(step.type)) {
      in_range("srcoff", step.source_buffer, step.source_offset);
    }
    if (step.type != MscclStepType::Nothing && writes_target(step.type)) {
      in_range("dstoff", step.target_buffer, step.target_offset);
    }
    if (step.depends_on_block < 0) {
      return;
    }
    const auto other = static_cast<std::size_t>(step.depends_on_block);
    const auto awaited = static_cast<std::size_t>(step.depends_on_step);
    if (other >= gpu.blocks.size() || awaited >= gpu.blocks[other].steps.size()) {
      fail(at, fmt::format("depends on step {} of tb {}, which does not exist", awaited, other));
    }
    if (!gpu.blocks[other].steps[awaited].is_depended_on) {
      fail(at,
           fmt::format("depends on step {} of tb {}, which has hasdep=\"0\" and never says that "
                       "it is done",
                       awaited, other));
    }
  }

  void push(const Step& step) { lanes_.back().steps.push_back(step); }

  void add_step(int rank, const MscclBlock& block, const MscclStep& step) {
    if (step.type == MscclStepType::Nothing) {
      return;
    }
    const auto count = static_cast<std::uint32_t>(step.count);
    const ChunkRange own{.first = own_, .count = count};
    const ChunkRange source{.first = reads_source(step.type)
                                         ? places_.at(rank, step.source_buffer, step.source_offset)
                                         : 0,
                            .count = count};
    const ChunkRange target{.first = writes_target(step.type)
                                         ? places_.at(rank, step.target_buffer, step.target_offset)
                                         : 0,
                            .count = count};
    const bool apart = needs_own_place(step);
    ChunkRange sent = step.type == MscclStepType::Send ? source : target;
    if (receives(step.type)) {
      const bool reduces = reads_source(step.type);
      push({.kind = reduces && !apart ? StepKind::Reduce : StepKind::Receive,
            .connection = connect(block.receive_peer, rank, block.channel),
            .chunks = apart ? own : target});
      if (apart) {
        push({.kind = StepKind::Add, .connection = source.first, .chunks = own});
        if (writes_target(step.type)) {
          push({.kind = StepKind::Copy, .connection = own.first, .chunks = target});
        } else {
          sent = own;
        }
      }
    } else if (step.type != MscclStepType::Send) {
      push({.kind = step.type == MscclStepType::Copy ? StepKind::Copy : StepKind::Add,
            .connection = source.first,
            .chunks = target});
    }
    if (sends(step.type)) {
      push({.kind = StepKind::Send,
            .connection = connect(rank, block.send_peer, block.channel),
            .chunks = sent});
    }
  }

  void prove(const Schedule& schedule) const {
    const std::optional<Violation> violation = find_violation(schedule);
    if (!violation) {
      return;
    }
    if (!violation->lane) {
      const auto rank = violation->rank.value_or(RankId(0)).value();
      fail({.place = algorithm_.gpus[rank].place, .element = fmt::format("gpu[{}]", rank)},
           violation->text);
    }
    const std::uint32_t lane = violation->lane->value();
    const std::string prefix =
        fmt::format("rank {}, lane {}, step {}: ", schedule.lane_rank(*violation->lane).value(),
                    lane, violation->step);
    fail(origins_[lane][violation->step], violation->text.starts_with(prefix)
                                              ? violation->text.substr(prefix.size())
                                              : violation->text);
  }

  const MscclAlgorithm& algorithm_;
  const std::string& name_;
  MscclPlaces places_;
  std::vector<StoredSchedule::Lane> lanes_;
  std::vector<std::vector<Origin>> origins_;                    // Indexed by lane and step.
  std::map<std::tuple<int, int, int>, std::uint32_t> numbers_;  // Keyed by source, target, channel.
  std::vector<ScheduleConnection> connections_;
  std::vector<std::vector<std::uint32_t>> done_;  // Result of count_steps() for the GPU at hand.
  std::uint32_t own_ = 0;                         // The next place for a thread block.
  std::uint32_t max_places_ = 0;
};

}  // namespace

std::unique_ptr<Schedule> msccl_schedule(const MscclAlgorithm& algorithm, const std::string& name) {
  return MscclBuilder(algorithm, name).build();
}

}  // namespace trainyard
