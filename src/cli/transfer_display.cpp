// SPDX-License-Identifier: Apache-2.0
#include "cli/transfer_display.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>

namespace trainyard {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{200};
constexpr std::chrono::seconds kSilence{2};
constexpr std::chrono::seconds kBetweenLines{10};
// A minute of the flow engine (benchmarks/README.md).
constexpr std::uint64_t kManyTransfers = 268'435'456;

}  // namespace

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
      runs_(runs),
      log_(log),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      watcher_([this] { watch(); }) {}

TransferDisplay::~TransferDisplay() {
  {
    const std::scoped_lock lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  watcher_.join();
  if (is_drawn_) {
    fmt::print(stderr, "\r\x1b[K");
  }
}

void TransferDisplay::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBetweenLooks, [this] { return has_ended_; })) {
    const Clock::time_point now = Clock::now();
    warn_of_many();
    if (now - start_ > kSilence) {
      show(now);
    }
  }
}

void TransferDisplay::show(Clock::time_point now) {
  const bool is_line_due =
      log_.should_log(spdlog::level::info) && (!last_line_ || now - *last_line_ > kBetweenLines);
  if (!is_terminal_ && !is_line_due) {
    return;
  }
  const std::chrono::duration<double> elapsed = now - start_;
  const auto text = progress_text(what_, runs_, progress_, elapsed.count());
  if (!text) {
    return;
  }
  if (is_line_due) {
    log_.info(*text);
    last_line_ = now;
  }
  if (is_terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", *text);
    is_drawn_ = true;
  }
}

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
