// SPDX-License-Identifier: Apache-2.0
// Holds when the operations of a run began and ended, and what they waited for, in 16 bytes each.
//
// Only ends and causes are stored, as the rest follows: an operation is ready when its cause ends,
// and starts then, or when the partner is ready that it has to wait for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/operators/step_parts.h"
#include "sim/units.h"

namespace trainyard {

struct GraphTiming {
  SimTime ready;  // Nothing was left to wait for but its partners.
  SimTime start;
  SimTime end;
  // The operation whose end made it ready; nothing for what is ready at the beginning.
  std::optional<OperationId> cause;
  // The member of its meeting whose readiness let it start later; nothing: its own did.
  std::optional<OperationId> starter;
  // For Compute: by how much traffic made it longer, and which.
  SimTime slowed = {};
  StepPart slowed_by = StepPart::Data;
};

class GraphTimings {
 public:
  GraphTimings() = default;
  explicit GraphTimings(std::size_t operations) : entries_(operations) {}

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  // Zero for an operation that has not ended.
  [[nodiscard]] GraphTiming operator[](std::size_t operation) const;
  [[nodiscard]] bool has_ended(OperationId id) const { return entry(id).end != kNever; }
  [[nodiscard]] SimTime end(OperationId id) const {
    return has_ended(id) ? entry(id).end : SimTime();
  }
  // The times of an operation that is ready, or has started.
  [[nodiscard]] SimTime ready(OperationId id) const {
    return entry(id).cause == kNobody ? SimTime() : entry(OperationId(entry(id).cause)).end;
  }
  [[nodiscard]] SimTime start(OperationId id) const {
    return ready(entry(id).starter == kNobody ? id : OperationId(entry(id).starter));
  }

  void set_cause(OperationId id, OperationId cause) { entry(id).cause = cause.value(); }
  void set_starter(OperationId id, OperationId starter) { entry(id).starter = starter.value(); }
  void set_end(OperationId id, SimTime end) { entry(id).end = end; }
  void set_slowed_by(OperationId id, StepPart part) { slowed_[id.value()].part = part; }
  void set_slowed(OperationId id, SimTime by) {
    if (const auto found = slowed_.find(id.value()); found != slowed_.end()) {
      found->second.time = by;
    }
  }

 private:
  static constexpr std::uint32_t kNobody = 0xffff'ffff;
  static constexpr SimTime kNever = SimTime::max();

  struct Entry {
    SimTime end = kNever;
    std::uint32_t cause = kNobody;
    std::uint32_t starter = kNobody;
  };
  struct Slowed {
    SimTime time;
    StepPart part = StepPart::Data;
  };

  [[nodiscard]] const Entry& entry(OperationId id) const { return entries_[id.value()]; }
  [[nodiscard]] Entry& entry(OperationId id) { return entries_[id.value()]; }

  std::vector<Entry> entries_;
  std::map<std::uint32_t, Slowed> slowed_;  // Those that ran beside traffic alone.
};

inline GraphTiming GraphTimings::operator[](std::size_t operation) const {
  const OperationId id(static_cast<std::uint32_t>(operation));
  if (!has_ended(id)) {
    return {};
  }
  const auto known = [](std::uint32_t other) {
    return other == kNobody ? std::nullopt : std::optional(OperationId(other));
  };
  GraphTiming timing{.ready = ready(id),
                     .start = start(id),
                     .end = end(id),
                     .cause = known(entry(id).cause),
                     .starter = known(entry(id).starter)};
  if (const auto found = slowed_.find(id.value()); found != slowed_.end()) {
    timing.slowed = found->second.time;
    timing.slowed_by = found->second.part;
  }
  return timing;
}

}  // namespace trainyard
