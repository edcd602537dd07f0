// SPDX-License-Identifier: Apache-2.0
// What takes the measurements. The program around it (plan, watchdog, results, resume) knows no
// device, and its tests use the backend of fake_backend.h.
//
// The two calls below run in child processes, one for each measurement: a kernel that hangs takes
// down nothing else, and variables of the environment reach libraries that read them once.
#pragma once

#include <string>

#include "calibrate/machine.h"
#include "calibrate/options.h"
#include "calibrate/samples.h"

namespace trainyard::calibrate {

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string name() const = 0;
  // Throws std::runtime_error where there is no device.
  [[nodiscard]] virtual Machine machine(const Options& options) = 0;
  // Takes the measurement `id` of the catalogue. Throws std::runtime_error where it fails, and
  // NotMeasured where it cannot be had on this machine.
  virtual void measure(const std::string& id, const Options& options, SampleSink& sink) = 0;
};

// The reason is written beside the measurement; it is no failure.
class NotMeasured {
 public:
  explicit NotMeasured(std::string reason) : reason_(std::move(reason)) {}
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

}  // namespace trainyard::calibrate
