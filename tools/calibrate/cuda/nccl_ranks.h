// SPDX-License-Identifier: Apache-2.0
// Processes that are ranks of NCCL on this node, when no launcher made them, and the service by
// which two of them run on one GPU at the same time.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "calibrate/options.h"

namespace trainyard::calibrate {

// A folder for the files of one measurement, removed with everything in it.
class MeetingFolder {
 public:
  MeetingFolder();
  MeetingFolder(const MeetingFolder&) = delete;
  MeetingFolder& operator=(const MeetingFolder&) = delete;
  ~MeetingFolder();
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// NVIDIA's Multi-Process Service, which needs no root. Without it kernels of two processes take
// turns of milliseconds, and what they wait for in each other costs a turn.
class MultiProcessService {
 public:
  // Uses the one that runs; starts one in `folder` otherwise. The processes that are started
  // afterwards find it by their environment.
  explicit MultiProcessService(const std::filesystem::path& folder);
  MultiProcessService(const MultiProcessService&) = delete;
  MultiProcessService& operator=(const MultiProcessService&) = delete;
  ~MultiProcessService();

  [[nodiscard]] bool runs() const { return runs_; }
  [[nodiscard]] bool is_ours() const { return process_ > 0; }

 private:
  void stop();
  pid_t process_ = 0;
  bool runs_ = false;
};

// Starts `ranks` children that take measurement `id` together in `folder`, and waits for them. Only
// rank 0 keeps standard output. Throws std::runtime_error with the words of the first that fails,
// once all are gone.
void run_ranks(const Options& options, const std::string& id, int ranks,
               const std::filesystem::path& folder);

}  // namespace trainyard::calibrate
