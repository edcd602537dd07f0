// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/step_values.h"

#include <cmath>
#include <string_view>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kMaxStart = 1e3;
constexpr double kMaxSpread = 100.0;
constexpr std::string_view kExpertSync = "software.host_expert_sync";

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char letter : name) {
    if (letter == '.') {
      words.emplace_back();
    } else {
      words.back() += letter;
    }
  }
  return words;
}

double* number_in(std::map<std::string, double>& numbers, const std::string& key) {
  const auto found = numbers.find(key);
  return found == numbers.end() ? nullptr : &found->second;
}

// Null for what is no number of the generation, and for its times.
double* number_in(GenerationRates& rates, const std::vector<std::string>& words) {
  const std::string& key = words[1];
  if (words.size() == 4 && key == "attention") {
    const auto kernel = rates.attention.find(words[2]);
    if (kernel == rates.attention.end()) {
      return nullptr;
    }
    AttentionRates& both = kernel->second;
    return words[3] == "forward"    ? &both.forward
           : words[3] == "backward" ? &both.backward
                                    : nullptr;
  }
  if (words.size() == 3 && key == "memory_bound") {
    return number_in(rates.memory_bound, words[2]);
  }
  if (words.size() != 2) {
    return nullptr;
  }
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::optional<double>*>{"gemm_fp8", &rates.gemm_fp8},
        {"gemm_nvfp4", &rates.gemm_nvfp4},
        {"fp8_cast", &rates.fp8_cast}}) {
    if (key == name) {
      return *value ? &value->value() : nullptr;
    }
  }
  for (const auto& [name, value] : {std::pair<std::string_view, double*>{"gemm", &rates.gemm},
                                    {"misaligned", &rates.misaligned},
                                    {"grouped_gemm", &rates.grouped_gemm},
                                    {"memory", &rates.memory},
                                    {"overlapped_tensor", &rates.overlapped_tensor},
                                    {"overlapped_data", &rates.overlapped_data}}) {
    if (key == name) {
      return value;
    }
  }
  return nullptr;
}

double* number_in(GpuRates& rates, const std::vector<std::string>& words) {
  if (words.size() == 2 && words[0] == "devices") {
    return number_in(rates.devices, words[1]);
  }
  const auto generation = rates.generations.find(words[0]);
  if (generation == rates.generations.end() || words.size() < 2) {
    return nullptr;
  }
  return number_in(generation->second, words);
}

SimTime* time_in(GpuRates& rates, const std::vector<std::string>& words) {
  const auto generation = rates.generations.find(words[0]);
  const bool is_known = generation != rates.generations.end() && words.size() == 2;
  return is_known && words[1] == "host_layer" ? &generation->second.host_layer : nullptr;
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
    for (auto& [name, constant] : named) {
      const std::vector<std::string> words = words_of(name);
      const double* const number = number_in(rates_, words);
      const SimTime* const time = time_in(rates_, words);
      if (number == nullptr && time == nullptr && name != kExpertSync) {
        root.required("constants").required(name).fail("a constant of the rates", name);
      }
      constant.name = name;
      constant.in_file = number != nullptr ? *number
                         : time != nullptr ? time->seconds()
                                           : constant.start;
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
  for (std::size_t index = 0; index < which.size(); ++index) {
    const std::string& name = constants_[which[index]].name;
    const std::vector<std::string> words = words_of(name);
    if (name == kExpertSync) {
      result.host_expert_sync = values[index];
    } else if (SimTime* const time = time_in(result.rates, words)) {
      *time = SimTime(std::llround(values[index] * 1e12));
    } else {
      *number_in(result.rates, words) = values[index];
    }
  }
  return result;
}

}  // namespace trainyard
