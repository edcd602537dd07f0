// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/programs.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace trainyard::nccl {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The units of all loops in a row, primitive after primitive. Of several primitives the first only
// sends and the last only receives.
class LoopProgram final : public LaneProgram {
 public:
  LoopProgram(int primitives, const ChunkLoops& loops, const UnitRule& rule, const Ends& receives,
              const Ends& sends)
      : loops_(loops),
        rule_(rule),
        primitives_(static_cast<std::uint64_t>(primitives)),
        full_units_(rule.units(loops.chunk)),
        rest_units_(loops.rest.count() > 0 ? rule.units(loops.rest) : 0),
        receives_(receives),
        sends_(sends) {}

  [[nodiscard]] std::uint64_t units() const override {
    return primitives_ * (loops_.full * full_units_ + rest_units_);
  }
  [[nodiscard]] ReplayUnit unit(std::uint64_t index) const override {
    const std::uint64_t of_full_loops = loops_.full * primitives_ * full_units_;
    const bool full = index < of_full_loops;
    const std::uint64_t units = full ? full_units_ : rest_units_;
    const Bytes chunk = full ? loops_.chunk : loops_.rest;
    const std::uint64_t in_loop =
        full ? index % (primitives_ * full_units_) : index - of_full_loops;
    const std::uint64_t primitive = in_loop / units;
    const std::uint64_t unit = in_loop % units;
    const bool several = primitives_ > 1;
    const Bytes bytes = rule_.bytes(chunk, unit);
    const bool is_empty = rule_.protocol == Protocol::Simple && bytes.count() == 0;
    return {.receives = several && primitive == 0 ? kNoEnds : receives_,
            .sends = several && primitive + 1 == primitives_ ? kNoEnds : sends_,
            .bytes = bytes,
            .cost = is_empty    ? rule_.empty_cost
                    : unit == 0 ? rule_.unit_cost + rule_.chunk_cost
                                : rule_.unit_cost,
            .ends_message = rule_.protocol == Protocol::Simple || unit + 1 == units};
  }

 private:
  ChunkLoops loops_;
  UnitRule rule_;
  std::uint64_t primitives_;
  std::uint64_t full_units_;
  std::uint64_t rest_units_;
  Ends receives_;
  Ends sends_;
};

class TransferProgram final : public LaneProgram {
 public:
  TransferProgram(std::vector<TransferJob> jobs, bool sends)
      : jobs_(std::move(jobs)), sends_(sends) {
    for (const TransferJob& job : jobs_) {
      units_ += job.units();
      ends_.push_back(units_);
    }
  }

  [[nodiscard]] std::uint64_t units() const override { return units_; }
  [[nodiscard]] ReplayUnit unit(std::uint64_t index) const override {
    const auto found = static_cast<std::size_t>(
        std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    const TransferJob& job = jobs_[found];
    const std::uint64_t own = index - (ends_[found] - job.units());
    const auto begin = static_cast<std::int64_t>(own) * job.unit.count();
    ReplayUnit unit;
    unit.bytes = Bytes(std::min(job.unit.count(), job.bytes.count() - begin));
    unit.cost = job.cost;
    unit.rate = job.rate;
    unit.ends_message =
        own + 1 == job.units() || (begin + job.unit.count()) % job.message.count() == 0;
    (sends_ ? unit.sends : unit.receives)[0] = job.connection;
    return unit;
  }

 private:
  std::vector<TransferJob> jobs_;
  std::vector<std::uint64_t> ends_;  // Units up to the end of each.
  std::uint64_t units_ = 0;
  bool sends_;
};

}  // namespace

std::uint64_t TransferJob::units() const {
  return static_cast<std::uint64_t>((bytes.count() + unit.count() - 1) / unit.count());
}

std::unique_ptr<LaneProgram> transfer_program(std::vector<TransferJob> jobs, bool sends) {
  CHECK(!jobs.empty(), "a group of warps without work");
  return std::make_unique<TransferProgram>(std::move(jobs), sends);
}

std::uint64_t UnitRule::units(Bytes chunk) const {
  if (protocol == Protocol::Simple) {
    return static_cast<std::uint64_t>(slices);
  }
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, rounded_up(chunk.count(), quantum.count()) / quantum.count()));
}

Bytes UnitRule::bytes(Bytes chunk, std::uint64_t unit) const {
  std::int64_t size = quantum.count();
  if (protocol == Protocol::Simple) {
    size = std::max(size, rounded_up((chunk.count() + slices - 1) / slices, 16));
  }
  const std::int64_t begin = std::min(chunk.count(), static_cast<std::int64_t>(unit) * size);
  return Bytes(std::min(size, chunk.count() - begin));
}

ChunkLoops ring_loops(Bytes bytes, int ranks, Bytes chunk) {
  CHECK(chunk.count() > 0 && ranks > 0, "a ring of nothing");
  ChunkLoops loops{.full = static_cast<std::uint64_t>(bytes.count() / (chunk.count() * ranks)),
                   .chunk = chunk,
                   .rest = {}};
  const std::int64_t rest = bytes.count() % (chunk.count() * ranks);
  loops.rest = Bytes(rounded_up((rest + ranks - 1) / ranks, 16));
  return loops;
}

ChunkLoops pipeline_loops(Bytes bytes, Bytes chunk) {
  CHECK(chunk.count() > 0, "a pipeline of nothing");
  return {.full = static_cast<std::uint64_t>(bytes.count() / chunk.count()),
          .chunk = chunk,
          .rest = Bytes(bytes.count() % chunk.count())};
}

std::unique_ptr<LaneProgram> loop_program(int primitives, const ChunkLoops& loops,
                                          const UnitRule& rule, const Ends& receives,
                                          const Ends& sends) {
  return std::make_unique<LoopProgram>(primitives, loops, rule, receives, sends);
}

}  // namespace trainyard::nccl
