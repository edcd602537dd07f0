// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/image_layers.h"

#include "support/convolutional.h"

namespace trainyard {

TEST_CASE("a convolution reads and writes what follows it, and keeps two images",
          "[convolutional]") {
  const ConvolutionalModel model =
      small_network("  - {kind: convolution, channels: 8, kernel: 3, stride: 2}\n");
  const ImageLayer& layer = model.layers.at(0);
  constexpr std::int64_t kOut = 8 * 16 * 16;
  REQUIRE(layer.convolution->products() == 3.0 * 9 * kOut);
  REQUIRE_FALSE(layer.convolution->has_input_gradient);
  REQUIRE(layer.tensors == std::vector<std::int64_t>{216, 8, 8});
  REQUIRE(layer.forward.elements == 5.0 * kOut);   // Norm 3, activation 2.
  REQUIRE(layer.backward.elements == 8.0 * kOut);  // Norm 5, activation 3.
  REQUIRE(layer.kept == 2 * kOut);
}

TEST_CASE("where an image goes two ways its gradients are added up", "[convolutional]") {
  const ConvolutionalModel model = small_network(
      "  - {kind: convolution, channels: 8, kernel: 1, name: a}\n"
      "  - {kind: convolution, channels: 8, kernel: 1}\n"
      "  - {kind: convolution, channels: 8, kernel: 1, from: a}\n");
  REQUIRE(model.layers.at(2).backward.elements - model.layers.at(1).backward.elements ==
          3.0 * 8 * 32 * 32);
}

TEST_CASE("depthwise and transposed convolutions have the shapes of their kind",
          "[convolutional]") {
  const ConvolutionalModel model = small_network(
      "  - {kind: convolution, channels: 16, kernel: 1}\n"
      "  - {kind: convolution, channels: 16, kernel: 3, groups: 16}\n"
      "  - {kind: transposed, channels: 4, kernel: 2, stride: 2, norm: false, activation: false}\n"
      "  - {kind: linear, channels: 10}\n");
  REQUIRE(model.layers.at(1).convolution->is_depthwise());
  REQUIRE(model.layers.at(1).convolution->weights() == 9 * 16);
  const ImageConvolution& larger = *model.layers.at(2).convolution;
  REQUIRE(larger.pixels_out == 64 * 64);
  REQUIRE(larger.products() == 32.0 * 32 * 16 * 4 * 4);
  REQUIRE(model.layers.at(3).parameters() == 4 * 64 * 64 * 10 + 10);
  REQUIRE(model.layers.at(3).convolution->pixels_out == 1);
}

}  // namespace trainyard
