// SPDX-License-Identifier: Apache-2.0
#include "cli/common/long_run_display.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string_view>
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

// Standard error may be closed or full by now; a display is no reason to fail.
void show_on_line(std::string_view text) {
  static_cast<void>(std::fputs(fmt::format("\r\x1b[K{}", text).c_str(), stderr));
}

bool take_line(RunHost* host) {
  if (host != nullptr) {
    return host->take_display();
  }
  return isatty(STDERR_FILENO) == 1 && !is_line_taken().exchange(true);
}

// A minute of the flow engine (benchmarks/README.md).
constexpr std::uint64_t kManyTransfers = 268'435'456;

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
    : text_(std::move(text)), log_(log), host_(run_host()), has_line_(take_line(host_)) {
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
  if (has_line_ && host_ != nullptr) {
    host_->give_display_back();
  } else if (has_line_) {
    if (is_drawn_) {
      show_on_line("");
    }
    is_line_taken() = false;
  }
}

void LongRunDisplay::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenLooks, [this] { return has_ended_; })) {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> elapsed = now - start_;
    const std::optional<std::string> text = text_(elapsed.count());
    if (text && host_ != nullptr && has_line_) {
      host_->show_progress(*text);
    }
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
  if (has_line_ && host_ == nullptr) {
    show_on_line(text);
    is_drawn_ = true;
  }
}

std::optional<std::string> progress_text(std::string_view what, std::size_t runs,
                                         const TransferProgress& progress, double seconds) {
  const auto done = static_cast<double>(progress.done.load());
  const auto begun = static_cast<double>(progress.runs.load());
  if (done < 1.0 || begun < 1.0) {
    return std::nullopt;
  }
  const double known = static_cast<double>(progress.all.load());
  const double all = std::max(done, known / begun * std::max(begun, static_cast<double>(runs)));
  return fmt::format("{}: {:.1f} % of {:.0f} transfers, about {:.0f} s left", what,
                     100.0 * done / all, all, seconds / done * (all - done));
}

TransferDisplay::TransferDisplay(std::string_view what, std::size_t runs, spdlog::logger& log)
    : what_(what),
      log_(log),
      display_(
          [this, runs](double seconds) {
            warn_of_many();
            return progress_text(what_, runs, progress_, seconds);
          },
          &log) {}

void TransferDisplay::warn_of_many() {
  const std::uint64_t all = progress_.all.load();
  if (has_warned_ || all < kManyTransfers) {
    return;
  }
  has_warned_ = true;
  log_.warn(
      "{}: {} transfers, which take minutes: --log-level info says how far they are, --fidelity "
      "analytical takes about half as long, other algorithms have fewer",
      what_, all);
}

}  // namespace trainyard
