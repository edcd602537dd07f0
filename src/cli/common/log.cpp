// SPDX-License-Identifier: Apache-2.0
#include "cli/common/log.h"

#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>

namespace trainyard {

Options log_options() {
  return {{"log-level",
           "LEVEL",
           "warn (the default), off, info or debug: lines on standard error",
           {.choices = "warn|off|info|debug", .synonyms = "verbose=info quiet=off debug=debug"}}};
}

spdlog::logger make_logger(const OptionReader& reader) {
  // In the order of the choices; the first is the default.
  constexpr std::array kLevels{spdlog::level::warn, spdlog::level::off, spdlog::level::info,
                               spdlog::level::debug};
  const std::size_t index = reader.choice("log-level");
  spdlog::logger logger("trainyard", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger.set_level(kLevels.at(index));
  logger.set_pattern("trainyard: %l: %v");
  return logger;
}

void log_warnings(spdlog::logger& log, std::span<const std::string> warnings) {
  for (const std::string& warning : warnings) {
    log.warn(warning);
  }
}

}  // namespace trainyard
