// SPDX-License-Identifier: Apache-2.0
// A convolutional network as its blocks, from configs/workloads/convolutional/*.yaml: ResNet, He et
// al., arXiv 1512.03385; U-Net, Ronneberger et al., arXiv 1505.04597; YOLOv5 (ultralytics/yolov5).
//
// Blocks follow one another, or a block that has a name; what they are made of, their shapes and
// their parameters follow (image_layers.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/model/image_layers.h"
#include "sim/fields.h"

namespace trainyard {

enum class BlockKind : std::uint8_t {
  Convolution,
  Transposed,   // A convolution that makes images larger: the gradient of one with a stride.
  Linear,       // Fully connected, with a bias.
  MaxPool,      // The largest value of each window.
  AveragePool,  // The mean of each channel, which is one pixel.
  Upsample,     // Each pixel becomes `stride` times `stride` equal ones.
  Concatenate,  // Channels of two images, the second cropped to the size of the first.
  Basic,        // Two convolutions of 3 x 3 and a shortcut: arXiv 1512.03385, figure 5 on the left.
  Bottleneck,   // 1 x 1, 3 x 3 with the stride, 1 x 1, and a shortcut: the same on the right.
  CrossStage,   // C3 of ultralytics/yolov5, models/common.py; arXiv 1911.11929.
  PyramidPool,  // SPPF of the same file.
};

struct ConvolutionalBlock {
  BlockKind kind = BlockKind::Convolution;
  std::string name = {};    // Name by which later blocks refer to what comes out.
  std::string from = {};    // Block whose output comes in; empty: the one before.
  std::string with = {};    // The second block of Concatenate.
  std::int64_t repeat = 1;  // Equal ones in a row, of which the first has the stride.
  std::int64_t channels = 0;
  std::int64_t kernel = 0;  // Edge of a window.
  std::int64_t stride = 1;
  std::optional<std::int64_t> padding = {};  // On each side; as much as keeps the size.
  std::int64_t groups = 1;                   // As many as channels: depthwise.
  std::optional<std::int64_t> middle = {};   // Channels inside a block.
  bool has_norm = true;                      // Batch norm; a convolution without has a bias.
  bool has_activation = true;
  bool has_shortcut = true;  // In the bottlenecks of CrossStage.
};

struct ConvolutionalModel {
  std::string name;  // Name of the file.
  std::string title;
  ImageShape image;  // Shape of one sample.
  bool has_norm = true;
  std::vector<ConvolutionalBlock> blocks;
  std::vector<ImageLayer> layers = {};  // The layers that the blocks are made of.

  [[nodiscard]] std::int64_t parameters() const;
  // Multiplications of the forward pass of a sample, of convolutions and fully connected layers:
  // what is published as MACs, or, twice, as FLOPs.
  [[nodiscard]] double products() const;
};

// Floating-point operations of one sample in a training step: those of its forward pass, and twice
// those backward, where the image itself needs no gradient.
[[nodiscard]] double training_flops(const ConvolutionalModel& model);

// All but its name.
void convolutional_fields(Fields& fields, ConvolutionalModel& model);

}  // namespace trainyard
