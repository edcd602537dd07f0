// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/convolutional_model.h"

#include <array>
#include <numeric>
#include <tuple>

namespace trainyard {
namespace {

constexpr std::int64_t kMaxImageChannels = std::int64_t{1} << 20;
constexpr std::int64_t kMaxImageEdge = 16'384;
constexpr std::int64_t kMaxWindowEdge = 1024;
constexpr std::int64_t kMaxBlockRepeat = 1000;

// Keys that only some kinds of blocks have.
struct BlockKeys {
  std::string_view name;
  bool repeats = false;
  bool has_channels = true;
  bool has_kernel = false;
  bool has_stride = false;
  bool has_groups = false;
  bool has_middle = false;
  bool has_activation = false;
  bool has_norm = false;  // Also of `padding`: it is a plain convolution.
};

constexpr std::array<BlockKeys, 11> kBlocks{
    {{.name = "convolution",
      .repeats = true,
      .has_kernel = true,
      .has_stride = true,
      .has_groups = true,
      .has_activation = true,
      .has_norm = true},
     {.name = "transposed",
      .has_kernel = true,
      .has_stride = true,
      .has_activation = true,
      .has_norm = true},
     {.name = "linear", .has_activation = true},
     {.name = "max_pool", .has_channels = false, .has_kernel = true, .has_stride = true},
     {.name = "average_pool", .has_channels = false},
     {.name = "upsample", .has_channels = false, .has_stride = true},
     {.name = "concatenate", .has_channels = false},
     {.name = "basic", .repeats = true, .has_stride = true},
     {.name = "bottleneck",
      .repeats = true,
      .has_stride = true,
      .has_groups = true,
      .has_middle = true},
     {.name = "cross_stage", .repeats = true, .has_middle = true},
     {.name = "pyramid_pool", .has_kernel = true}}};

void block_fields(Fields& fields, ConvolutionalBlock& block, bool has_norm) {
  fields.required("kind", block.kind, Choice{row_names(kBlocks)}, "What it is.");
  const BlockKeys& keys = kBlocks.at(static_cast<std::size_t>(block.kind));
  const auto where = [&](bool holds, const auto& rows) { fields.where(holds, rows); };
  fields.optional("name", block.name, Text{}, "Name by which later blocks refer to it.");
  fields.optional("from", block.from, Text{}, "Block whose output comes in: the one before.");
  where(block.kind == BlockKind::Concatenate,
        [&] { fields.required("with", block.with, Text{}, "Second block of `concatenate`."); });
  where(keys.repeats, [&] {
    fields.optional("repeat", block.repeat, Whole{1, kMaxBlockRepeat},
                    "Equal ones in a row, of which the first has the stride: 1.");
  });
  where(keys.has_channels, [&] {
    fields.required("channels", block.channels, Whole{1, kMaxImageChannels},
                    "Channels that come out.");
  });
  where(keys.has_kernel, [&] {
    fields.required("kernel", block.kernel, Whole{1, kMaxWindowEdge}, "Edge of a window.");
  });
  where(keys.has_stride, [&] {
    fields.optional("stride", block.stride, Whole{1, kMaxWindowEdge},
                    "Pixels from window to window.");
  });
  where(keys.has_norm || block.kind == BlockKind::MaxPool, [&] {
    fields.optional("padding", block.padding, Whole{0, kMaxWindowEdge},
                    "Pixels on each side: half of the kernel; none of `transposed`.");
  });
  where(keys.has_groups, [&] {
    fields.optional("groups", block.groups, Whole{1, kMaxImageChannels}, "Groups of channels: 1.");
  });
  where(keys.has_middle, [&] {
    fields.optional("middle", block.middle, Whole{1, kMaxImageChannels},
                    "Channels inside: a quarter of a `bottleneck`'s, half of a `cross_stage`'s.");
  });
  block.has_norm = has_norm;
  where(keys.has_norm, [&] {
    fields.optional("norm", block.has_norm, Flag{}, "Batch norm instead of a bias: the model's.");
  });
  block.has_activation = block.kind != BlockKind::Linear;
  where(keys.has_activation, [&] {
    fields.optional("activation", block.has_activation, Flag{},
                    "Of what comes out; not of `linear`.");
  });
  where(block.kind == BlockKind::CrossStage, [&] {
    fields.optional("shortcut", block.has_shortcut, Flag{}, "In the blocks of a `cross_stage`.");
  });
}

void image_fields(Fields& fields, ImageShape& image) {
  fields.required("channels", image.channels, Whole{1, kMaxImageChannels}, "Channels, such as 3.");
  fields.required("height", image.height, Whole{1, kMaxImageEdge}, "Pixels.");
  fields.required("width", image.width, Whole{1, kMaxImageEdge}, "Pixels.");
}

}  // namespace

std::int64_t ConvolutionalModel::parameters() const {
  return std::accumulate(
      layers.begin(), layers.end(), std::int64_t{0},
      [](std::int64_t sum, const ImageLayer& layer) { return sum + layer.parameters(); });
}

double ConvolutionalModel::products() const {
  return std::accumulate(layers.begin(), layers.end(), 0.0,
                         [](double sum, const ImageLayer& layer) {
                           return sum + (layer.convolution ? layer.convolution->products() : 0.0);
                         });
}

double training_flops(const ConvolutionalModel& model) {
  double products = 0.0;
  for (const ImageLayer& layer : model.layers) {
    if (layer.convolution) {
      products += layer.convolution->products() * (layer.convolution->has_input_gradient ? 3 : 2);
    }
  }
  return 2.0 * products;
}

void convolutional_fields(Fields& fields, ConvolutionalModel& model) {
  fields.optional("source", std::ignore, Unread{}, "Where the shapes are from; files need it.");
  fields.required("title", model.title, Text{}, "Name for people.");
  fields.required("image", model.image, Group{image_fields}, "Shape of a sample.");
  fields.optional("norm", model.has_norm, Flag{}, "Batch norm behind convolutions: true.");
  const auto rows = [&](Fields& inner, ConvolutionalBlock& block) {
    block_fields(inner, block, model.has_norm);
  };
  fields.required("blocks", model.blocks, List{Group{rows}}, "Blocks, from the image on.");
  fields.check([&](const ConfigNode& node) {
    const ConfigNode blocks = node.required("blocks");
    if (model.blocks.empty()) {
      blocks.fail("at least one block", "none");
    }
    model.layers = layers_of(
        model, [&](std::size_t block, const std::string& expected, const std::string& found) {
          blocks.items()[block].fail(expected, found);
        });
  });
}

}  // namespace trainyard
