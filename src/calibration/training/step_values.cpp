// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/step_values.h"

#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kMaxStart = 1e3;
constexpr double kMaxSpread = 100.0;
constexpr std::string_view kExpertSync = "software.host_expert_sync";

// The numbers of the rates that may be fitted, by name; without those of a generation that it does
// not have.
std::map<std::string, double*> numbers_of(GpuRates& rates) {
  std::map<std::string, double*> numbers;
  for (auto& [name, factor] : rates.devices) {
    numbers["devices." + name] = &factor;
  }
  for (auto& [generation, of] : rates.generations) {
    const std::string front = generation + ".";
    numbers[front + "gemm"] = &of.gemm;
    numbers[front + "misaligned"] = &of.misaligned;
    numbers[front + "grouped_gemm"] = &of.grouped_gemm;
    numbers[front + "memory"] = &of.memory;
    numbers[front + "overlapped_tensor"] = &of.overlapped_tensor;
    numbers[front + "overlapped_data"] = &of.overlapped_data;
    for (const auto& [name, value] :
         {std::pair("gemm_fp8", &of.gemm_fp8), std::pair("gemm_nvfp4", &of.gemm_nvfp4),
          std::pair("fp8_cast", &of.fp8_cast)}) {
      if (*value) {
        numbers[front + name] = &value->value();
      }
    }
    for (auto& [kernel, both] : of.attention) {
      numbers[front + "attention." + kernel + ".forward"] = &both.forward;
      numbers[front + "attention." + kernel + ".backward"] = &both.backward;
    }
    for (auto& [fusion, factor] : of.memory_bound) {
      numbers[front + "memory_bound." + fusion] = &factor;
    }
  }
  return numbers;
}

// The times of the rates that may be fitted, by name.
std::map<std::string, SimTime*> times_of(GpuRates& rates) {
  std::map<std::string, SimTime*> times;
  for (auto& [generation, of] : rates.generations) {
    times[generation + ".host_layer"] = &of.host_layer;
  }
  return times;
}

}  // namespace

SoftwareProfile StepValues::adjusted(SoftwareProfile software) const {
  if (host_expert_sync && software.host_expert_sync > 0.0) {
    software.host_expert_sync = *host_expert_sync;
  }
  return software;
}

StepPriors StepPriors::load(const std::filesystem::path& file, const GpuRates& rates) {
  ConfigDocument document = ConfigDocument::load(file);
  return read(document, rates);
}

StepPriors StepPriors::read(ConfigDocument& document, const GpuRates& rates) {
  const ConfigNode root = document.root();
  StepPriors priors;
  priors.rates_ = rates;
  std::vector<std::string> sources;
  for (const auto& [key, text] : root.required("sources").entries()) {
    static_cast<void>(text.as_string());
    sources.push_back(key);
  }
  const std::vector<std::string_view> names(sources.begin(), sources.end());
  const std::map<std::string, double*> numbers = numbers_of(priors.rates_);
  const std::map<std::string, SimTime*> times = times_of(priors.rates_);
  for (const auto& [name, node] : root.required("constants").entries()) {
    StepConstant constant{.name = name,
                          .start = node.required("start").as_number(1e-9, kMaxStart),
                          .spread = node.required("spread").as_number(1.001, kMaxSpread)};
    static_cast<void>(node.required("source").as_choice(names));
    if (const auto number = numbers.find(name); number != numbers.end()) {
      constant.in_file = *number->second;
    } else if (const auto time = times.find(name); time != times.end()) {
      constant.in_file = time->second->seconds();
    } else if (name == kExpertSync) {
      constant.in_file = constant.start;
    } else {
      node.fail("a constant of the rates", name);
    }
    priors.constants_.push_back(std::move(constant));
  }
  document.finish();
  return priors;
}

StepValues StepPriors::values(std::span<const std::size_t> which,
                              std::span<const double> values) const {
  CHECK(which.size() == values.size(), "a value for each constant");
  StepValues result{.rates = rates_};
  const std::map<std::string, double*> numbers = numbers_of(result.rates);
  const std::map<std::string, SimTime*> times = times_of(result.rates);
  for (std::size_t index = 0; index < which.size(); ++index) {
    const std::string& name = constants_[which[index]].name;
    if (name == kExpertSync) {
      result.host_expert_sync = values[index];
    } else if (const auto time = times.find(name); time != times.end()) {
      *time->second = SimTime(std::llround(values[index] * 1e12));
    } else {
      *numbers.at(name) = values[index];
    }
  }
  return result;
}

}  // namespace trainyard
