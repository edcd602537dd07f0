// SPDX-License-Identifier: Apache-2.0
// Execution traces of PyTorch (ExecutionTraceObserver): what collectives a rank called, with their
// bytes, in the order of the calls. They say for a profile what its kernels of NCCL do where it
// does not say so itself.
//
// JSON with "nodes"; the calls are nodes "record_param_comms", whose inputs are the tensor, a
// number, the process group, the rank, the name of the operation, the splits of what goes in and
// comes out and, in newer versions, the first rank, the stride and the size of the group
// (github.com/pytorch/pytorch, torch/csrc/distributed/c10d/ParamCommsUtils.cpp and
// torch/csrc/profiler/standalone/execution_trace_observer.cpp). Until schema 1.0.2 inputs are a
// list, from 1.0.3 on an object with values and types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallelism/trace_import/kineto_events.h"
#include "parallelism/workload/imported_files.h"

namespace trainyard {

struct ExecutionCall {
  std::string place;  // "FILE: node 12".
  std::string name;   // "all_to_allv".
  std::string group;
  std::int64_t group_size = 0;  // 0: not known.
  Bytes in{};
  Bytes out{};
  bool has_equal_splits = true;
};

struct ExecutionTrace {
  std::string name;  // Name of the file.
  int rank = 0;
  std::vector<ExecutionCall> calls = {};  // Waits are not in it.
};

// Throws ConfigError.
[[nodiscard]] ExecutionTrace read_execution_trace(const ImportedFile& file);

// The kernels of the profile whose collective has no name become these calls, in their order.
// Throws ConfigError where there are more or fewer, or a kernel's name says another operation.
void join(KinetoTrace& profile, const ExecutionTrace& calls);

}  // namespace trainyard
