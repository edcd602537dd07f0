// SPDX-License-Identifier: Apache-2.0
#include "cli/common/transfer_display.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace trainyard {
namespace {

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
