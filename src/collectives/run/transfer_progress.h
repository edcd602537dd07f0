// SPDX-License-Identifier: Apache-2.0
// How far runs are, for whoever waits for them: written while they run, read by another thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "collectives/run/run.h"

namespace trainyard {

struct TransferProgress {
  std::atomic<std::uint64_t> runs{0};  // Runs that have begun,
  std::atomic<std::uint64_t> all{0};   // the transfers of all of them,
  std::atomic<std::uint64_t> done{0};  // and those that began, but for the last few.
};

// run_collective(), which says how far it is.
[[nodiscard]] CollectiveResult run_collective(const Cluster& cluster, const CollectiveJob& job,
                                              TransferProgress& progress);

}  // namespace trainyard
