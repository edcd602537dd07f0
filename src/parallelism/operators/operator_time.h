// SPDX-License-Identifier: Apache-2.0
// Computes how long one operator takes on one GPU, from its shape.
//
// A product of M x K by K x N is cut into tiles of the output, which the multiprocessors work off
// in waves: ceil(tiles / multiprocessors) waves of 2 m n (K + K0) operations at the rate of one
// multiprocessor. Of the tiles 256 x 128, 128 x 128, 128 x 64 and 64 x 64, at 1, 0.86, 0.69 and
// 0.52 of the rate, the fastest is taken; never faster than the operands pass memory; and each
// kernel has its start. docs/models/step.md has the rest.
#pragma once

#include <cstdint>

#include "parallelism/workload/gpu_rates.h"
#include "sim/units.h"

namespace trainyard {

// `count` products of M x K by K x N in one kernel.
struct Gemm {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  std::int64_t count = 1;
  // Elements in memory of M x K, which are fewer where windows of a convolution overlap; 0: M K.
  std::int64_t first_elements = 0;
};

// Attention of `sequences` with `heads` each on this rank, `queries` tokens of which attend to
// `keys` tokens.
struct AttentionShape {
  std::int64_t sequences = 1;
  std::int64_t heads = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t query_size = 1;  // Size of a head.
  std::int64_t value_size = 1;
  bool is_causal = true;
  // The share of the scores that a window leaves; fused kernels compute no others.
  double window_share = 1.0;
};

// A fused kernel of attention, beyond the products of its scores.
struct FusedKernel {
  double start = 0.0;  // Start and end of a block, as keys that each of its queries meets.
  double tail = 0.0;   // Longest blocks for which other multiprocessors are idle at the end.
  double wide = 1.0;   // Factor on the work of heads that are wider than 128.
};

class OperatorTimes {
 public:
  explicit OperatorTimes(const ComputeRates& rates) : rates_(rates) {}

  // Times a product at the precision of the linear layers, or in 16 bits.
  [[nodiscard]] SimTime linear(const Gemm& gemm) const {
    return time_of(gemm, rates_.linear_rate * alignment(gemm, rates_.linear_bytes));
  }
  [[nodiscard]] SimTime product(const Gemm& gemm) const {
    return time_of(gemm, rates_.gemm_rate * alignment(gemm, rates_.element_bytes));
  }
  // Times linear() with K cut into parts where the output alone has too few tiles for all
  // multiprocessors: for the gradient of a small matrix over many samples. Sums of parts, in 32
  // bits, are written and read once for each part.
  [[nodiscard]] SimTime linear_over_long_k(const Gemm& gemm) const;
  // Times linear() of experts with so many `weights` in all, which pass memory on top, or beside
  // the products where one kernel has all experts.
  [[nodiscard]] SimTime grouped(const Gemm& gemm, double weights) const;
  // Scores, softmax and sums over values.
  [[nodiscard]] SimTime attention_forward(const AttentionShape& shape) const;
  [[nodiscard]] SimTime attention_backward(const AttentionShape& shape) const;
  // Returns the time of operators that only read and write, with the factor of the software;
  // `bytes` if elements had 16 bits.
  [[nodiscard]] SimTime memory_bound(double bytes) const;
  [[nodiscard]] bool fuses_operators() const { return rates_.fuses_operators; }
  [[nodiscard]] bool gathers_keys() const { return rates_.gathers_keys; }
  [[nodiscard]] bool has_norm_kernel() const { return rates_.has_norm_kernel; }
  // The stream from layer to layer is wider than what products take.
  [[nodiscard]] bool has_wide_stream() const { return rates_.stream_bytes > rates_.element_bytes; }
  // Casts of one FP8 linear layer; none in 16 bits.
  [[nodiscard]] SimTime casts(double bytes) const;
  // Returns the time of a layer's weights in one backward pass: their gradients are added to those
  // of earlier micro-batches, or with ZeRO 3 laid out for their reduction.
  [[nodiscard]] SimTime weight_gradients(double weights, bool is_sharded) const {
    return memory(weights * (is_sharded ? rates_.scatter_bytes : rates_.accumulate_bytes));
  }
  // Returns the time of a layer's weights that ZeRO 3 has gathered: brought from the buffer to
  // their places.
  [[nodiscard]] SimTime gathered_weights(double weights) const {
    return memory(weights * rates_.gather_bytes);
  }
  // Returns the time in which weights of 4 bits are read, and written as products take them.
  [[nodiscard]] SimTime dequantised(double weights) const;
  // Returns the time at the rate of memory alone.
  [[nodiscard]] SimTime memory(double bytes) const;

 private:
  // Seconds of the tiles of a product, and of what it reads and writes.
  [[nodiscard]] double tile_seconds(const Gemm& gemm, double rate) const;
  [[nodiscard]] double operand_seconds(const Gemm& gemm) const;
  // `beside`: bytes that pass memory while no product is computed.
  [[nodiscard]] SimTime time_of(const Gemm& gemm, double rate, double beside = 0.0) const;
  // 1, or the share of the rate that is left where N or K is odd.
  [[nodiscard]] double alignment(const Gemm& gemm, int element_bytes) const;
  // Bytes that are counted with elements of 16 bits, with those that elements have.
  [[nodiscard]] double in_elements(double bytes) const;
  [[nodiscard]] double fused_flops(const AttentionShape& shape, const FusedKernel& kernel,
                                   std::int64_t block_rows) const;
  [[nodiscard]] double fused_share(const AttentionShape& shape) const;
  [[nodiscard]] SimTime score_traffic(const AttentionShape& shape, double bytes) const;

  ComputeRates rates_;
};

}  // namespace trainyard
