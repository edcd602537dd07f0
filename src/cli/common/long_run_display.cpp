// SPDX-License-Identifier: Apache-2.0
#include "cli/common/long_run_display.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <atomic>
#include <utility>

namespace trainyard {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::seconds kSilence{2};
constexpr std::chrono::seconds kBetweenLines{10};

// The terminal has one line to write over: that of the outermost display.
std::atomic<bool>& is_line_taken() {
  static std::atomic<bool> taken{false};
  return taken;
}

bool take_line() {
  return isatty(STDERR_FILENO) == 1 && !is_line_taken().exchange(true);
}

}  // namespace

std::string so_far(std::string_view what, double seconds) {
  return fmt::format("{}: {:.0f} s so far", what, seconds);
}

std::string so_far(std::string_view what, std::size_t done, std::size_t count, double seconds) {
  if (done == 0) {
    return fmt::format("{}: 0 of {}, {:.0f} s so far", what, count, seconds);
  }
  const double left = seconds / static_cast<double>(done) * static_cast<double>(count - done);
  return fmt::format("{}: {} of {}, about {:.0f} s left", what, done, count, left);
}

LongRunDisplay::LongRunDisplay(Text text, spdlog::logger* log)
    : text_(std::move(text)), log_(log), has_line_(take_line()) {
  if (has_line_ || log_ != nullptr) {
    watcher_ = std::thread([this] { watch(); });
  }
}

LongRunDisplay::LongRunDisplay(std::string_view what, spdlog::logger* log)
    : LongRunDisplay([name = std::string(what)](double seconds) { return so_far(name, seconds); },
                     log) {}

LongRunDisplay::~LongRunDisplay() {
  if (watcher_.joinable()) {
    {
      const std::scoped_lock lock(mutex_);
      has_ended_ = true;
    }
    ended_.notify_one();
    watcher_.join();
  }
  if (is_drawn_) {
    fmt::print(stderr, "\r\x1b[K");
  }
  if (has_line_) {
    is_line_taken() = false;
  }
}

void LongRunDisplay::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenLooks, [this] { return has_ended_; })) {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> elapsed = now - start_;
    const std::optional<std::string> text = text_(elapsed.count());
    if (text && elapsed > kSilence) {
      show(now, *text);
    }
  }
}

void LongRunDisplay::show(Clock::time_point now, const std::string& text) {
  const bool is_line_due = log_ != nullptr && log_->should_log(spdlog::level::info) &&
                           (!last_line_ || now - *last_line_ > kBetweenLines);
  if (is_line_due) {
    log_->info(text);
    last_line_ = now;
  }
  if (has_line_) {
    fmt::print(stderr, "\r\x1b[K{}", text);
    is_drawn_ = true;
  }
}

}  // namespace trainyard
