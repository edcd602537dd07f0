// SPDX-License-Identifier: Apache-2.0
// Execution traces of PyTorch (ExecutionTraceObserver): what collectives a rank called, with their
// bytes, in the order of the calls. They say for a profile what its kernels of NCCL do where it
// does not say so itself, or run alone, as calls without times.
//
// JSON with "nodes"; the calls are nodes "record_param_comms", whose inputs are the tensor, a
// number, the process group, the rank, the name of the operation, the splits of what goes in and
// comes out and, in newer versions, the first rank of the group, the stride of its ranks (-1 where
// they are not evenly apart) and its size
// (github.com/pytorch/pytorch, torch/csrc/distributed/c10d/ParamCommsUtils.cpp and
// torch/csrc/profiler/standalone/execution_trace_observer.cpp). Until schema 1.0.2 inputs are a
// list, from 1.0.3 on an object with values and types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/trace_import/kineto_events.h"
#include "parallelism/workload/imported_files.h"

namespace trainyard {

struct ExecutionCall {
  std::string place;  // "FILE: node 12".
  std::string name;   // "all_to_allv".
  std::string group;
  std::int64_t group_size = 0;  // 0: not known.
  std::optional<std::vector<int>> ranks = {};
  Bytes in{};
  Bytes out{};
  bool has_equal_splits = true;
};

struct ExecutionTrace {
  std::string name;  // Name of the file.
  std::optional<int> rank = {};
  std::vector<ExecutionCall> calls = {};  // Waits are not in it.
};

// Whether the text begins as the observer writes it, with its schema.
[[nodiscard]] bool is_execution_trace(std::string_view text);

// Throws ConfigError.
[[nodiscard]] ExecutionTrace read_execution_trace(const ImportedFile& file);

// The calls alone, one after the other, each of no time. Those that cannot be predicted are only
// recorded. Throws ConfigError where there is none.
[[nodiscard]] KinetoTrace as_profile(const ExecutionTrace& calls);

// The kernels of the profile whose collective has no name become these calls, in their order.
// Throws ConfigError where there are more or fewer, or a kernel's name says another operation.
void join(KinetoTrace& profile, const ExecutionTrace& calls);

}  // namespace trainyard
