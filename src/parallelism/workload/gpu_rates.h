// SPDX-License-Identifier: Apache-2.0
// States how fast kernels of a training step run on each generation of GPUs, from
// configs/hardware/gpu-rates.yaml, and on one GPU with one software. docs/models/step.md has the
// equations.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "parallelism/workload/precision.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// Shares of the dense 16-bit peak, counting what the causal mask leaves.
struct AttentionRates {
  double forward = 0.0;
  double backward = 0.0;
  std::int64_t rows = 128;  // Queries of one block of the kernel forward.
};

// Rates that each GPU of a generation has as the generation says.
struct KernelRates {
  SimTime gemm_start;              // Start of each kernel.
  std::int64_t tile_prologue = 0;  // Start and end of a tile, as elements of K.
  double partial_wave = 1.0;       // Share of a wave that its idle multiprocessors cost.
  std::int64_t aligned = 16;       // Bytes of which rows of operands are to be a multiple.
  double misaligned = 1.0;         // Factor where they are not.
  double grouped_gemm = 1.0;       // Factor for the products of experts in one kernel.
  SimTime host_layer;              // For the host to launch a layer forward.
  SimTime host_collective;         // For the host to call a collective.
  double overlapped_tensor = 1.0;  // Share of overlapped tensor traffic that shows all the same.
  double overlapped_data = 1.0;    // The same of gradients and weights.
};

// The rates of one generation, which is an architecture of the catalogue.
struct GenerationRates : KernelRates {
  double gemm = 0.0;                      // Share of the 16-bit peak of large products.
  std::optional<double> gemm_fp8 = {};    // Share of the FP8 peak.
  std::optional<double> gemm_mxfp8 = {};  // The same with a scale for each 32 elements.
  // Share of the FP4 peak, or of four times the 16-bit peak; casts included.
  std::optional<double> gemm_nvfp4 = {};
  std::map<std::string, AttentionRates> attention;  // Rates by kernel.
  double memory = 0.0;                              // Share of the memory bandwidth.
  std::map<std::string, double> memory_bound;       // Factor on the bytes, by fusion.
  std::optional<double> fp8_cast = {};              // Factor on the bytes of casts.
  // Number for parts for which the catalogue has none.
  std::optional<int> multiprocessors = {};
  // Compute capabilities of the parts that were measured, 90 for 9.0; empty: all of the generation.
  std::vector<int> measured_on = {};
};

struct GpuRates {
  std::map<std::string, GenerationRates> generations;
  std::map<std::string, double> devices;  // Factor on rates of computation, by GPU.
  // A further factor on products of 16 bits, of parts whose clock falls less with them.
  std::map<std::string, double> devices_16_bit;

  // Whether kernels of such a GPU were measured.
  [[nodiscard]] bool are_measured(const GpuModel& gpu) const;
  // The generations whose rates it takes: its own, or all where it has none.
  [[nodiscard]] std::vector<std::string> taken_from(const GpuModel& gpu) const;
  // These without what was measured of the generation and of the part.
  [[nodiscard]] GpuRates without(const GpuModel& gpu) const;
  // Returns the rates of a generation of which no kernel was measured: of each share and factor the
  // geometric mean of the generations that have it, of each time the middle one. There must be a
  // generation.
  [[nodiscard]] GenerationRates mean() const;

  // Strict; throws ConfigError with the place of the mistake.
  [[nodiscard]] static GpuRates load(const std::filesystem::path& file);
};

void rate_fields(Fields& fields, GpuRates& rates);

// Everything that operators need of one GPU with one software in one precision; times of the host
// are those of the software.
struct ComputeRates : KernelRates {
  double gemm_rate = 0.0;    // FLOP/s of 16-bit products.
  double linear_rate = 0.0;  // FLOP/s of the linear layers, in the precision of the workload.
  double peak = 0.0;         // Dense, of that precision; FLOP/s.
  std::int64_t multiprocessors = 1;
  bool has_fused_attention = true;
  // Products run on tensor cores, which small tiles do not fill; set for convolutions alone.
  bool has_tensor_cores = true;
  double attention_forward = 0.0;   // FLOP/s.
  double attention_backward = 0.0;  // FLOP/s.
  std::int64_t attention_rows = 128;
  double memory_rate = 0.0;  // B/s.
  double memory_bound = 1.0;
  bool fuses_operators = true;  // Elementwise operators that follow one another are one kernel.
  double fp8_cast = 0.0;        // 0: none, as nothing is cast.
  // Bytes of an element of activations and weights; ParallelPlan has it too.
  int element_bytes = 2;
  int linear_bytes = 2;  // The same of what linear layers multiply; sizes of 4 bits count as one.
  // SoftwareProfile.
  bool gathers_keys = false;
  bool joins_experts = false;
  bool has_norm_kernel = false;
  int stream_bytes = 2;
  double accumulate_bytes = 0.0;
  double scatter_bytes = 0.0;
  double gather_bytes = 0.0;
};

// Throws ConfigError with one line where the GPU has no peak of the precision, or no generation has
// the kernels of the software.
[[nodiscard]] ComputeRates compute_rates(const GpuModel& gpu, const GpuRates& rates,
                                         const SoftwareProfile& software, Precision precision);

}  // namespace trainyard
