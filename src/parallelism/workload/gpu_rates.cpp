// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/gpu_rates.h"

#include <spdlog/fmt/fmt.h>

#include <string_view>
#include <vector>

#include "hw/parts/sourced_reader.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr double kLeastShare = 0.001;
constexpr double kMostFactor = 100.0;

double share(const SourcedReader& reader, const ConfigNode& node, std::string_view key) {
  return reader.value(node, key).as_number(kLeastShare, 1.0);
}

GenerationRates read_generation(const SourcedReader& reader, const ConfigNode& node) {
  GenerationRates rates{
      .gemm = share(reader, node, "gemm"),
      .gemm_start = reader.value(node, "gemm_start").as_time(),
      .tile_prologue = reader.value(node, "tile_prologue").as_integer(0, 100'000),
      .misaligned = share(reader, node, "misaligned"),
      .grouped_gemm = share(reader, node, "grouped_gemm"),
      .attention = {},
      .memory = share(reader, node, "memory"),
      .memory_bound = {},
      .host_layer = reader.value(node, "host_layer").as_time(),
      .host_collective = reader.value(node, "host_collective").as_time(),
      .overlapped_tensor = reader.value(node, "overlapped_tensor").as_number(0.0, 1.0),
      .overlapped_data = reader.value(node, "overlapped_data").as_number(0.0, 1.0)};
  if (node.optional("gemm_fp8")) {
    rates.gemm_fp8 = share(reader, node, "gemm_fp8");
    rates.fp8_cast = reader.value(node, "fp8_cast").as_number(0.0, kMostFactor);
  }
  if (node.optional("gemm_nvfp4")) {
    rates.gemm_nvfp4 = share(reader, node, "gemm_nvfp4");
  }
  if (node.optional("multiprocessors")) {
    rates.multiprocessors =
        static_cast<int>(reader.value(node, "multiprocessors").as_integer(1, 100'000));
  }
  for (const auto& [kernel, entry] : node.required("attention").entries()) {
    reader.check(entry);
    rates.attention.emplace(
        kernel, AttentionRates{.forward = entry.required("forward").as_number(kLeastShare, 1.0),
                               .backward = entry.required("backward").as_number(kLeastShare, 1.0)});
  }
  const ConfigNode memory_bound = node.required("memory_bound");
  for (const auto& [fusion, entry] : memory_bound.entries()) {
    rates.memory_bound.emplace(
        fusion, reader.value(memory_bound, fusion).as_number(kLeastShare, kMostFactor));
  }
  return rates;
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
        fmt::format("precision {}: expected a GPU with a peak for it, found {}", type, gpu.title));
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
}

// Linear layers in fewer than 16 bits.
void set_linears(const GpuModel& gpu, const GenerationRates& generation, Precision precision,
                 double sustained, ComputeRates& rates) {
  const PrecisionRow& row = row_of(precision);
  if (row.linear_share == nullptr) {
    return;
  }
  const std::optional<double> share = generation.*row.linear_share;
  if (!share) {
    throw ConfigError(
        fmt::format("precision {}: expected GPUs that have it, found {}", row.name, gpu.title));
  }
  rates.peak = row.linear_peak.empty() ? row.linear_factor * rates.peak
                                       : peak_of(gpu, std::string(row.linear_peak));
  rates.linear_rate = *share * rates.peak * sustained;
  rates.fp8_cast = row.cast == nullptr ? 0.0 : *(generation.*row.cast);
}

}  // namespace

GpuRates GpuRates::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  return read(document);
}

GpuRates GpuRates::read(ConfigDocument& document) {
  const ConfigNode root = document.root();
  const SourcedReader reader(root);
  GpuRates rates;
  for (const auto& [name, node] : root.required("generations").entries()) {
    rates.generations.emplace(name, read_generation(reader, node));
  }
  const ConfigNode devices = root.required("devices");
  for (const auto& [name, node] : devices.entries()) {
    rates.devices.emplace(name, reader.value(devices, name).as_number(kLeastShare, kMostFactor));
  }
  document.finish();
  return rates;
}

ComputeRates compute_rates(const GpuModel& gpu, const GpuRates& all,
                           const SoftwareProfile& software, Precision precision) {
  const auto found = all.generations.find(gpu.architecture);
  if (found == all.generations.end()) {
    throw ConfigError(fmt::format("step: expected GPUs of a generation with rates ({}), found {}",
                                  names_of(all.generations), gpu.title));
  }
  const GenerationRates& generation = found->second;
  const auto device = all.devices.find(gpu.name);
  const double sustained = device == all.devices.end() ? 1.0 : device->second;
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
  ComputeRates rates{
      .gemm_rate = generation.gemm * peak,
      .linear_rate = generation.gemm * peak,
      .peak = peak / sustained,
      .multiprocessors = *multiprocessors,
      .tile_prologue = generation.tile_prologue,
      .gemm_start = generation.gemm_start,
      .misaligned = generation.misaligned,
      .grouped_gemm = generation.grouped_gemm,
      .memory_rate = generation.memory *
                     static_cast<double>(gpu.memory_bandwidth.value.bits_per_second()) / 8.0,
      .memory_bound = memory_bound->second,
      .fuses_operators = software.fusion != "eager",
      .element_bytes = row_of(precision).element_bytes,
      .gathers_keys = software.gathers_keys,
      .accumulate_bytes = software.accumulate_bytes,
      .scatter_bytes = software.scatter_bytes,
      .gather_bytes = software.gather_bytes,
      .host_layer = of_software(generation.host_layer),
      .host_collective = of_software(generation.host_collective),
      .overlapped_tensor = generation.overlapped_tensor,
      .overlapped_data = generation.overlapped_data};
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
