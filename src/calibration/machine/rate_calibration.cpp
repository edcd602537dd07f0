// SPDX-License-Identifier: Apache-2.0
#include "calibration/machine/rate_calibration.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "calibration/predict/profile_yaml.h"
#include "sim/check.h"
#include "sim/config.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// The harness asks cuDNN for attention.
constexpr const char* kKernel = "cudnn";

// The name of a rate, its limits, and by how much machines differ in it: best shapes reach 0.78 to
// 0.87 of the peak (gpu-rates-priors.yaml, mamf), memory 0.8 to 0.95 of its rate; the others are
// estimates.
struct Kind {
  const char* name;
  double min;
  double max;
  double spread;
  double slower;
};
constexpr std::array<Kind, 8> kKinds{{{"gemm", 0.05, 1.0, 1.3, -1.0},
                                      {"gemm_fp8", 0.05, 1.0, 1.3, -1.0},
                                      {"gemm_start", 0.2e-6, 50e-6, 2.0, 1.0},
                                      {"tile_prologue", 4.0, 5000.0, 2.0, 1.0},
                                      {"misaligned", 0.02, 1.0, 1.5, -1.0},
                                      {"attention.forward", 0.02, 1.0, 1.3, -1.0},
                                      {"attention.backward", 0.02, 1.0, 1.3, -1.0},
                                      {"memory", 0.2, 1.0, 1.15, -1.0}}};
enum Rate : std::size_t {
  kGemm,
  kGemmFp8,
  kStart,
  kPrologue,
  kMisaligned,
  kForward,
  kBackward,
  kMemory
};
using Values = std::array<double, kKinds.size()>;

// Returns the values of the generation: the factor of the device (`devices`) stays what it is.
Values values_of(const GenerationRates& rates) {
  const auto kernel = rates.attention.find(kKernel);
  const AttentionRates attention = kernel != rates.attention.end() ? kernel->second
                                   : rates.attention.empty()
                                       ? AttentionRates{.forward = 0.5, .backward = 0.4}
                                       : rates.attention.begin()->second;
  return {rates.gemm,
          rates.gemm_fp8.value_or(rates.gemm),
          rates.gemm_start.seconds(),
          static_cast<double>(rates.tile_prologue),
          rates.misaligned,
          attention.forward,
          attention.backward,
          rates.memory};
}

void set_values(const Values& values, GenerationRates& rates) {
  rates.gemm = values[kGemm];
  if (rates.gemm_fp8) {
    rates.gemm_fp8 = values[kGemmFp8];
  }
  rates.gemm_start = SimTime(std::llround(values[kStart] * 1e12));
  rates.tile_prologue = std::llround(values[kPrologue]);
  rates.misaligned = values[kMisaligned];
  rates.attention[kKernel] = {.forward = values[kForward], .backward = values[kBackward]};
  rates.memory = values[kMemory];
}

// The rates of one GPU at points of the fit.
class RateModel : public FitModel {
 public:
  RateModel(const std::vector<RateTable>& tables, const GpuModel& gpu, GpuRates rates)
      : tables_(tables), gpu_(gpu), rates_(std::move(rates)) {
    GenerationRates& generation = rates_.generations.at(gpu.architecture);
    software_.name = "calibration";
    software_.attention = kKernel;
    CHECK(!generation.memory_bound.empty(), "a generation has a fusion");
    software_.fusion = generation.memory_bound.begin()->first;
  }

  void set_points(std::span<const std::vector<double>> points) override {
    points_.assign(points.begin(), points.end());
  }

  void log_times(std::size_t table, std::size_t point, std::span<const std::size_t> rows,
                 std::span<double> times) override {
    Values values{};
    std::transform(points_.at(point).begin(), points_.at(point).end(), values.begin(),
                   [](double x) { return std::exp(x); });
    GpuRates rates = rates_;
    set_values(values, rates.generations.at(gpu_.architecture));
    const RateTable& of = tables_.at(table);
    const ComputeRates compute = compute_rates(gpu_, rates, software_, of.precision);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      times[i] = std::log(predicted_time(of.rows.at(rows[i]), compute).seconds());
    }
  }

 private:
  const std::vector<RateTable>& tables_;
  const GpuModel& gpu_;
  GpuRates rates_;
  SoftwareProfile software_;
  std::vector<std::vector<double>> points_;
};

std::vector<FitParameter> parameters_at(const Values& shipped) {
  std::vector<FitParameter> all;
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    const Kind& kind = kKinds.at(k);
    all.push_back({.name = kind.name,
                   .start = std::log(std::clamp(shipped.at(k), kind.min, kind.max)),
                   .min = std::log(kind.min),
                   .max = std::log(kind.max),
                   .spread = std::log(kind.spread),
                   .neighbour = {},
                   .slower = kind.slower});
  }
  return all;
}

std::vector<FitTable> fit_tables(const std::vector<RateTable>& tables) {
  std::vector<FitTable> made;
  for (const RateTable& table : tables) {
    FitTable& one = made.emplace_back(FitTable{.name = table.id, .system = "", .rows = {}});
    for (const RateRow& row : table.rows) {
      one.rows.push_back({.log_measured = std::log(row.measured.seconds())});
    }
  }
  return made;
}

