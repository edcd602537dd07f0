// SPDX-License-Identifier: Apache-2.0
// With round rates, times are the operations of the formulas; the numbers are computed by hand.
#include "support/catch.h"

#include "parallelism/operators/operator_time.h"
#include "parallelism/operators/softmax_kernel.h"

#include <algorithm>
#include <cmath>

#include "support/step_rates.h"

namespace trainyard {
namespace {

// One wave of the largest tile takes 2 x 256 x 128 operations for each element of K.
constexpr std::int64_t kTileOperations = 2 * 256 * 128;

SimTime waves(std::int64_t count, std::int64_t k) {
  return microseconds(count * kTileOperations * k);
}

}  // namespace

TEST_CASE("products take whole waves of tiles", "[operators]") {
  const OperatorTimes operators(unit_rates());
  REQUIRE(operators.product({.m = 1024, .n = 128, .k = 16}) == waves(1, 16));
  REQUIRE(operators.product({.m = 1024, .n = 256, .k = 16}) == waves(2, 16));
  // Four products of one tile each fill the four multiprocessors as one of four.
  REQUIRE(operators.product({.m = 256, .n = 128, .k = 16, .count = 4}) == waves(1, 16));
  REQUIRE(operators.product({.m = 0, .n = 128, .k = 16}) == SimTime());
}

TEST_CASE("few rows take a smaller tile", "[operators]") {
  const OperatorTimes operators(unit_rates());
  // Of 64 rows and columns, a tile of 64 x 64 at 0.52 of the rate is the fastest.
  const double expected = 2.0 * 64.0 * 64.0 * 16.0 / 0.52 / 1e6;
  REQUIRE(operators.product({.m = 64, .n = 64, .k = 16}).seconds() == Approx(expected));
}

TEST_CASE("tiles have a start and an end, kernels too, and odd shapes are slow", "[operators]") {
  ComputeRates rates = unit_rates();
  rates.tile_prologue = 80;
  rates.gemm_start = microseconds(4);
  rates.misaligned = 0.5;
  const OperatorTimes operators(rates);
  REQUIRE(operators.product({.m = 1024, .n = 128, .k = 16}) == waves(1, 96) + microseconds(4));
  REQUIRE(operators.product({.m = 1024, .n = 120, .k = 16}) == waves(1, 96) + microseconds(4));
  REQUIRE(operators.product({.m = 1024, .n = 122, .k = 16}) == waves(2, 96) + microseconds(4));
  REQUIRE(operators.product({.m = 1024, .n = 121, .k = 16}).seconds() ==
          Approx(waves(2, 96).seconds() / 0.53 + 4e-6));
  rates.aligned = 32;
  REQUIRE(OperatorTimes(rates).product({.m = 1024, .n = 120, .k = 16}) ==
          waves(2, 96) + microseconds(4));
}

TEST_CASE("a product is not faster than its operands pass memory", "[operators]") {
  ComputeRates rates = unit_rates();
  rates.gemm_rate = 1e30;
  rates.memory_rate = 2.0;
  const OperatorTimes operators(rates);
  REQUIRE(operators.product({.m = 2, .n = 16, .k = 16}) == seconds(2 * 16 + 16 * 16 + 2 * 16));
}

TEST_CASE("idle multiprocessors of the last wave cost a share of their time", "[operators]") {
  ComputeRates rates = unit_rates();
  rates.partial_wave = 0.25;
  const OperatorTimes operators(rates);
  // Five tiles on four multiprocessors: 1.25 waves of work, and a quarter of what is idle.
  REQUIRE(operators.product({.m = 1280, .n = 128, .k = 16}).seconds() ==
          Approx((1.25 + 0.25 * 0.75) * waves(1, 16).seconds()));
  REQUIRE(operators.product({.m = 1024, .n = 128, .k = 16}) == waves(1, 16));
}

TEST_CASE("weights of experts come from memory beside their products", "[operators]") {
  ComputeRates rates = unit_rates();
  rates.memory_rate = 1e6;
  const OperatorTimes operators(rates);
  const double weights = 4.0 * 16.0 * 128.0;
  REQUIRE(operators.grouped({.m = 256, .n = 128, .k = 16, .count = 4}, weights) ==
          waves(1, 16) + operators.memory(2.0 * weights));
  REQUIRE(operators.product({.m = 256, .n = 128, .k = 16, .count = 4}) == waves(1, 16));
}

TEST_CASE("one kernel of all experts hides their weights behind long products", "[operators]") {
  ComputeRates rates = unit_rates();
  rates.joins_experts = true;
  const auto seconds_of = [&](double memory_rate) {
    rates.memory_rate = memory_rate;
    const Gemm gemm{.m = 256, .n = 128, .k = 16, .count = 4};
    return OperatorTimes(rates).grouped(gemm, 4.0 * 16.0 * 128.0).seconds();
  };
  const double bytes = 2.0 * 4.0 * (256.0 * 16.0 + 16.0 * 128.0 + 256.0 * 128.0);
  const double products = waves(1, 16).seconds();
  REQUIRE(seconds_of(100.0 * bytes / products) == Approx(products));
  REQUIRE(seconds_of(bytes / products / 100.0) == Approx(100.0 * products));
  // Both as long as each other.
  REQUIRE(seconds_of(bytes / products) == Approx(std::pow(2.0, 0.25) * products));
  REQUIRE(OperatorTimes(rates).grouped({.m = 0, .n = 128, .k = 16}, 1.0) == SimTime());
}

// Products of the experts of Mixtral 8x7B by grouped_mm of PyTorch 2.11 on H100, in microseconds:
// validation/harness/h100-pytorch-kernels.json. At the rate of dense products alone, which is
// higher than in a step.
TEST_CASE("products of experts take the times that PyTorch takes", "[operators]") {
  ComputeRates rates = shipped_compute("H100-SXM", "pytorch-2.11");
  rates.linear_rate *= 0.74 / 0.688;
  const OperatorTimes operators(rates);
  struct Row {
    std::int64_t tokens;
    double forward;
    double weights;
  };
  for (const Row& row :
       {Row{16, 346.9, 349.1}, Row{128, 353.9, 417.6}, Row{256, 452.6, 653.7},
        Row{512, 760.8, 984.5}, Row{1024, 1520.8, 1729.2}, Row{4096, 5623.6, 6171.5}}) {
    INFO(row.tokens);
    const double weights = 8.0 * 14336.0 * 4096.0;
    const auto us = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
      return operators.grouped({.m = m, .n = n, .k = k, .count = 8}, weights).microseconds();
    };
    REQUIRE(us(row.tokens, 14336, 4096) == Approx(row.forward).epsilon(0.12));
    REQUIRE(us(14336, 4096, row.tokens) == Approx(row.weights).epsilon(0.12));
  }
}

