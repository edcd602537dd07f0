// SPDX-License-Identifier: Apache-2.0
// Makes the operations of a GOAL schedule, whichever form it is read from, one rank at a time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

inline constexpr int kMaxGoalCpu = 255;                   // A byte in the binary form.
inline constexpr std::int64_t kMaxGoalTag = 0xffff'fffe;  // The next one represents any tag.

class GoalBuilder {
 public:
  struct Requirement {
    OperationId after;
    OperationId before;
    bool at_start;  // Waits for the start of `before`, not for its end.
  };

  explicit GoalBuilder(int ranks);

  [[nodiscard]] NameId add_name(std::string_view text) { return workload_.graph.add_name(text); }
  void open_rank(int rank);
  // `cpu` is at most kMaxGoalCpu.
  OperationId add_calc(int cpu, GraphName name, SimTime time);
  OperationId add_message(bool sends, GraphName name, const GraphMessage& message, bool is_placed);
  void close_rank(std::span<const Requirement> requirements);
  [[nodiscard]] ImportedWorkload finish() &&;

 private:
  // Streams of the rank.
  struct Streams {
    std::array<std::optional<StreamId>, kMaxGoalCpu + 1> cpus;
    std::optional<StreamId> send;
    std::optional<StreamId> receive;
    std::optional<StreamId> starts;
  };

  StreamId stream(std::optional<StreamId>& known, const char* name);

  ImportedWorkload workload_;
  int rank_ = 0;
  Streams streams_;
  int placed_ = 0;  // Messages whose cpu or nic is stated.
};

}  // namespace trainyard
