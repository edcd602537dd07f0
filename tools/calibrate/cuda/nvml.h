// SPDX-License-Identifier: Apache-2.0
// The state of a GPU by NVML, which comes with the driver: clocks, power, temperature, and what
// holds the clocks down. All of it is left out where the library or a value is missing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "calibrate/machine.h"
#include "calibrate/samples.h"

namespace trainyard::calibrate {

class Nvml {
 public:
  Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  [[nodiscard]] std::string driver() const;
  // Adds what only NVML knows to the GPU at gpu.pci_bus_id.
  void describe(Gpu& gpu) const;

  struct State {
    double sm_clock_mhz = 0.0;
    double memory_clock_mhz = 0.0;
    double power_w = 0.0;
    double temperature_c = 0.0;
    unsigned long long throttle_reasons = 0;
  };
  // False where there is no such GPU.
  [[nodiscard]] bool state(const std::string& pci_bus_id, State& state) const;

 private:
  struct Functions;
  std::unique_ptr<Functions> functions_;  // Null where NVML cannot be used.
};

// "power cap, thermal (software)"; "none".
[[nodiscard]] std::string throttle_text(unsigned long long reasons);

// Watches a GPU twenty times a second while a measurement runs.
class StateWatch {
 public:
  explicit StateWatch(std::string pci_bus_id);
  StateWatch(const StateWatch&) = delete;
  StateWatch& operator=(const StateWatch&) = delete;
  ~StateWatch();

  // Ends the watch and adds what was seen; nothing where nothing was.
  void finish(SampleSink& sink);

 private:
  void watch();

  std::string pci_bus_id_;
  std::vector<Nvml::State> states_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace trainyard::calibrate