namespace {

// Operations of all blocks of a causal kernel, one by one: each sees the keys before its last row.
struct Blocks {
  double all = 0.0;
  double longest = 0.0;
};

Blocks causal_blocks(std::int64_t heads, std::int64_t keys, std::int64_t rows, double start,
                     double of_score) {
  Blocks blocks;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t end = rows; end <= keys; end += rows) {
      const double work = static_cast<double>(rows) * (static_cast<double>(end) + start) * of_score;
      blocks.all += work;
      blocks.longest = std::max(blocks.longest, work);
    }
  }
  return blocks;
}

}  // namespace

TEST_CASE("fused attention takes its blocks and waits for the last ones", "[operators]") {
  const OperatorTimes operators(unit_rates());  // Four multiprocessors.
  AttentionShape shape{.sequences = 2,
                       .heads = 3,
                       .queries = 4096,
                       .keys = 4096,
                       .query_size = 128,
                       .value_size = 128};
  const Blocks forward = causal_blocks(6, 4096, 128, 128.0, 512.0);
  const Blocks backward = causal_blocks(6, 4096, 128, 256.0, 512.0);
  REQUIRE(operators.attention_forward(shape).seconds() ==
          Approx((forward.all + 4.0 * forward.longest) / 1e9));
  REQUIRE(operators.attention_backward(shape).seconds() ==
          Approx(2.5 * (backward.all + 0.4 * 4.0 * backward.longest) / 1e9));
  // Heads of 192 are slow backward.
  AttentionShape wide = shape;
  wide.query_size = 192;
  REQUIRE(operators.attention_backward(wide).seconds() ==
          Approx(1.25 * 320.0 / 256.0 * operators.attention_backward(shape).seconds()));
  // Without a mask each query sees all keys.
  shape.is_causal = false;
  const double row = 512.0 * (4096.0 + 128.0);
  REQUIRE(operators.attention_forward(shape).seconds() ==
          Approx(row * (6.0 * 4096.0 + 4.0 * 128.0) / 1e9));
  // A window leaves a quarter of the keys.
  shape.window_share = 0.25;
  REQUIRE(operators.attention_forward(shape).seconds() ==
          Approx(512.0 * (1024.0 + 128.0) * (6.0 * 4096.0 + 4.0 * 128.0) / 1e9));
}

