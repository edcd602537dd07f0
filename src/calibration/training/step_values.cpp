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
  for (auto& [name, factor] : rates.devices_16_bit) {
    numbers["devices_16_bit." + name] = &factor;
  }
  for (auto& [generation, of] : rates.generations) {
    const std::string front = generation + ".";
    numbers[front + "gemm"] = &of.gemm;
    numbers[front + "partial_wave"] = &of.partial_wave;
    numbers[front + "misaligned"] = &of.misaligned;
    numbers[front + "grouped_gemm"] = &of.grouped_gemm;
    numbers[front + "memory"] = &of.memory;
    numbers[front + "overlapped_tensor"] = &of.overlapped_tensor;
    numbers[front + "overlapped_data"] = &of.overlapped_data;
    for (const auto& [name, value] :
         {std::pair("gemm_fp8", &of.gemm_fp8), std::pair("gemm_mxfp8", &of.gemm_mxfp8),
          std::pair("gemm_nvfp4", &of.gemm_nvfp4), std::pair("fp8_cast", &of.fp8_cast)}) {
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

void StepPriors::fields(Fields& fields) {
  std::vector<std::pair<std::string, StepConstant>> named;
  const auto constant_fields = [](Fields& inner, StepConstant& constant) {
    inner.required("start", constant.start, Number{1e-9, kMaxStart},
                   "What is assumed, in seconds where it is a time.");
    inner.required("spread", constant.spread, Number{1.001, kMaxSpread},
                   "A factor: one standard deviation.");
    inner.cited_source();
  };
  fields.cite_sources();
  fields.required("constants", named, Named{Group{constant_fields}},
                  "Rates that are fitted, such as `hopper.gemm`.");
  fields.check([&](const ConfigNode& root) {
    const std::map<std::string, double*> numbers = numbers_of(rates_);
    const std::map<std::string, SimTime*> times = times_of(rates_);
    for (auto& [name, constant] : named) {
      constant.name = name;
      if (const auto number = numbers.find(name); number != numbers.end()) {
        constant.in_file = *number->second;
      } else if (const auto time = times.find(name); time != times.end()) {
        constant.in_file = time->second->seconds();
      } else if (name == kExpertSync) {
        constant.in_file = constant.start;
      } else {
        root.required("constants").required(name).fail("a constant of the rates", name);
      }
      constants_.push_back(std::move(constant));
    }
  });
}

StepPriors StepPriors::read(ConfigDocument& document, const GpuRates& rates) {
  StepPriors priors;
  priors.rates_ = rates;
  read_fields(document.root(), priors,
              [](Fields& fields, StepPriors& read) { read.fields(fields); });
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
