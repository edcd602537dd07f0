// SPDX-License-Identifier: Apache-2.0
// --threads of a run whose host wants one thread (sim/host/run_host.h).
#pragma once

#include <optional>
#include <string>

#include "cli/common/options.h"
#include "sim/host/run_host.h"

namespace trainyard {

// The value of --threads, or 1 where the host wants one thread. Throws ConfigError where it does
// and several are asked for.
[[nodiscard]] inline std::optional<int> threads_for_host(std::optional<int> threads) {
  if (run_host() == nullptr || !run_host()->wants_one_thread()) {
    return threads;
  }
  if (threads.value_or(1) != 1) {
    fail_option("threads", "1 beside a control that is a function of the caller",
                std::to_string(*threads));
  }
  return 1;
}

}  // namespace trainyard
