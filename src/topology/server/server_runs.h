// SPDX-License-Identifier: Apache-2.0
// Numbers of GPUs of many servers, in few words.
#pragma once

#include <string>
#include <vector>

namespace trainyard {

// Servers that follow one another and have the same number of GPUs.
struct ServerRun {
  int servers = 0;
  int gpus = 0;  // GPUs of each server.
};

[[nodiscard]] std::vector<ServerRun> server_runs(const std::vector<int>& server_gpus);
// "8" if all servers have 8; otherwise as SLURM writes SLURM_TASKS_PER_NODE: "8(x4),6" are four
// servers of 8 and one of 6.
[[nodiscard]] std::string server_runs_text(const std::vector<int>& server_gpus);

}  // namespace trainyard
