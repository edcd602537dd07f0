// SPDX-License-Identifier: Apache-2.0
// A run: takes each measurement of the plan in a child under the watchdog, stores what it found
// before the next one begins, and says on the way how far it is.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "calibrate/catalogue.h"
#include "calibrate/child.h"
#include "calibrate/options.h"
#include "calibrate/result_set.h"

namespace trainyard::calibrate {

// What a child that was to take measurement `id` found.
[[nodiscard]] Result result_of(const std::string& id, const ChildEnd& end, int patience_seconds);

// Asks a child what there is. Throws ConfigError, with what the child said, where it finds no
// device.
[[nodiscard]] Machine detect_machine(const Options& options);

// The time that is left, from what the plan expects and how that went until now.
class Progress {
 public:
  explicit Progress(const std::vector<Measurement>& plan);

  // The measurement was passed over (seconds 0) or took that long.
  void finish(const Measurement& measurement, double seconds);
  [[nodiscard]] double seconds_left() const;

 private:
  double expected_left_ = 0.0;
  double expected_done_ = 0.0;
  double taken_ = 0.0;
};

// "45 s", "3 min 20 s".
[[nodiscard]] std::string duration_text(double seconds);

// Runs the plan on `machine` and writes options.output after each measurement; progress goes to
// `log`. With --resume it begins with what that file holds. Returns whether nothing failed.
// Throws ConfigError.
[[nodiscard]] bool run_session(const Options& options, const std::string& backend,
                               const Machine& machine, std::ostream& log);

}  // namespace trainyard::calibrate
