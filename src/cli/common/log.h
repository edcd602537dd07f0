// SPDX-License-Identifier: Apache-2.0
// The one logger of a run: to standard error, so that results stay alone on standard output, or to
// the host of the run (sim/host/run_host.h).
#pragma once

#include <spdlog/logger.h>

#include <span>
#include <string>

#include "cli/common/options.h"

namespace trainyard {

// --log-level.
[[nodiscard]] Options log_options();
// Passed on by reference; there is no global one. Its lines are "trainyard: LEVEL: MESSAGE", for a
// host "LEVEL: MESSAGE".
[[nodiscard]] spdlog::logger make_logger(const OptionReader& reader);
// Each as one line.
void log_warnings(spdlog::logger& log, std::span<const std::string> warnings);

}  // namespace trainyard
