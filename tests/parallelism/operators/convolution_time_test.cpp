// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/operators/convolution_time.h"

#include "parallelism/operators/operator_time.h"
#include "support/convolutional.h"

namespace trainyard {
namespace {

ComputeRates a100_rates(Precision precision = Precision::Fp16) {
  return convolutional_rates(shipped_catalogue().gpus().at("A100-SXM-80GB"), shipped_rates(),
                             precision);
}

}  // namespace

TEST_CASE("a convolution of one pixel's window is the product of matrices", "[convolutional]") {
  const ConvolutionalModel model = small_network(
      "  - {kind: convolution, channels: 256, kernel: 1}\n"
      "  - {kind: convolution, channels: 512, kernel: 1}\n");
  const OperatorTimes operators(a100_rates());
  const ImageLayerTimes times = image_layer_times(model.layers.at(1), 64, a100_rates());
  constexpr std::int64_t kRows = 64 * 32 * 32;
  REQUIRE(times.forward[StepPart::Linear] == operators.linear({.m = kRows, .n = 512, .k = 256}));
  REQUIRE(times.backward[StepPart::Linear] ==
          operators.linear({.m = kRows, .n = 256, .k = 512}) +
              operators.linear_over_long_k({.m = 256, .n = 512, .k = kRows}));
  // The image has no gradient.
  REQUIRE(image_layer_times(model.layers.at(0), 64, a100_rates()).backward[StepPart::Linear] ==
          operators.linear_over_long_k({.m = 3, .n = 256, .k = kRows}));
}

TEST_CASE("windows that overlap pass memory once", "[convolutional]") {
  const ConvolutionalModel model = small_network(
      "  - {kind: convolution, channels: 64, kernel: 1}\n"
      "  - {kind: convolution, channels: 64, kernel: 3}\n");
  const OperatorTimes operators(a100_rates());
  constexpr std::int64_t kRows = 256 * 32 * 32;
  const SimTime windows = operators.linear({.m = kRows, .n = 64, .k = 576});
  const SimTime images =
      image_layer_times(model.layers.at(1), 256, a100_rates()).forward[StepPart::Linear];
  REQUIRE(images < windows);
  REQUIRE(images ==
          operators.linear({.m = kRows, .n = 64, .k = 576, .first_elements = kRows * 64}));
}

TEST_CASE("depthwise convolutions, norms and activations take the time of memory",
          "[convolutional]") {
  const ConvolutionalModel model = small_network(
      "  - {kind: convolution, channels: 64, kernel: 1}\n"
      "  - {kind: convolution, channels: 64, kernel: 3, groups: 64}\n");
  const ComputeRates rates = a100_rates();
  const ImageLayerTimes times = image_layer_times(model.layers.at(1), 256, rates);
  constexpr double kElements = 256.0 * 64 * 32 * 32;
  const OperatorTimes operators(rates);
  REQUIRE(times.forward[StepPart::Linear] ==
          operators.memory(2.0 * 2.0 * kElements) + rates.gemm_start);
  REQUIRE(times.forward[StepPart::MemoryBound] ==
          operators.memory(2.0 * 5.0 * kElements) + rates.gemm_start * 2);
  REQUIRE(times.forward[StepPart::Casts] > SimTime());
  REQUIRE(image_layer_times(model.layers.at(1), 256, a100_rates(Precision::Fp32))
              .forward[StepPart::Casts] == SimTime());
}

}  // namespace trainyard
