// SPDX-License-Identifier: Apache-2.0
// Times of kernels of one GPU in a measurement set of the harness (docs/accuracy/harness.md), as
// rows that the model of operators (operator_time.h) predicts.
#pragma once

#include <string>
#include <vector>

#include "calibration/machine/harness_set.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/workload.h"
#include "sim/units.h"

namespace trainyard {

struct RateRow {
  enum class Kind { Product, AttentionForward, AttentionBackward, Memory };
  Kind kind = Kind::Product;
  std::string text;  // "m 8192, n 8192, k 8192".
  Gemm product = {};
  AttentionShape attention = {};
  double bytes = 0.0;  // Bytes that pass memory.
  SimTime measured;
};

// The rows of one measurement, such as gpu.gemm.fp8. Its rows rise in time.
struct RateTable {
  std::string id;
  Precision precision = Precision::Bf16;
  std::vector<RateRow> rows;
  // Rate after seconds of the same product over that of a burst, which ends before the power limit
  // is reached. The rows have it in them, as far as they were bursts.
  double warm = 1.0;
};

// Products in bf16, fp16 and fp8, attention, elementwise kernels, and copies, reads, writes and
// sums with the number of CTAs that is fastest.
[[nodiscard]] std::vector<RateTable> rate_tables(const HarnessSet& set);

// `rates` are of the precision of the row's table.
[[nodiscard]] SimTime predicted_time(const RateRow& row, const ComputeRates& rates);

}  // namespace trainyard