TEST_CASE("unfused attention is two products and what its scores pass through memory",
          "[operators]") {
  ComputeRates rates = unit_rates();
  rates.has_fused_attention = false;
  rates.misaligned = 0.5;
  const OperatorTimes operators(rates);
  const AttentionShape shape{.sequences = 1,
                             .heads = 4,
                             .queries = 256,
                             .keys = 256,
                             .query_size = 128,
                             .value_size = 128};
  const SimTime products = operators.product({.m = 256, .n = 256, .k = 128, .count = 4}) +
                           operators.product({.m = 256, .n = 128, .k = 256, .count = 4});
  const double scores = 4.0 * 256.0 * 256.0;
  REQUIRE(operators.attention_forward(shape) == products + operators.memory(9.0 * scores));
  REQUIRE(operators.attention_backward(shape) == products * 2 + operators.memory(12.0 * scores));
}

TEST_CASE("softmax has a kernel for heads by fours, else one for each of its operators",
          "[operators]") {
  REQUIRE(has_softmax_kernel(4, 2));
  REQUIRE_FALSE(has_softmax_kernel(2, 2));
  REQUIRE_FALSE(has_softmax_kernel(6, 2));
  REQUIRE_FALSE(has_softmax_kernel(4, 4));  // Of 16 bits alone.
  ComputeRates rates = unit_rates();
  rates.has_fused_attention = false;
  const OperatorTimes operators(rates);
  AttentionShape shape{.heads = 2, .queries = 256, .keys = 256, .query_size = 64, .value_size = 64};
  const SimTime products = operators.product({.m = 256, .n = 256, .k = 64, .count = 2}) +
                           operators.product({.m = 256, .n = 64, .k = 256, .count = 2});
  const double scores = 2.0 * 256.0 * 256.0;
  // To 32 bits, scale, mask of a byte, softmax, back to 16; 5 bytes for dropout and its mask.
  REQUIRE(operators.attention_forward(shape) ==
          products + operators.memory((6.0 + 8.0 + 9.0 + 8.0 + 6.0 + 5.0) * scores));
  REQUIRE(operators.attention_backward(shape) ==
          products * 2 + operators.memory((6.0 + 12.0 + 9.0 + 8.0 + 6.0 + 6.0) * scores));
  // Two sequences of two heads fill a block again.
  shape.sequences = 2;
  const SimTime both = operators.product({.m = 256, .n = 256, .k = 64, .count = 4}) +
                       operators.product({.m = 256, .n = 64, .k = 256, .count = 4});
  REQUIRE(operators.attention_forward(shape) == both + operators.memory(9.0 * 2.0 * scores));
}

TEST_CASE("memory-bound operators and casts have factors of their own", "[operators]") {
  ComputeRates rates = unit_rates();
  REQUIRE(OperatorTimes(rates).casts(1e9) == SimTime());
  rates.memory_bound = 2.0;
  rates.fp8_cast = 3.0;
  const OperatorTimes operators(rates);
  REQUIRE(operators.memory(1e9) == seconds(1));
  REQUIRE(operators.memory_bound(1e9) == seconds(2));
  REQUIRE(operators.casts(1e9) == seconds(3));
}

TEST_CASE("elements of 32 bits take twice the bytes of those of 16", "[operators]") {
  ComputeRates rates = unit_rates();
  const OperatorTimes narrow(rates);
  rates.element_bytes = 4;
  const OperatorTimes wide(rates);
  REQUIRE(wide.memory_bound(1e9) == seconds(2));
  REQUIRE(wide.memory(1e9) == seconds(1));
  // Bound by memory: one row. Bound by computation: nothing changes.
  const Gemm thin{.m = 1, .n = 100'000, .k = 1};
  rates.linear_rate = 1e18;
  const OperatorTimes fast(rates);
  REQUIRE(fast.linear(thin) == nanoseconds(4 * (1 + 100'000 + 100'000)));
  REQUIRE(wide.linear({.m = 256, .n = 256, .k = 256}) ==
          narrow.linear({.m = 256, .n = 256, .k = 256}));
  rates.has_fused_attention = false;
  const OperatorTimes unfused(rates);
  // Four heads, for which there is a kernel in 16 bits. Scale, mask of a byte, softmax, dropout.
  const AttentionShape shape{
      .sequences = 1, .heads = 4, .queries = 64, .keys = 64, .query_size = 16, .value_size = 16};
  const SimTime products = unfused.product({.m = 64, .n = 64, .k = 16, .count = 4}) +
                           unfused.product({.m = 64, .n = 16, .k = 64, .count = 4});
  const double scores = 4.0 * 64.0 * 64.0;
  REQUIRE(unfused.attention_forward(shape) ==
          products + unfused.memory((8.0 + 9.0 + 8.0 + 9.0) * scores));
  REQUIRE(unfused.attention_backward(shape) ==
          products * 2 + unfused.memory((9.0 + 12.0 + 9.0 + 8.0) * scores));
}

}  // namespace trainyard
