// SPDX-License-Identifier: Apache-2.0
#include "topology/server/server_runs.h"

#include <spdlog/fmt/fmt.h>

namespace trainyard {

std::vector<ServerRun> server_runs(const std::vector<int>& server_gpus) {
  std::vector<ServerRun> runs;
  for (const int gpus : server_gpus) {
    if (runs.empty() || runs.back().gpus != gpus) {
      runs.push_back({.servers = 0, .gpus = gpus});
    }
    ++runs.back().servers;
  }
  return runs;
}

std::string server_runs_text(const std::vector<int>& server_gpus) {
  const std::vector<ServerRun> runs = server_runs(server_gpus);
  if (runs.size() == 1) {
    return std::to_string(runs.front().gpus);
  }
  std::vector<std::string> words;
  for (const ServerRun& run : runs) {
    words.push_back(run.servers == 1 ? std::to_string(run.gpus)
                                     : fmt::format("{}(x{})", run.gpus, run.servers));
  }
  return fmt::format("{}", fmt::join(words, ","));
}

}  // namespace trainyard
