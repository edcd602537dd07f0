// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/nvml.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include "calibrate/cuda/library.h"

namespace trainyard::calibrate {
namespace {

// NVML's interface is stable, and its header does not come with every toolkit. Types, numbers and
// names are those of its reference manual.
using Device = void*;
constexpr int kSuccess = 0;
constexpr int kSmClock = 1;
constexpr int kMemoryClock = 2;
constexpr int kGpuTemperature = 0;

using Init = int();
using SystemText = int(char*, unsigned int);
using HandleByBus = int(const char*, Device*);
using ClockOf = int(Device, int, unsigned int*);
using Number = int(Device, unsigned int*);
using Reasons = int(Device, unsigned long long*);

struct ReasonName {
  unsigned long long bit;
  std::string_view name;
};
constexpr std::array<ReasonName, 9> kReasons = {{{0x1, "idle"},
                                                 {0x2, "application clocks"},
                                                 {0x4, "power cap"},
                                                 {0x8, "hardware slowdown"},
                                                 {0x10, "sync boost"},
                                                 {0x20, "thermal (software)"},
                                                 {0x40, "thermal (hardware)"},
                                                 {0x80, "power brake"},
                                                 {0x100, "display clocks"}}};

}  // namespace

struct Nvml::Functions {
  Library library{"", {"libnvidia-ml.so.1"}};
  Init* init = library.optional<Init>("nvmlInit_v2");
  Init* shutdown = library.optional<Init>("nvmlShutdown");
  SystemText* driver = library.optional<SystemText>("nvmlSystemGetDriverVersion");
  HandleByBus* by_bus = library.optional<HandleByBus>("nvmlDeviceGetHandleByPciBusId_v2");
  ClockOf* clock = library.optional<ClockOf>("nvmlDeviceGetClockInfo");
  ClockOf* max_clock = library.optional<ClockOf>("nvmlDeviceGetMaxClockInfo");
  ClockOf* temperature = library.optional<ClockOf>("nvmlDeviceGetTemperature");
  Number* power = library.optional<Number>("nvmlDeviceGetPowerUsage");
  Number* power_limit = library.optional<Number>("nvmlDeviceGetPowerManagementLimit");
  Number* generation = library.optional<Number>("nvmlDeviceGetCurrPcieLinkGeneration");
  Number* width = library.optional<Number>("nvmlDeviceGetCurrPcieLinkWidth");
  Reasons* reasons = library.optional<Reasons>("nvmlDeviceGetCurrentClocksThrottleReasons");

  [[nodiscard]] Device device(const std::string& bus) const {
    Device found = nullptr;
    return by_bus != nullptr && by_bus(bus.c_str(), &found) == kSuccess ? found : nullptr;
  }
  // 0 where the driver does not say.
  static unsigned int value(ClockOf* function, Device device, int which) {
    unsigned int found = 0;
    return function != nullptr && function(device, which, &found) == kSuccess ? found : 0;
  }
  static unsigned int value(Number* function, Device device) {
    unsigned int found = 0;
    return function != nullptr && function(device, &found) == kSuccess ? found : 0;
  }
};

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {
  if (functions_->init == nullptr || functions_->init() != kSuccess) {
    functions_.reset();
  }
}

Nvml::~Nvml() {
  if (functions_ && functions_->shutdown != nullptr) {
    (void)functions_->shutdown();
  }
}

std::string Nvml::driver() const {
  std::array<char, 96> version{};
  if (!functions_ || functions_->driver == nullptr ||
      functions_->driver(version.data(), version.size()) != kSuccess) {
    return "";
  }
  return version.data();
}

void Nvml::describe(Gpu& gpu) const {
  Device device = functions_ ? functions_->device(gpu.pci_bus_id) : nullptr;
  if (device == nullptr) {
    return;
  }
  const auto number = [device](Number* function) {
    return static_cast<int>(Functions::value(function, device));
  };
  gpu.sm_clock_mhz = static_cast<int>(Functions::value(functions_->max_clock, device, kSmClock));
  gpu.memory_clock_mhz =
      static_cast<int>(Functions::value(functions_->max_clock, device, kMemoryClock));
  gpu.power_limit_w = number(functions_->power_limit) / 1000;
  gpu.pcie_generation = number(functions_->generation);
  gpu.pcie_width = number(functions_->width);
}

bool Nvml::state(const std::string& pci_bus_id, State& state) const {
  Device device = functions_ ? functions_->device(pci_bus_id) : nullptr;
  if (device == nullptr) {
    return false;
  }
  state.sm_clock_mhz = Functions::value(functions_->clock, device, kSmClock);
  state.memory_clock_mhz = Functions::value(functions_->clock, device, kMemoryClock);
  state.power_w = Functions::value(functions_->power, device) / 1000.0;
  state.temperature_c = Functions::value(functions_->temperature, device, kGpuTemperature);
  if (functions_->reasons != nullptr) {
    (void)functions_->reasons(device, &state.throttle_reasons);
  }
  return true;
}

std::string throttle_text(unsigned long long reasons) {
  std::string all;
  for (const ReasonName& reason : kReasons) {
    if ((reasons & reason.bit) != 0) {
      all += all.empty() ? "" : ", ";
      all += reason.name;
    }
  }
  return all.empty() ? "none" : all;
}

StateWatch::StateWatch(std::string pci_bus_id)
    : pci_bus_id_(std::move(pci_bus_id)), thread_([this] { watch(); }) {}

StateWatch::~StateWatch() {
  stop_ = true;
  if (thread_.joinable()) {
    thread_.join();
  }
}

void StateWatch::watch() {
  const Nvml nvml;
  Nvml::State state;
  while (!stop_ && nvml.state(pci_bus_id_, state)) {
    states_.push_back(state);
    state = {};
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void StateWatch::finish(SampleSink& sink) {
  stop_ = true;
  thread_.join();
  if (states_.empty()) {
    return;
  }
  unsigned long long reasons = 0;
  const auto add = [&](const char* quantity, const char* unit, double Nvml::State::*member) {
    std::vector<double> values;
    for (const Nvml::State& state : states_) {
      values.push_back(state.*member);
    }
    sink.add(Sample{.quantity = quantity,
                    .unit = unit,
                    .parameters = {},
                    .summary = summarise(std::move(values))});
  };
  add("SM clock", "MHz", &Nvml::State::sm_clock_mhz);
  add("memory clock", "MHz", &Nvml::State::memory_clock_mhz);
  add("power", "W", &Nvml::State::power_w);
  add("temperature", "C", &Nvml::State::temperature_c);
  for (const Nvml::State& state : states_) {
    reasons |= state.throttle_reasons;
  }
  sink.add(Record{.name = "clocks held down by", .text = throttle_text(reasons)});
}

}  // namespace trainyard::calibrate
