// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/gpu_rates.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr double kMinShare = 0.001;
constexpr double kMaxFactor = 100.0;

constexpr Number kShare{kMinShare, 1.0};
constexpr Number kFactor{kMinShare, kMaxFactor};

void attention_rate_fields(Fields& fields, AttentionRates& rates) {
  fields.evidence();
  fields.required("forward", rates.forward, kShare, "Share of the peak.");
  fields.required("backward", rates.backward, kShare, "Share of the peak.");
  fields.optional("rows", rates.rows, Whole{1, 100'000}, "Queries of a block forward: 128.");
}

void generation_fields(Fields& fields, GenerationRates& rates) {
  constexpr Cited kShareOfPeak{kShare};
  constexpr Cited kTime{Duration{}};
  constexpr Cited kOverlapped{Number{0.0, 1.0}};
  fields.required("gemm", rates.gemm, kShareOfPeak, "Share of the peak of large products.");
  fields.required("gemm_start", rates.gemm_start, kTime, "Start of each kernel.");
  fields.required("tile_prologue", rates.tile_prologue, Cited{Whole{0, 100'000}},
                  "Start and end of a tile, as elements of K.");
  fields.required("partial_wave", rates.partial_wave, Cited{Number{0.0, 1.0}},
                  "Share of what idles in the last wave of tiles that shows.");
  fields.required("aligned", rates.aligned, Cited{Whole{1, 1024}},
                  "Bytes of which rows of N and of K elements are to be a multiple.");
  fields.required("misaligned", rates.misaligned, kShareOfPeak, "Factor where they are not.");
  fields.required("grouped_gemm", rates.grouped_gemm, kShareOfPeak,
                  "Factor for products of experts.");
  fields.required("memory", rates.memory, kShareOfPeak, "Share of the memory bandwidth.");
  fields.required("host_layer", rates.host_layer, kTime, "Launch time of a layer forward.");
  fields.required("host_collective", rates.host_collective, kTime, "Launch time of a collective.");
  fields.required("overlapped_tensor", rates.overlapped_tensor, kOverlapped,
                  "Share of overlapped tensor traffic that shows all the same.");
  fields.required("overlapped_data", rates.overlapped_data, kOverlapped,
                  "Share of overlapped sums of gradients that shows all the same.");
  fields.optional("gemm_fp8", rates.gemm_fp8, kShareOfPeak, "Share of the peak in FP8.");
  fields.where(rates.gemm_fp8.has_value(), [&] {
    fields.required("fp8_cast", rates.fp8_cast, Cited{Number{0.0, kMaxFactor}},
                    "Factor on the bytes of casts, with `gemm_fp8`.");
  });
  fields.optional("gemm_mxfp8", rates.gemm_mxfp8, kShareOfPeak,
                  "Share of the FP8 peak in MXFP8, with `gemm_fp8`.");
  fields.optional("gemm_nvfp4", rates.gemm_nvfp4, kShareOfPeak,
                  "Share of the FP4 peak, or of four times the 16-bit peak.");
  fields.optional("multiprocessors", rates.multiprocessors, Cited{Whole{1, 100'000}},
                  "Multiprocessors of a GPU that does not say.");
  fields.optional("measured_on", rates.measured_on, List{Whole{10, 999}},
                  "Parts that were measured, by compute capability, 90 for 9.0: all.");
  fields.required("attention", rates.attention, Named{Group{attention_rate_fields}},
                  "Kernels of attention, each with shares of the dense 16-bit peak.");
  fields.required("memory_bound", rates.memory_bound, Named{Cited{kFactor}},
                  "Kinds of fusion, each with a factor on the bytes.");
}

// "cudnn, flash-2".
template <typename Values>
std::string names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) {
    names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

double peak_of(const GpuModel& gpu, const std::string& type) {
  const auto found = gpu.peak.find(type);
  if (found == gpu.peak.end()) {
    throw ConfigError(
        fmt::format("precision {}: expected a GPU with a peak for it, found {}, which has {}", type,
                    gpu.title, names_of(gpu.peak)));
  }
  return found->second.value.flops_per_second();
}

void set_attention(const GpuModel& gpu, const GenerationRates& generation,
                   const SoftwareProfile& software, double peak, ComputeRates& rates) {
  rates.has_fused_attention = software.attention != "unfused";
  if (!rates.has_fused_attention) {
    return;
  }
  const auto kernel = generation.attention.find(software.attention);
  if (kernel == generation.attention.end()) {
    throw ConfigError(fmt::format(
        "software {}: expected an attention kernel with rates on {} (unfused, {}), found {}",
        software.name, gpu.architecture, names_of(generation.attention), software.attention));
  }
  rates.attention_forward = kernel->second.forward * peak;
  rates.attention_backward = kernel->second.backward * peak;
  rates.attention_rows = kernel->second.rows;
}

// Linear layers in fewer than 16 bits.
void set_linears(const GpuModel& gpu, const GenerationRates& generation, Precision precision,
                 double sustained, ComputeRates& rates) {
  const PrecisionRow& row = row_of(precision);
  if (row.linear_share == nullptr) {
    return;
  }
  std::optional<double> share = generation.*row.linear_share;
  if (!share && precision == Precision::Mxfp8) {
    share = generation.gemm_fp8;  // Where scales are applied beside the products, as on Hopper.
  }
  if (!share) {
    throw ConfigError(
        fmt::format("precision {}: expected GPUs that have it, found {}", row.name, gpu.title));
  }
  const std::string peak(row.linear_peak);
  rates.peak = row.linear_factor > 0.0 && !gpu.peak.contains(peak) ? row.linear_factor * rates.peak
                                                                   : peak_of(gpu, peak);
  rates.linear_rate = *share * rates.peak * sustained;
  rates.linear_bytes = 1;
  rates.fp8_cast = row.cast == nullptr ? 0.0 : *(generation.*row.cast);
}

// The geometric mean over generations of what `rate_of` points to; nothing where none has it.
template <typename RateOf>
std::optional<double> mean_of(const std::map<std::string, GenerationRates>& generations,
                              RateOf rate_of) {
  double sum = 0.0;
  int count = 0;
  for (const auto& [name, generation] : generations) {
    if (const double* const rate = rate_of(generation)) {
      sum += std::log(std::max(*rate, kMinShare));
      ++count;
    }
  }
  return count == 0 ? std::nullopt : std::optional(std::exp(sum / count));
}

// Times of launches and prologues, which hardly differ: the middle one of each.
void take_middle_launches(const std::map<std::string, GenerationRates>& generations,
                          KernelRates& middle) {
  const auto take = [&](auto KernelRates::*value) {
    std::vector<std::remove_cvref_t<decltype(middle.*value)>> values;
    for (const auto& [name, generation] : generations) {
      values.push_back(generation.*value);
    }
    std::ranges::sort(values);
    middle.*value = values[values.size() / 2];
  };
  take(&KernelRates::gemm_start);
  take(&KernelRates::host_layer);
  take(&KernelRates::host_collective);
  take(&KernelRates::tile_prologue);
}

}  // namespace

void rate_fields(Fields& fields, GpuRates& rates) {
  fields.cite_sources();
  fields.required("generations", rates.generations, Named{Group{generation_fields}},
                  "Architectures of GPUs.");
  fields.required("devices", rates.devices, Named{Cited{kFactor}},
                  "GPUs, each with a factor on its rates.");
  fields.optional("devices_16_bit", rates.devices_16_bit, Named{Cited{kFactor}},
                  "GPUs, each with a further factor on products of 16 bits.");
}

bool GpuRates::are_measured(const GpuModel& gpu) const {
  const auto own = generations.find(gpu.architecture);
  if (own == generations.end()) {
    return false;
  }
  const std::vector<int>& parts = own->second.measured_on;
  return parts.empty() || (gpu.compute_capability &&
                           std::ranges::find(parts, gpu.compute_capability->value) != parts.end());
}

std::vector<std::string> GpuRates::taken_from(const GpuModel& gpu) const {
  if (generations.contains(gpu.architecture)) {
    return {gpu.architecture};
  }
  std::vector<std::string> names;
  for (const auto& [name, generation] : generations) {
    names.push_back(name);
  }
  return names;
}

GpuRates GpuRates::without(const GpuModel& gpu) const {
  GpuRates others = *this;
  others.generations.erase(gpu.architecture);
  others.devices.erase(gpu.name);
  others.devices_16_bit.erase(gpu.name);
  return others;
}

GenerationRates GpuRates::mean() const {
  CHECK(!generations.empty(), "a mean is of some generations");
  using Rates = GenerationRates;
  Rates mean = generations.begin()->second;
  for (double Rates::*const rate : std::initializer_list<double Rates::*>{
           &Rates::gemm, &Rates::memory, &Rates::partial_wave, &Rates::misaligned,
           &Rates::grouped_gemm, &Rates::overlapped_tensor, &Rates::overlapped_data}) {
    mean.*rate = *mean_of(generations, [&](const Rates& one) { return &(one.*rate); });
  }
  for (std::optional<double> Rates::*const rate :
       {&Rates::gemm_fp8, &Rates::gemm_mxfp8, &Rates::gemm_nvfp4, &Rates::fp8_cast}) {
    mean.*rate = mean_of(generations, [&](const Rates& one) {
      return (one.*rate).has_value() ? &*(one.*rate) : nullptr;
    });
  }
  for (const auto& [name, one] : generations) {
    mean.attention.insert(one.attention.begin(), one.attention.end());
    mean.memory_bound.insert(one.memory_bound.begin(), one.memory_bound.end());
    mean.multiprocessors = mean.multiprocessors ? mean.multiprocessors : one.multiprocessors;
  }
  for (auto& [kernel, shares] : mean.attention) {
    for (double AttentionRates::*const share :
         {&AttentionRates::forward, &AttentionRates::backward}) {
      shares.*share = *mean_of(generations, [&, &name = kernel](const Rates& one) {
        const auto found = one.attention.find(name);
        return found == one.attention.end() ? nullptr : &(found->second.*share);
      });
    }
  }
  for (auto& [fusion, factor] : mean.memory_bound) {
    factor = *mean_of(generations, [&name = fusion](const Rates& one) {
      const auto found = one.memory_bound.find(name);
      return found == one.memory_bound.end() ? nullptr : &found->second;
    });
  }
  take_middle_launches(generations, mean);
  return mean;
}

GpuRates GpuRates::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  GpuRates rates;
  read_fields(document.root(), rates, rate_fields);
  document.finish();
  return rates;
}

ComputeRates compute_rates(const GpuModel& gpu, const GpuRates& all,
                           const SoftwareProfile& software, Precision precision) {
  const GenerationRates generation = all.generations.contains(gpu.architecture)
                                         ? all.generations.at(gpu.architecture)
                                         : all.mean();
  const auto device = all.devices.find(gpu.base.empty() ? gpu.name : gpu.base);
  const double sustained = device == all.devices.end() ? 1.0 : device->second;
  const auto wide = all.devices_16_bit.find(gpu.base.empty() ? gpu.name : gpu.base);
  const double peak = peak_of(gpu, std::string(row_of(precision).peak)) * sustained;
  const std::optional<int> multiprocessors = gpu.multiprocessors
                                                 ? std::optional<int>(gpu.multiprocessors->value)
                                                 : generation.multiprocessors;
  if (!multiprocessors) {
    throw ConfigError(
        fmt::format("step: expected a GPU whose multiprocessors are known, found {}", gpu.title));
  }
  const auto memory_bound = generation.memory_bound.find(software.fusion);
  if (memory_bound == generation.memory_bound.end()) {
    throw ConfigError(fmt::format("software {}: expected a fusion with rates on {} ({}), found {}",
                                  software.name, gpu.architecture,
                                  names_of(generation.memory_bound), software.fusion));
  }
  const auto of_software = [&](SimTime host) {
    return SimTime(
        static_cast<std::int64_t>(static_cast<double>(host.picoseconds()) * software.host));
  };
  ComputeRates rates;
  static_cast<KernelRates&>(rates) = generation;
  rates.host_layer = of_software(generation.host_layer);
  rates.host_collective = of_software(generation.host_collective);
  rates.gemm_rate =
      generation.gemm * peak * (wide == all.devices_16_bit.end() ? 1.0 : wide->second);
  rates.linear_rate = rates.gemm_rate;
  rates.peak = peak / sustained;
  rates.multiprocessors = *multiprocessors;
  rates.memory_rate =
      generation.memory * static_cast<double>(gpu.memory_bandwidth.value.bits_per_second()) / 8.0;
  rates.memory_bound = memory_bound->second;
  rates.fuses_operators = software.fusion != "eager" && software.fusion != "kernels";
  rates.element_bytes = row_of(precision).element_bytes;
  rates.linear_bytes = rates.element_bytes;
  rates.gathers_keys = software.gathers_keys;
  rates.joins_experts = software.joins_experts;
  rates.has_norm_kernel = software.has_norm_kernel;
  rates.stream_bytes = software.stream_bytes;
  rates.accumulate_bytes = software.accumulate_bytes;
  rates.scatter_bytes = software.scatter_bytes;
  rates.gather_bytes = software.gather_bytes;
  set_linears(gpu, generation, precision, sustained, rates);
  if (rates.element_bytes > 2 && software.attention != "unfused") {
    throw ConfigError(fmt::format(
        "precision {}: expected software with unfused attention, as fused kernels work in 16 bits, "
        "found {} ({})",
        to_string(precision), software.name, software.attention));
  }
  set_attention(gpu, generation, software, peak, rates);
  return rates;
}

}  // namespace trainyard