// The third of each four in rising order of times, but for the longest.
std::vector<std::vector<bool>> kept_out(const std::vector<RateTable>& tables) {
  std::vector<std::vector<bool>> marks;
  for (const RateTable& table : tables) {
    marks.push_back(third_of_four(table.rows.size()));
  }
  return marks;
}

std::string key_of(std::size_t kind) {
  const std::string name = kKinds.at(kind).name;
  const std::size_t dot = name.find('.');
  return dot == std::string::npos
             ? name
             : fmt::format("{}.{}{}", name.substr(0, dot), kKernel, name.substr(dot));
}

std::string text_of(const FittedConstant& rate, double value) {
  if (rate.is_time) {
    return fmt::format("{:.3g} us", value * 1e6);
  }
  return value >= 2.0 ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

// From now on kernels of this GPU were measured.
void add_measured(const GpuModel& gpu, const GenerationRates& shipped, ConfigDocument& document) {
  std::vector<int> parts = shipped.measured_on;
  if (parts.empty() || !gpu.compute_capability ||
      std::ranges::find(parts, gpu.compute_capability->value) != parts.end()) {
    return;
  }
  parts.push_back(gpu.compute_capability->value);
  document.set("generations." + gpu.architecture + ".measured_on",
               fmt::format("[{}]", fmt::join(parts, ", ")));
}

// Puts the rates that are fitted in the place of the shipped ones; both of attention together.
void set_fitted(const RateCalibration& made, ConfigDocument& document) {
  std::map<std::string, std::string> attention;
  std::string kernel;  // Path of the rates of attention, if any is fitted.
  for (const FittedConstant& rate : made.rates) {
    const std::string text = text_of(rate, rate.value);
    const std::string path = "generations." + rate.name;
    const std::size_t last = path.rfind('.');
    if (path.find(".attention.") != std::string::npos) {
      attention[path.substr(last + 1)] = text;
      kernel = rate.is_fitted ? path.substr(0, last) : kernel;
    } else if (rate.is_fitted) {
      document.set(path,
                   fmt::format("{{value: {}, evidence: measured, source: calibration, note: \"90 % "
                               "within {} to {}, {} rows\"}}",
                               text, text_of(rate, rate.low), text_of(rate, rate.high), rate.rows));
    }
  }
  if (!kernel.empty()) {
    document.set(
        kernel,
        fmt::format("{{forward: {}, backward: {}, evidence: measured, source: calibration}}",
                    attention["forward"], attention["backward"]));
  }
}

std::string document_of(const RateCalibration& made, const GpuModel& gpu, const GpuRates& rates,
                        const std::filesystem::path& shipped, const std::string& origin) {
  ConfigDocument document = ConfigDocument::load(shipped);
  add_measured(gpu, rates.generations.at(gpu.architecture), document);
  set_fitted(made, document);
  return "# Rates of kernels as trainyard calibrate fitted them to one GPU; the keys are those of\n"
         "# configs/hardware/gpu-rates.yaml, docs/commands/calibrate.md says how.\n\n" +
         rewritten(document.root(), "trainyard calibrate: " + origin, cited_text);
}

}  // namespace

CalibrationError RateCalibration::error(RowUse use, std::optional<std::size_t> table) const {
  std::vector<EstimatedRow> rows;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    for (const EstimatedRow& row : fit.tables.at(t)) {
      if (row.use == use && t == table.value_or(t)) {
        rows.push_back(row);
      }
    }
  }
  return calibration_error(rows);
}

RateCalibration calibrate_rates(std::vector<RateTable> tables, const GpuModel& gpu,
                                const std::filesystem::path& shipped, const std::string& origin,
                                const ConstantFitOptions& options, const TaskRunner& run_tasks) {
  const GpuRates rates = GpuRates::load(shipped);
  const auto generation = rates.generations.find(gpu.architecture);
  if (generation == rates.generations.end()) {
    throw ConfigError(fmt::format(
        "--gpu-rates: expected a GPU of a generation that gpu-rates.yaml has, found {} ({})",
        gpu.name, gpu.architecture));
  }
  const Values values = values_of(generation->second);
  RateCalibration made{
      .gpu = gpu.name, .rates = {}, .tables = std::move(tables), .fit = {}, .document = {}};
  RateModel model(made.tables, gpu, rates);
  made.fit = fit_constants(model, parameters_at(values), fit_tables(made.tables),
                           kept_out(made.tables), options, run_tasks);
  for (std::size_t k = 0; k < kKinds.size(); ++k) {
    if (k == kGemmFp8 && !generation->second.gemm_fp8) {
      continue;
    }
    made.rates.push_back(fitted_constant(gpu.architecture + "." + key_of(k), k == kStart,
                                         values.at(k), made.fit.constants.at(k), kKinds.at(k).min,
                                         kKinds.at(k).max));
  }
  made.document = document_of(made, gpu, rates, shipped, origin);
  return made;
}

}  // namespace trainyard
