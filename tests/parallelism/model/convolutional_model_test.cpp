// SPDX-License-Identifier: Apache-2.0
// Counts of parameters and products against those that others publish.
#include "support/catch.h"

#include "parallelism/model/convolutional_model.h"

#include <string>

#include "sim/config_error.h"
#include "support/convolutional.h"

namespace trainyard {
namespace {

std::string network_error(const std::string& blocks) {
  try {
    (void)small_network(blocks);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

// torchvision/models/resnet.py, ResNet50_Weights: num_params 25557032, _ops 4.089 (products).
TEST_CASE("ResNet-50 has the parameters and products that torchvision lists", "[convolutional]") {
  const ConvolutionalModel model = shipped_network("resnet-50");
  REQUIRE(model.parameters() == 25'557'032);
  REQUIRE(model.products() / 1e9 == Approx(4.089).margin(0.0005));
  // The image of 3 x 224 x 224 needs no gradient: 64 x 112 x 112 x 147 products less.
  REQUIRE(training_flops(model) == 6.0 * model.products() - 2.0 * 64 * 112 * 112 * 147);
}

// The same file: ResNet18_Weights and ResNeXt50_32X4D_Weights.
TEST_CASE("ResNet-18 and ResNeXt-50 have those that torchvision lists", "[convolutional]") {
  const std::string first =
      "title: Test\nimage: {channels: 3, height: 224, width: 224}\nblocks:\n"
      "  - {kind: convolution, channels: 64, kernel: 7, stride: 2}\n"
      "  - {kind: max_pool, kernel: 3, stride: 2}\n";
  const std::string last = "  - {kind: average_pool}\n  - {kind: linear, channels: 1000}\n";
  const ConvolutionalModel basic = read_network(
      ConfigDocument::parse(first +
                                "  - {kind: basic, channels: 64, repeat: 2}\n"
                                "  - {kind: basic, channels: 128, stride: 2, repeat: 2}\n"
                                "  - {kind: basic, channels: 256, stride: 2, repeat: 2}\n"
                                "  - {kind: basic, channels: 512, stride: 2, repeat: 2}\n" +
                                last,
                            "resnet-18"));
  REQUIRE(basic.parameters() == 11'689'512);
  REQUIRE(basic.products() / 1e9 == Approx(1.814).margin(0.0005));
  const ConvolutionalModel grouped = read_network(ConfigDocument::parse(
      first +
          "  - {kind: bottleneck, channels: 256, middle: 128, groups: 32, repeat: 3}\n"
          "  - {kind: bottleneck, channels: 512, middle: 256, groups: 32, stride: 2, repeat: 4}\n"
          "  - {kind: bottleneck, channels: 1024, middle: 512, groups: 32, stride: 2, repeat: 6}\n"
          "  - {kind: bottleneck, channels: 2048, middle: 1024, groups: 32, stride: 2, repeat: "
          "3}\n" +
          last,
      "resnext-50"));
  REQUIRE(grouped.parameters() == 25'028'904);
  REQUIRE(grouped.products() / 1e9 == Approx(4.230).margin(0.0005));
}

// Keras prints 31,031,685 for zhixuhao/unet, model.py, whose last layers are 3 x 3 from 64 to 2 and
// 1 x 1 from 2 to 1 instead of 1 x 1 from 64 to 2.
TEST_CASE("U-Net has the parameters of its copies, and makes 388 x 388 pixels", "[convolutional]") {
  const ConvolutionalModel model = shipped_network("unet");
  REQUIRE(model.parameters() - (64 * 2 + 2) + (9 * 64 * 2 + 2) + (2 + 1) == 31'031'685);
  REQUIRE(model.layers.back().convolution->pixels_out == 388 * 388);
  int convolutions = 0;
  for (const ImageLayer& layer : model.layers) {
    convolutions += layer.convolution ? 1 : 0;
  }
  REQUIRE(convolutions == 23);  // arXiv 1505.04597, section 2.
}

// ultralytics/yolov5, summary of yolov5s: 7235389 parameters, 16.6 GFLOPs at 640 pixels, which
// counts norms and activations, too; the README has 7.2 M and 16.5.
TEST_CASE("YOLOv5s has the parameters and operations of its summary", "[convolutional]") {
  const ConvolutionalModel model = shipped_network("yolov5s");
  REQUIRE(model.parameters() == 7'235'389);
  REQUIRE(2.0 * model.products() / 1e9 == Approx(16.5).epsilon(0.02));
}

TEST_CASE("blocks that do not fit are refused with their place", "[convolutional]") {
  const std::string start = "  - {kind: convolution, channels: 8, kernel: 3, name: a}\n";
  REQUIRE(network_error(start + "  - {kind: concatenate, with: b}\n")
              .find("blocks[1]: expected the name of a block before it, found b") !=
          std::string::npos);
  REQUIRE(network_error(start + "  - {kind: convolution, channels: 8, kernel: 3, groups: 3}\n")
              .find("expected a divisor of the channels as groups, found 3 of 8 and 8") !=
          std::string::npos);
  REQUIRE(network_error(start + "  - {kind: max_pool, kernel: 64, padding: 0}\n")
              .find("expected an image of at least 64 pixels, found 32") != std::string::npos);
  REQUIRE(
      network_error(start + "  - {kind: upsample, stride: 2}\n  - {kind: concatenate, with: a}\n")
          .find("expected an image of at least 64 x 64 as with, found a of 32 x 32") !=
      std::string::npos);
  REQUIRE(network_error(start + start).find("expected a name of its own as name, found a twice") !=
          std::string::npos);
  REQUIRE(network_error(start + "  - {kind: average_pool, channels: 3}\n").find("channels") !=
          std::string::npos);
  REQUIRE(network_error("  - {kind: pyramid_pool, channels: 8, kernel: 4}\n")
              .find("expected an odd number as kernel, found 4") != std::string::npos);
}

}  // namespace trainyard
