// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/precision.h"

#include <algorithm>

#include "parallelism/workload/gpu_rates.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

constexpr std::array<PrecisionRow, kPrecisionCount> kPrecisions{
    {{.name = "bf16", .peak = "bf16", .harness = "gpu.gemm.bf16"},
     {.name = "fp16", .peak = "fp16", .harness = "gpu.gemm.fp16"},
     {.name = "fp8",
      .peak = "bf16",
      .linear_share = &GenerationRates::gemm_fp8,
      .linear_peak = "fp8",
      .cast = &GenerationRates::fp8_cast,
      .harness = "gpu.gemm.fp8"},
     {.name = "mxfp8",
      .peak = "bf16",
      .linear_share = &GenerationRates::gemm_mxfp8,
      .linear_peak = "fp8",
      .cast = &GenerationRates::fp8_cast},
     {.name = "nvfp4",
      .peak = "bf16",
      .linear_share = &GenerationRates::gemm_nvfp4,
      .linear_peak = "fp4",
      .linear_factor = 4.0},
     {.name = "tf32", .element_bytes = 4, .peak = "tf32"},
     {.name = "fp32", .element_bytes = 4, .peak = "fp32"}}};

}  // namespace

const PrecisionRow& row_of(Precision precision) {
  return kPrecisions.at(static_cast<std::size_t>(precision));
}

std::string_view to_string(Precision precision) {
  return row_of(precision).name;
}

std::array<std::string_view, kPrecisionCount> precision_names() {
  return row_names(kPrecisions);
}

void plain_precision_field(Fields& fields, Precision& precision, std::string_view text) {
  std::array<std::string_view, kPlainPrecisions.size()> names;
  std::ranges::transform(kPlainPrecisions, names.begin(),
                         [](Precision each) { return to_string(each); });
  std::size_t index = 0;
  fields.optional("precision", index, Choice{names}, text);
  precision = kPlainPrecisions.at(index);
}

}  // namespace trainyard
