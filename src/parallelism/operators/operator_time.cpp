// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/operator_time.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "parallelism/model/adapters.h"
#include "parallelism/operators/softmax_kernel.h"

namespace trainyard {
namespace {

// Rows and columns of a tile, and the share of the rate that a multiprocessor reaches with it. The
// smaller the tile, the more operands it reads for each operation. Estimates; see
// docs/models/step.md.
struct Tile {
  std::int64_t rows;
  std::int64_t columns;
  double share;
};
constexpr std::array kTiles{Tile{256, 128, 1.0}, Tile{128, 128, 0.86}, Tile{128, 64, 0.69},
                            Tile{64, 64, 0.52}};

// Kernels copy 4 bytes or more at once into shared memory beside their products (cp.async, CUDA's
// PTX manual), so that rows of N or K elements of odd sizes pass registers. They are slower by a
// further factor: 0.56 and 0.50 of bf16 and fp16 on H200 (validation/harness, products of
// 4096 x 4098 x 4097 and of 4096 x 4104 x 4090).
constexpr std::int64_t kCopiedBytes = 4;
constexpr double kOddRows = 0.53;
constexpr std::int64_t kHeadAlignment = 8;  // Alignment of the size of a head.
// Size of an element, in bytes of operators that are counted here and by those who call
// memory_bound().
constexpr double kCountedBytes = 2.0;

// Work of a fused kernel backward over forward: five products instead of two. Dao, arXiv
// 2307.08691.
constexpr double kBackwardWork = 2.5;
// Rates by length and number of heads: FlashAttention-2 on A100 (arXiv 2307.08691, figures 4 to 6;
// configs/system/a100_pcie.json of MooreThreads/SimuMax), cuDNN and FlashAttention-4 on B200
// (b200_bf16_ceperm.json there; Dao-AILab/flash-attention pull request 2605). Backward of heads
// with 192 elements of queries and 128 of values: 0.77 to 0.80 of the rate, in both files.
constexpr FusedKernel kForward{.start = 128.0, .tail = 1.0};
constexpr FusedKernel kBackward{.start = 256.0, .tail = 0.4, .wide = 1.25};
constexpr std::int64_t kBackwardRows = 128;  // Keys of a block backward.
// Below, a fused kernel has too little work for each element that it reads; an estimate.
constexpr double kFullHead = 128.0;
constexpr double kHeadExponent = 0.3;

// Where one kernel has the tiles of all experts, products and memory keep each other waiting the
// more, the less one of the two is behind: the norm of this order of both times, over 192 products
// of PyTorch on H100 (validation/harness/h100-pytorch-kernels.json).
constexpr double kSharpness = 4.0;

// Bytes for each score that are written and read where scores are kept: softmax, mask and dropout.
constexpr double kScoreBytesForward = 9.0;
constexpr double kScoreBytesBackward = 12.0;
// Where there is no kernel of softmax (forward_torch_softmax of NVIDIA/Megatron-LM v2.5,
// megatron/model/fused_softmax.py): cast to 32 bits (6), scale (8), mask (9), softmax (8) and cast
// back (6), instead of 4; backward 6, 12, 9, 8 and 6 instead of 6.
constexpr double kEagerScoreBytesForward = kScoreBytesForward + 33.0;
constexpr double kEagerScoreBytesBackward = kScoreBytesBackward + 35.0;

// In 32 bits there is no such kernel either, and nothing is cast: scale (8), mask (9), softmax (8)
// and dropout (9); backward 9, 12, 9 and 8. Halves, as elements are counted in 16 bits.
constexpr double kWideScoreBytesForward = 34.0 / 2.0;
constexpr double kWideScoreBytesBackward = 38.0 / 2.0;

struct ScoreBytes {
  double fused;
  double eager;
  double wide;
};
constexpr ScoreBytes kForwardScores{kScoreBytesForward, kEagerScoreBytesForward,
                                    kWideScoreBytesForward};
constexpr ScoreBytes kBackwardScores{kScoreBytesBackward, kEagerScoreBytesBackward,
                                     kWideScoreBytesBackward};

double score_bytes(const ComputeRates& rates, const AttentionShape& shape,
                   const ScoreBytes& bytes) {
  if (has_softmax_kernel(shape.sequences * shape.heads, rates.element_bytes)) {
    return bytes.fused;
  }
  return rates.element_bytes == 2 ? bytes.eager : bytes.wide;
}

bool is_empty(const Gemm& gemm) {
  return gemm.m == 0 || gemm.n == 0 || gemm.k == 0 || gemm.count == 0;
}

SimTime seconds_up(double value) {
  return SimTime(static_cast<std::int64_t>(std::ceil(value * 1e12)));
}

}  // namespace

double OperatorTimes::tile_seconds(const Gemm& gemm, double rate) const {
  const auto multiprocessors = static_cast<double>(rates_.multiprocessors);
  // A tile's start and end take as long in each precision.
  const double length = static_cast<double>(gemm.k) + static_cast<double>(rates_.tile_prologue) *
                                                          std::max(1.0, rate / rates_.gemm_rate);
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : kTiles) {
    const std::int64_t tiles =
        gemm.count * ceil_divide(gemm.m, tile.rows) * ceil_divide(gemm.n, tile.columns);
    const double filled = std::max(1.0, static_cast<double>(tiles) / multiprocessors);
    const double idle = static_cast<double>(ceil_divide(tiles, rates_.multiprocessors)) - filled;
    const double waves = filled + rates_.partial_wave * idle;
    const double operations = 2.0 * static_cast<double>(tile.rows * tile.columns) * length;
    const double share = rates_.has_tensor_cores ? tile.share : 1.0;
    best = std::min(best, waves * operations * multiprocessors / (rate * share));
  }
  return best;
}

