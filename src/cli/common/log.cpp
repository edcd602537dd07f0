// SPDX-License-Identifier: Apache-2.0
#include "cli/common/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <memory>
#include <mutex>
#include <string>

#include "cli/common/program_end.h"
#include "sim/host/run_host.h"

namespace trainyard {
namespace {

// One line for each message, as short as those of errors: a message may quote what a file says.
class LineFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const std::string text =
        one_line(fmt::format("trainyard: {}: {}", to_string_view(message.level), message.payload));
    line.append(text.data(), text.data() + text.size());
    line.push_back('\n');
  }
  [[nodiscard]] std::unique_ptr<formatter> clone() const override {
    return std::make_unique<LineFormatter>();
  }
};

// Hands lines to the host of a run, without the name of the program.
class HostSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit HostSink(RunHost& host) : host_(host) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    host_.log(one_line(fmt::format("{}: {}", to_string_view(message.level), message.payload)));
  }
  void flush_() override {}

  RunHost& host_;
};

spdlog::sink_ptr make_sink() {
  if (RunHost* const host = run_host()) {
    return std::make_shared<HostSink>(*host);
  }
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  sink->set_formatter(std::make_unique<LineFormatter>());
  return sink;
}

}  // namespace

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
  spdlog::logger logger("trainyard", make_sink());
  logger.set_level(kLevels.at(index));
  return logger;
}

void log_warnings(spdlog::logger& log, std::span<const std::string> warnings) {
  for (const std::string& warning : warnings) {
    log.warn(warning);
  }
}

}  // namespace trainyard
