// SPDX-License-Identifier: Apache-2.0
// Says how far long runs are: on a terminal a line that is written over, with --log-level info a
// line every ten seconds, both on standard error and only after two seconds. What will take minutes
// is said whatever the level.
#pragma once

#include <spdlog/logger.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "collectives/transfer_progress.h"

namespace trainyard {

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
  ~TransferDisplay();
  TransferDisplay(const TransferDisplay&) = delete;
  TransferDisplay& operator=(const TransferDisplay&) = delete;

  [[nodiscard]] TransferProgress& progress() { return progress_; }

 private:
  using Clock = std::chrono::steady_clock;

  void watch();
  void show(Clock::time_point now);
  void warn_of_many();

  std::string what_;
  std::size_t runs_;
  spdlog::logger& log_;
  bool is_terminal_;
  bool is_drawn_ = false;
  bool has_warned_ = false;
  TransferProgress progress_;
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> last_line_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool has_ended_ = false;
  std::thread watcher_;  // Last: all else is there when it begins.
};

}  // namespace trainyard
