// SPDX-License-Identifier: Apache-2.0
// Work of the GPU in the JSON that PyTorch's profiler (Kineto) writes, one file for each rank.
//
// Complete events ("ph": "X") of the categories kernel, gpu_memcpy and gpu_memset (before PyTorch
// 1.12 Kernel, Memcpy and Memset), with their stream. Kernels of collectives carry what
// ProcessGroupNCCL noted down
// (github.com/pytorch/pytorch, torch/csrc/profiler/util.cpp: saveNcclMeta). Everything else happens
// on the host and is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "parallelism/trace_import/imported_workload.h"
#include "sim/units.h"

namespace trainyard {

enum class KinetoKind : std::uint8_t {
  Work,
  Recorded,  // A call of which not enough is known to predict it: its recorded time counts.
  Call,
  Send,
  Receive,
};

// A name that ProcessGroupNCCL gives one of its operations (ProcessGroupNCCL.cpp:
// RECORD_PARAM_COMMS).
struct KinetoCallName {
  std::string_view text;
  Operation operation;
  bool has_whole_output;  // Whether the output is the one of both counts that is the whole.
};
// Nothing: not modelled.
[[nodiscard]] const KinetoCallName* kineto_call_of(std::string_view name);

// Why calls are only recorded.
inline constexpr std::string_view kNamelessCollective = "whose collective has no name";
inline constexpr std::string_view kUnmodelledCollective =
    "of gathers, scatters and others that are not modelled";
inline constexpr std::string_view kUnequalSplits = "with unequal splits";

// The size of a group of all ranks, of which no file says how many there are.
inline constexpr std::int64_t kAllRanks = -1;

struct KinetoEvent {
  KinetoKind kind = KinetoKind::Work;
  std::string_view name;  // Among the names of the trace.
  SimTime start;          // After that of the first event; whole nanoseconds, as the time.
  SimTime time;
  std::int64_t stream = 0;
  std::string_view unknown = {};  // For Recorded: why, to follow "kernels of collectives".
  // Fields of calls and messages:
  Operation operation = Operation::AllReduce;
  Bytes size{};  // In the sense of nccl-tests.
  std::string group;
  std::int64_t group_size = 0;
  std::optional<std::vector<int>> ranks = {};  // Nothing: left out or cut off in the file.
  int peer = 0;
};

// Names, each once, as operations of a step have those of the step before. What it gives out refers
// to it, wherever it is moved.
class KinetoNames {
 public:
  KinetoNames() = default;
  KinetoNames(KinetoNames&&) = default;
  KinetoNames& operator=(KinetoNames&&) = default;
  KinetoNames(const KinetoNames&) = delete;
  KinetoNames& operator=(const KinetoNames&) = delete;
  ~KinetoNames() = default;

  [[nodiscard]] std::string_view own(std::string_view text) {
    const auto found = names_.find(text);
    return found != names_.end() ? *found : *names_.emplace(text).first;
  }

 private:
  std::set<std::string, std::less<>> names_;
};

// A kernel without a name for its collective, and the call around its launch.
struct KinetoLaunched {
  std::size_t event = 0;  // Among the events of the trace.
  Operation operation = Operation::AllReduce;
  Bytes put_in{};                 // Each rank puts in so many.
  std::int64_t group_size = 0;    // 0: not known.
  std::string_view unknown = {};  // Why it is only recorded; empty: it is not.
};

struct KinetoTrace {
  std::string name;  // Name of the file.
  std::optional<int> rank = {};
  std::optional<int> world_size = {};
  // Groups by name, as distributedInfo has them.
  std::map<std::string, std::vector<int>> groups = {};
  std::vector<KinetoEvent> events = {};              // Events by start.
  std::vector<KinetoLaunched> launched = {};         // One for each event.
  std::map<std::string, std::size_t> left_out = {};  // Counts by category.
  KinetoNames names = {};
  bool has_times = true;  // Execution traces alone have none.
};

// Makes work that is a kernel of NCCL, RCCL or MSCCL, by its name, a call that is only recorded.
void mark_collective(KinetoEvent& event);

// Throws ConfigError.
[[nodiscard]] KinetoTrace read_kineto_events(const ImportedFile& file);

}  // namespace trainyard
