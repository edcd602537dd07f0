// SPDX-License-Identifier: Apache-2.0
// The call that a kernel of NCCL belongs to where it does not say so itself: the one around its
// launch.
//
// The record of a launch (cudaLaunchKernel) has the number of its kernel, "correlation". It lies on
// the thread and within the time of what PyTorch noted down about the call: "nccl:all_reduce", with
// the shapes of the tensors where shapes are recorded (github.com/pytorch/pytorch,
// torch/csrc/distributed/c10d/Work.cpp and ProcessGroupNCCL.cpp), in "c10d::_allgather_base_" and
// its like, whose first two tensors are what comes out and what goes in, and since PyTorch 2.2
// "record_param_comms" with all fields.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/trace_import/kineto_json.h"

namespace trainyard {

// A call as it was noted down around a launch.
struct LaunchedCall {
  std::uint64_t number = 0;       // Kernels of one call have the same.
  std::string name;               // "all_reduce", after "nccl:"; empty: nothing was.
  std::int64_t bytes = 0;         // Bytes that the rank puts in; 0: not known.
  std::int64_t output_bytes = 0;  // Bytes that come out; 0: not known.
  nlohmann::json fields;          // Those of record_param_comms, if it has "Collective name".
};

class KinetoLaunches {
 public:
  // Whether an event is a launch, or noted down about a call.
  [[nodiscard]] static bool is_of_launches(std::string_view category, std::string_view name);

  // An event that is one of these. Throws ConfigError.
  void take(const nlohmann::json& event, const KinetoFields& fields);

  // All events were taken. Nothing: no launch with that number is in the file, or no call around
  // it.
  [[nodiscard]] std::optional<LaunchedCall> around(std::int64_t correlation);

 private:
  struct Launch {
    std::int64_t correlation = 0;
    std::int64_t time = 0;
    std::uint32_t thread = 0;
  };
  struct Noted {
    std::int64_t start = 0;
    std::int64_t end = 0;
    std::string name;
    std::vector<std::int64_t> bytes;  // Each input has its number; 0: no tensor.
    nlohmann::json fields;
  };

  [[nodiscard]] std::uint32_t thread_of(const nlohmann::json& event);
  void sort();

  std::vector<Launch> launches_;
  std::vector<std::vector<Noted>> noted_;  // Those of each thread.
  std::map<std::string, std::uint32_t> threads_;
  std::string last_thread_;
  std::uint32_t last_number_ = 0;
  bool is_sorted_ = false;
};

}  // namespace trainyard
