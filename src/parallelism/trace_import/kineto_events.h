// SPDX-License-Identifier: Apache-2.0
// Work of the GPU in the JSON that PyTorch's profiler (Kineto) writes, one file for each rank.
//
// Complete events ("ph": "X") of the categories kernel, gpu_memcpy and gpu_memset, with their
// stream. Kernels of collectives carry what ProcessGroupNCCL noted down
// (github.com/pytorch/pytorch, torch/csrc/profiler/util.cpp: saveNcclMeta). Everything else happens
// on the host and is counted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/operation.h"
#include "parallelism/trace_import/imported_workload.h"
#include "sim/units.h"

namespace trainyard {

enum class KinetoKind : std::uint8_t { Work, Call, Send, Receive };

struct KinetoEvent {
  KinetoKind kind = KinetoKind::Work;
  std::string name;
  std::string place;  // "FILE: event 17 (NAME)".
  SimTime start;      // After that of the first event; whole nanoseconds, as the time.
  SimTime time;
  std::int64_t stream = 0;
  // Fields of calls and messages:
  Operation operation = Operation::AllReduce;
  Bytes size{};  // In the sense of nccl-tests.
  std::string group;
  std::int64_t group_size = 0;
  std::optional<std::vector<int>> ranks = {};  // Nothing: left out or cut off in the file.
  int peer = 0;
};

struct KinetoTrace {
  std::string name;  // Name of the file.
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
  // Groups by name, as distributedInfo has them.
  std::map<std::string, std::vector<int>> groups = {};
  std::vector<KinetoEvent> events = {};              // Events by start.
  std::map<std::string, std::size_t> left_out = {};  // Counts by category.
};

// Throws ConfigError.
[[nodiscard]] KinetoTrace read_kineto_events(const ImportedFile& file);

}  // namespace trainyard
