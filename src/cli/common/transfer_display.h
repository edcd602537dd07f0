// SPDX-License-Identifier: Apache-2.0
// How many transfers of a long run are done; what will take minutes is said whatever the level.
#pragma once

#include <spdlog/logger.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "cli/common/long_run_display.h"
#include "collectives/run/transfer_progress.h"

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
