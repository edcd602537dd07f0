// SPDX-License-Identifier: Apache-2.0
// The table of the precisions that the linear layers of a job can have, one row each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace trainyard {

struct GenerationRates;
class Fields;

// Precision of the linear layers; everything else runs in 16 bits. With the last two nothing does:
// TF32 rounds what tensor cores read and keeps 32 bits, FP32 does without tensor cores. The order
// is that of the rows.
enum class Precision : std::uint8_t { Bf16, Fp16, Fp8, Mxfp8, Nvfp4, Tf32, Fp32 };
inline constexpr std::size_t kPrecisionCount = 7;

// Those in which one type serves all operators: of models other than transformers.
inline constexpr std::array kPlainPrecisions{Precision::Fp16, Precision::Bf16, Precision::Tf32,
                                             Precision::Fp32};

struct PrecisionRow {
  std::string_view name;  // As workload files, measured rows and reports have it.
  int element_bytes = 2;  // ParallelPlan::element_bytes: of activations and of weights in use.
  std::string_view peak;  // Type of the catalogue whose peak products have.
  // Linear layers in fewer bits have a share of another peak, and casts beside them.
  std::optional<double> GenerationRates::*linear_share = nullptr;
  std::string_view linear_peak = {};
  // GPUs without that peak have so many times the peak of `peak`; 0: there is none.
  double linear_factor = 0.0;
  std::optional<double> GenerationRates::*cast = nullptr;  // Includes the overhead of scales.
  std::string_view harness = {};  // The measurement of `trainyard calibrate` that fits its rate.
};

[[nodiscard]] const PrecisionRow& row_of(Precision precision);
[[nodiscard]] std::string_view to_string(Precision precision);
// Returns the names of all rows, in their order.
[[nodiscard]] std::array<std::string_view, kPrecisionCount> precision_names();
// Adds the row `precision`: one of kPlainPrecisions, FP16 where it is missing.
void plain_precision_field(Fields& fields, Precision& precision, std::string_view text);

}  // namespace trainyard