double OperatorTimes::operand_seconds(const Gemm& gemm) const {
  const double all = static_cast<double>(gemm.m) * static_cast<double>(gemm.k);
  const double first =
      gemm.first_elements == 0 ? all : std::min(all, static_cast<double>(gemm.first_elements));
  const double elements = first + static_cast<double>(gemm.k) * static_cast<double>(gemm.n) +
                          static_cast<double>(gemm.m) * static_cast<double>(gemm.n);
  return rates_.element_bytes * elements * static_cast<double>(gemm.count) / rates_.memory_rate;
}

SimTime OperatorTimes::time_of(const Gemm& gemm, double rate, double beside) const {
  if (is_empty(gemm)) {
    return {};
  }
  return seconds_up(std::max(tile_seconds(gemm, rate) + beside / rates_.memory_rate,
                             operand_seconds(gemm))) +
         rates_.gemm_start;
}

SimTime OperatorTimes::grouped(const Gemm& gemm, double weights) const {
  const double rate =
      rates_.linear_rate * rates_.grouped_gemm * alignment(gemm, rates_.linear_bytes);
  if (!rates_.joins_experts || is_empty(gemm)) {
    return time_of(gemm, rate, rates_.element_bytes * weights);
  }
  return seconds_up(std::pow(std::pow(tile_seconds(gemm, rate), kSharpness) +
                                 std::pow(operand_seconds(gemm), kSharpness),
                             1.0 / kSharpness)) +
         rates_.gemm_start;
}

SimTime OperatorTimes::linear_over_long_k(const Gemm& gemm) const {
  constexpr std::int64_t kShortestPart = 512;  // Length along K; estimate.
  constexpr double kSumBytes = 2.0 * 4.0;
  SimTime best = linear(gemm);
  for (std::int64_t parts = 2; gemm.k / parts >= kShortestPart; parts *= 2) {
    const Gemm part{.m = gemm.m,
                    .n = gemm.n,
                    .k = ceil_divide(gemm.k, parts),
                    .count = gemm.count * parts,
                    .first_elements = ceil_divide(gemm.first_elements, parts)};
    const double sums = kSumBytes * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
                        static_cast<double>(part.count);
    best = std::min(best, linear(part) + memory(sums));
  }
  return best;
}

