// SPDX-License-Identifier: Apache-2.0
// Says that a long run goes on, and how far it is: on a terminal a line that is written over, with
// --log-level info a line every ten seconds, both on standard error and only after two seconds. A
// host of the run (sim/host/run_host.h) gets what the terminal would show, at once.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "collectives/run/run.h"
#include "sim/host/run_host.h"

namespace trainyard {

// "step: 14 s so far".
[[nodiscard]] std::string so_far(std::string_view what, double seconds);
// "points: 3 of 12, about 40 s left".
[[nodiscard]] std::string so_far(std::string_view what, std::size_t done, std::size_t count,
                                 double seconds);

class LongRunDisplay {
 public:
  // Returns the text after so many seconds; nothing as long as nothing is known. Called five times
  // a second, by a thread of the display.
  using Text = std::function<std::optional<std::string>(double seconds)>;

  // The logger, if any, must outlive this.
  LongRunDisplay(Text text, spdlog::logger* log);
  // For a run of which nothing is known but that it goes on.
  LongRunDisplay(std::string_view what, spdlog::logger* log);
  ~LongRunDisplay();
  LongRunDisplay(const LongRunDisplay&) = delete;
  LongRunDisplay& operator=(const LongRunDisplay&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void show(Clock::time_point now, const std::string& text);

  Text text_;
  spdlog::logger* log_;
  RunHost* host_;  // The terminal is not used where there is one.
  bool has_line_;  // On a terminal or of the host, where no display around this one has it.
  bool is_drawn_ = false;
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> last_line_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread watcher_;
};

// "collective: 12.3 % of 134217728 transfers, about 50 s left" after `seconds`. `runs` are all, of
// which those of `progress` have begun; the others are taken to be alike. Nothing before the first
// transfers.
[[nodiscard]] std::optional<std::string> progress_text(std::string_view what, std::size_t runs,
                                                       const TransferProgress& progress,
                                                       double seconds);

class TransferDisplay {
 public:
  // The logger must outlive this.
  TransferDisplay(std::string_view what, std::size_t runs, spdlog::logger& log);

  [[nodiscard]] TransferProgress& progress() { return progress_; }

 private:
  void warn_of_many();

  std::string what_;
  spdlog::logger& log_;
  bool has_warned_ = false;
  TransferProgress progress_;
  LongRunDisplay display_;  // Last: all else is there when it begins.
};

}  // namespace trainyard
