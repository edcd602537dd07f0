// SPDX-License-Identifier: Apache-2.0
// What the end-to-end speed runs have in common.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/run/executor.h"
#include "network/contract/network.h"

namespace trainyard {

class CompletionCounter final : public EventHandler {
 public:
  explicit CompletionCounter(Simulator& simulator) : EventHandler(simulator) {}
  void on_event(std::uint64_t /*token*/) override { ++count_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

// Runs a collective on one channel, a rank on each host, to its end: the simulated time.
inline SimTime run_to_end(Simulator& simulator, Network& network, Algorithm algorithm,
                          Operation operation, const std::vector<NodeId>& hosts, Bytes size) {
  const auto schedule = make_schedule(
      algorithm, operation,
      {.layout = flat_layout(static_cast<int>(hosts.size()), 1), .root = {}, .pieces = 1});
  Executor executor(simulator, network, *schedule, hosts, size);
  executor.start();
  simulator.run();
  CHECK(!executor.contract_violation(), "the collective did not finish");
  return executor.finish_time();
}

// Of this process so far.
inline double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

}  // namespace trainyard
