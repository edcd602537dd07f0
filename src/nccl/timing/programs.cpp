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

// Units of all loops in a row: the chunk that unit `index` belongs to, and its place in it.
class UnitCounter {
 public:
  UnitCounter(int primitives, const ChunkLoops& loops, const UnitRule& rule)
      : loops_(loops),
        rule_(rule),
        primitives_(static_cast<std::uint64_t>(primitives)),
        full_units_(rule.units(loops.chunk)),
        rest_units_(loops.rest.count() > 0 ? rule.units(loops.rest) : 0) {}

  [[nodiscard]] std::uint64_t units() const {
    return primitives_ * (loops_.full * full_units_ + rest_units_);
  }

  struct Place {
    std::uint64_t primitive = 0;
    Bytes bytes;
    SimTime cost;
    bool ends_message = true;
  };
  [[nodiscard]] Place place(std::uint64_t index) const {
    const std::uint64_t of_full_loops = loops_.full * primitives_ * full_units_;
    const bool full = index < of_full_loops;
    const std::uint64_t units = full ? full_units_ : rest_units_;
    const Bytes chunk = full ? loops_.chunk : loops_.rest;
    const std::uint64_t in_loop =
        full ? index % (primitives_ * full_units_) : index - of_full_loops;
    const std::uint64_t unit = in_loop % units;
    return {.primitive = in_loop / units,
            .bytes = rule_.bytes(chunk, unit),
            .cost = unit == 0 ? rule_.unit_cost + rule_.chunk_cost : rule_.unit_cost,
            .ends_message = rule_.protocol == Protocol::Simple || unit + 1 == units};
  }

 private:
  ChunkLoops loops_;
  UnitRule rule_;
  std::uint64_t primitives_;
  std::uint64_t full_units_;
  std::uint64_t rest_units_;
};

class RingProgram final : public LaneProgram {
 public:
  RingProgram(int primitives, const ChunkLoops& loops, const UnitRule& rule, std::uint32_t receive,
              std::uint32_t send)
      : counter_(primitives, loops, rule),
        last_(static_cast<std::uint64_t>(primitives) - 1),
        receive_(receive),
        send_(send) {}

  [[nodiscard]] std::uint64_t units() const override { return counter_.units(); }
  [[nodiscard]] ReplayUnit unit(std::uint64_t index) const override {
    const UnitCounter::Place place = counter_.place(index);
    ReplayUnit unit;
    unit.bytes = place.bytes;
    unit.cost = place.cost;
    unit.ends_message = place.ends_message;
    if (place.primitive != 0) {
      unit.receives[0] = receive_;
    }
    if (place.primitive != last_) {
      unit.sends[0] = send_;
    }
    return unit;
  }

 private:
  UnitCounter counter_;
  std::uint64_t last_;
  std::uint32_t receive_;
  std::uint32_t send_;
};

class PipelineProgram final : public LaneProgram {
 public:
  PipelineProgram(const ChunkLoops& loops, const UnitRule& rule,
                  const std::array<std::uint32_t, 3>& receives,
                  const std::array<std::uint32_t, 3>& sends)
      : counter_(1, loops, rule), receives_(receives), sends_(sends) {}

  [[nodiscard]] std::uint64_t units() const override { return counter_.units(); }
  [[nodiscard]] ReplayUnit unit(std::uint64_t index) const override {
    const UnitCounter::Place place = counter_.place(index);
    return {.receives = receives_,
            .sends = sends_,
            .bytes = place.bytes,
            .cost = place.cost,
            .ends_message = place.ends_message};
  }

 private:
  UnitCounter counter_;
  std::array<std::uint32_t, 3> receives_;
  std::array<std::uint32_t, 3> sends_;
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

std::unique_ptr<LaneProgram> ring_program(int primitives, const ChunkLoops& loops,
                                          const UnitRule& rule, std::uint32_t receive,
                                          std::uint32_t send) {
  CHECK(primitives >= 2, "a ring of one");
  return std::make_unique<RingProgram>(primitives, loops, rule, receive, send);
}

std::unique_ptr<LaneProgram> pipeline_program(const ChunkLoops& loops, const UnitRule& rule,
                                              const std::array<std::uint32_t, 3>& receives,
                                              const std::array<std::uint32_t, 3>& sends) {
  return std::make_unique<PipelineProgram>(loops, rule, receives, sends);
}

}  // namespace trainyard::nccl