double OperatorTimes::alignment(const Gemm& gemm, int element_bytes) const {
  const std::int64_t common = std::gcd(gemm.n, gemm.k) * element_bytes;
  if (common % rates_.aligned == 0) {
    return 1.0;
  }
  // Convolutions fill up their channels.
  const bool is_copied = common % kCopiedBytes == 0 || gemm.first_elements != 0;
  return rates_.misaligned * (is_copied ? 1.0 : kOddRows);
}

double OperatorTimes::fused_flops(const AttentionShape& shape, const FusedKernel& kernel,
                                  std::int64_t block_rows) const {
  const double queries =
      static_cast<double>(shape.sequences * shape.heads) * static_cast<double>(shape.queries);
  const double keys = static_cast<double>(shape.keys) * shape.window_share;
  const auto rows = static_cast<double>(block_rows);
  const double met = (shape.is_causal ? (keys + rows) / 2.0 : keys) + kernel.start;
  const double longest = static_cast<double>(rates_.multiprocessors) * rows * (keys + kernel.start);
  const double of_score = 2.0 * static_cast<double>(shape.query_size + shape.value_size);
  return of_score * (queries * met + kernel.tail * longest) *
         (static_cast<double>(shape.query_size) > kFullHead ? kernel.wide : 1.0);
}

double OperatorTimes::fused_share(const AttentionShape& shape) const {
  return std::pow(std::min(1.0, static_cast<double>(shape.query_size) / kFullHead), kHeadExponent);
}

SimTime OperatorTimes::score_traffic(const AttentionShape& shape, double bytes) const {
  return memory(in_elements(bytes) * static_cast<double>(shape.sequences * shape.heads) *
                static_cast<double>(shape.queries) * static_cast<double>(shape.keys));
}

SimTime OperatorTimes::attention_forward(const AttentionShape& shape) const {
  if (rates_.has_fused_attention) {
    return seconds_up(fused_flops(shape, kForward, rates_.attention_rows) /
                      (rates_.attention_forward * fused_share(shape))) +
           rates_.gemm_start;
  }
  const std::int64_t count = shape.sequences * shape.heads;
  const double rate =
      rates_.gemm_rate * (shape.query_size % kHeadAlignment == 0 ? 1.0 : rates_.misaligned);
  return time_of({.m = shape.queries, .n = shape.keys, .k = shape.query_size, .count = count},
                 rate) +
         time_of({.m = shape.queries, .n = shape.value_size, .k = shape.keys, .count = count},
                 rate) +
         score_traffic(shape, score_bytes(rates_, shape, kForwardScores));
}

SimTime OperatorTimes::attention_backward(const AttentionShape& shape) const {
  if (rates_.has_fused_attention) {
    return seconds_up(kBackwardWork * fused_flops(shape, kBackward, kBackwardRows) /
                      (rates_.attention_backward * fused_share(shape))) +
           rates_.gemm_start;
  }
  // Two gradients for each product.
  const SimTime forward =
      attention_forward(shape) - score_traffic(shape, score_bytes(rates_, shape, kForwardScores));
  return forward * 2 + score_traffic(shape, score_bytes(rates_, shape, kBackwardScores));
}

double OperatorTimes::in_elements(double bytes) const {
  return bytes * rates_.element_bytes / kCountedBytes;
}

SimTime OperatorTimes::dequantised(double weights) const {
  return memory(weights * (kNf4BytesOfWeight + rates_.element_bytes));
}

SimTime OperatorTimes::memory(double bytes) const {
  return seconds_up(bytes / rates_.memory_rate);
}

SimTime OperatorTimes::memory_bound(double bytes) const {
  return memory(in_elements(bytes) * rates_.memory_bound);
}

SimTime OperatorTimes::casts(double bytes) const {
  return memory(bytes * rates_.fp8_cast);
}

}  // namespace trainyard
