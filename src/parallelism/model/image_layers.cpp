// SPDX-License-Identifier: Apache-2.0
// Reads and writes are counted for each element of what comes out, kernel by kernel as PyTorch
// runs them. Batch norm reads its input for the sums and again to scale it, and writes; backward it
// reads input and gradient for sums and again, and writes. An activation in place reads and writes;
// backward it reads output and gradient, and writes. Where two gradients of one image meet, both
// are read and their sum is written.
#include "parallelism/model/image_layers.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <numeric>
#include <utility>

#include "parallelism/model/convolutional_model.h"

namespace trainyard {
namespace {

constexpr double kNormForward = 3.0;
constexpr double kNormBackward = 5.0;
constexpr double kActivationForward = 2.0;
constexpr double kActivationBackward = 3.0;
constexpr double kBiasForward = 2.0;
constexpr double kBiasBackward = 1.0;
constexpr double kSumAccesses = 3.0;
constexpr double kCopyAccesses = 2.0;

// Limits that keep all products of counts within 64 bits.
constexpr double kMaxImageElements = 4e9;
constexpr double kMaxLayerWeights = 1e10;
constexpr std::size_t kMaxImageLayers = 20'000;

// An image on its way through the network.
struct Flowing {
  ImageShape shape;
  bool is_sample = false;  // The image itself, which needs no gradient.
};

// One convolution, with what follows it.
struct ConvolutionSpec {
  std::int64_t channels = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t groups = 1;
  bool has_norm = true;
  bool has_activation = true;
  bool is_transposed = false;
};

std::int64_t same_padding(std::int64_t kernel) {
  return (kernel - 1) / 2;
}

std::string image_size_text(const ImageShape& shape) {
  return fmt::format("{} x {}", shape.height, shape.width);
}

class LayerList {
 public:
  LayerList(const ConvolutionalModel& model, const BlockFailure& fail)
      : model_(model), fail_(fail) {}

  std::vector<ImageLayer> all() && {
    Flowing image{.shape = model_.image, .is_sample = true};
    for (; block_ < model_.blocks.size(); ++block_) {
      const ConvolutionalBlock& block = model_.blocks[block_];
      if (!block.from.empty()) {
        image = named(block.from);
        image_is_shared_ = true;
      }
      image = add(block, image);
      image_is_shared_ = false;
      if (!block.name.empty() && !named_.emplace(block.name, image).second) {
        fail("name", "a name of its own", fmt::format("{} twice", block.name));
      }
      if (layers_.size() > kMaxImageLayers) {
        fail("", fmt::format("at most {} layers", kMaxImageLayers), "more");
      }
    }
    return std::move(layers_);
  }

 private:
  void fail(std::string_view key, const std::string& expected, const std::string& found) const {
    fail_(block_, key.empty() ? expected : fmt::format("{} as {}", expected, key), found);
  }
  Flowing named(const std::string& name) const {
    const auto found = named_.find(name);
    if (found == named_.end()) {
      fail("", "the name of a block before it", name);
      return {};
    }
    return found->second;
  }

  Flowing add(const ConvolutionalBlock& block, const Flowing& image);
  Flowing convolve(const Flowing& image, const ConvolutionSpec& spec);
  Flowing pool(const Flowing& image, std::int64_t kernel, std::int64_t stride,
               std::int64_t padding);
  Flowing concatenate(const Flowing& first, const std::vector<std::int64_t>& others);
  Flowing join_named(const ConvolutionalBlock& block, const Flowing& image);
  Flowing residual(const ConvolutionalBlock& block, const Flowing& image, std::int64_t stride);
  Flowing cross_stage(const ConvolutionalBlock& block, const Flowing& image);
  Flowing pyramid_pool(const ConvolutionalBlock& block, const Flowing& image);
  Flowing repeated(const ConvolutionalBlock& block, Flowing image);
  // A sum with `image`, whose gradient is then one of two.
  void add_sum(const Flowing& image, bool has_activation);
  // The gradient of an image that goes to two layers is the sum of two.
  void merge_gradients(const Flowing& image) {
    if (!image.is_sample) {
      layers_.back().backward.add(kSumAccesses * elements(image.shape));
    }
  }

  std::int64_t edge(std::int64_t size, std::int64_t kernel, std::int64_t stride,
                    std::int64_t padding) const {
    if (size + 2 * padding < kernel) {
      fail("", fmt::format("an image of at least {} pixels", kernel),
           fmt::format("{}", size + 2 * padding));
      return 1;
    }
    return (size + 2 * padding - kernel) / stride + 1;
  }
  static double elements(const ImageShape& shape) { return static_cast<double>(shape.elements()); }
  ImageLayer& layer(std::string_view what) {
    const ConvolutionalBlock& block = model_.blocks[block_];
    layers_.push_back({.name = block.name.empty() ? fmt::format("block {}: {}", block_, what)
                                                  : fmt::format("{}: {}", block.name, what)});
    if (std::exchange(image_is_shared_, false)) {
      merge_gradients(named_.at(block.from));
    }
    return layers_.back();
  }
  ImageShape checked(const ImageShape& shape) const {
    const double size = static_cast<double>(shape.channels) * static_cast<double>(shape.height) *
                        static_cast<double>(shape.width);
    if (size > kMaxImageElements) {
      fail("", fmt::format("at most {:g} elements that come out", kMaxImageElements),
           fmt::format("{:.3g}", size));
    }
    return shape;
  }

  const ConvolutionalModel& model_;
  const BlockFailure& fail_;
  std::size_t block_ = 0;
  bool image_is_shared_ = false;  // The next layer reads an image that another one reads, too.
  std::map<std::string, Flowing> named_;
  std::vector<ImageLayer> layers_;
};

Flowing LayerList::convolve(const Flowing& image, const ConvolutionSpec& spec) {
  const ImageShape& in = image.shape;
  if (in.channels % spec.groups != 0 || spec.channels % spec.groups != 0) {
    fail("groups", "a divisor of the channels",
         fmt::format("{} of {} and {}", spec.groups, in.channels, spec.channels));
  }
  const auto out_edge = [&](std::int64_t size) {
    if (!spec.is_transposed) {
      return edge(size, spec.kernel, spec.stride, spec.padding);
    }
    const std::int64_t out = (size - 1) * spec.stride + spec.kernel - 2 * spec.padding;
    if (out < 1) {
      fail("padding", "less than what comes out", fmt::format("{}", spec.padding));
    }
    return out;
  };
  const ImageShape out = checked(
      {.channels = spec.channels, .height = out_edge(in.height), .width = out_edge(in.width)});
  const double weights = static_cast<double>(in.channels) / static_cast<double>(spec.groups) *
                         static_cast<double>(spec.channels) *
                         static_cast<double>(spec.kernel * spec.kernel);
  if (weights > kMaxLayerWeights) {
    fail("", fmt::format("at most {:g} weights", kMaxLayerWeights), fmt::format("{:.3g}", weights));
  }
  ImageLayer& made = layer(fmt::format("{0} x {0} of {1}", spec.kernel, spec.channels));
  made.convolution = ImageConvolution{.inputs = in.channels,
                                      .outputs = spec.channels,
                                      .window = spec.kernel * spec.kernel,
                                      .stride = spec.stride,
                                      .groups = spec.groups,
                                      .pixels_in = in.pixels(),
                                      .pixels_out = out.pixels(),
                                      .positions = spec.is_transposed ? in.pixels() : out.pixels(),
                                      .has_input_gradient = !image.is_sample};
  made.tensors.push_back(made.convolution->weights());
  const double size = elements(out);
  if (spec.has_norm) {
    made.tensors.insert(made.tensors.end(), 2, spec.channels);
    made.forward.add(kNormForward * size);
    made.backward.add(kNormBackward * size);
    made.kept += out.elements();
  } else {
    made.tensors.push_back(spec.channels);
    made.forward.add(kBiasForward * size);
    made.backward.add(kBiasBackward * size);
  }
  if (spec.has_activation) {
    made.forward.add(kActivationForward * size);
    made.backward.add(kActivationBackward * size);
    made.kept += out.elements();
  }
  return {.shape = out};
}

Flowing LayerList::pool(const Flowing& image, std::int64_t kernel, std::int64_t stride,
                        std::int64_t padding) {
  const ImageShape out = checked({.channels = image.shape.channels,
                                  .height = edge(image.shape.height, kernel, stride, padding),
                                  .width = edge(image.shape.width, kernel, stride, padding)});
  ImageLayer& made = layer(fmt::format("largest of {0} x {0}", kernel));
  made.forward.add(elements(image.shape) + elements(out));
  made.backward.add(elements(image.shape) + elements(out));
  made.kept = out.elements();
  made.kept_indices = out.elements();
  return {.shape = out};
}

Flowing LayerList::concatenate(const Flowing& first, const std::vector<std::int64_t>& others) {
  ImageShape out = first.shape;
  out.channels = std::accumulate(others.begin(), others.end(), out.channels);
  out = checked(out);
  ImageLayer& made = layer("concatenate");
  made.forward.add(kCopyAccesses * elements(out));
  made.backward.add(kCopyAccesses * elements(out));
  made.kept = out.elements();
  return {.shape = out};
}

Flowing LayerList::join_named(const ConvolutionalBlock& block, const Flowing& image) {
  const Flowing second = named(block.with);
  if (second.shape.height < image.shape.height || second.shape.width < image.shape.width) {
    fail("with", fmt::format("an image of at least {}", image_size_text(image.shape)),
         fmt::format("{} of {}", block.with, image_size_text(second.shape)));
  }
  const Flowing joined = concatenate(image, {second.shape.channels});
  merge_gradients(second);
  return joined;
}

void LayerList::add_sum(const Flowing& image, bool has_activation) {
  const double size = elements(image.shape);
  ImageLayer& last = layers_.back();
  last.forward.add(kSumAccesses * size);
  if (has_activation) {
    last.forward.add(kActivationForward * size);
    last.backward.add(kActivationBackward * size);
  }
  last.kept += image.shape.elements();
}

Flowing LayerList::residual(const ConvolutionalBlock& block, const Flowing& image,
                            std::int64_t stride) {
  ConvolutionSpec wide{.channels = block.channels,
                       .kernel = 3,
                       .padding = 1,
                       .has_norm = block.has_norm,
                       .has_activation = false};
  ConvolutionSpec strided{.channels = block.channels,
                          .kernel = 3,
                          .stride = stride,
                          .padding = 1,
                          .groups = block.groups,
                          .has_norm = block.has_norm};
  Flowing inside = image;
  if (block.kind == BlockKind::Bottleneck) {
    strided.channels = block.middle.value_or((block.channels + 3) / 4);
    inside = convolve(image, {.channels = strided.channels, .has_norm = block.has_norm});
    wide.kernel = 1;
    wide.padding = 0;
  }
  inside = convolve(convolve(inside, strided), wide);
  if (stride != 1 || image.shape.channels != block.channels) {
    (void)convolve(image, {.channels = block.channels,
                           .stride = stride,
                           .has_norm = block.has_norm,
                           .has_activation = false});
  }
  add_sum(inside, true);
  merge_gradients(image);
  return inside;
}

Flowing LayerList::cross_stage(const ConvolutionalBlock& block, const Flowing& image) {
  const std::int64_t half = block.middle.value_or((block.channels + 1) / 2);
  const ConvolutionSpec narrow{.channels = half, .has_norm = block.has_norm};
  ConvolutionSpec wide = narrow;
  wide.kernel = 3;
  wide.padding = 1;
  Flowing inside = convolve(image, narrow);
  for (std::int64_t index = 0; index < block.repeat; ++index) {
    const Flowing before = inside;
    inside = convolve(convolve(inside, narrow), wide);
    if (block.has_shortcut) {
      add_sum(inside, false);
      merge_gradients(before);
    }
  }
  (void)convolve(image, narrow);
  merge_gradients(image);
  return convolve(concatenate(inside, {half}),
                  {.channels = block.channels, .has_norm = block.has_norm});
}

Flowing LayerList::pyramid_pool(const ConvolutionalBlock& block, const Flowing& image) {
  const std::int64_t half = (image.shape.channels + 1) / 2;
  const Flowing inside = convolve(image, {.channels = half, .has_norm = block.has_norm});
  Flowing pooled = inside;
  for (int index = 0; index < 3; ++index) {
    pooled = pool(pooled, block.kernel, 1, same_padding(block.kernel));
    merge_gradients(inside);
  }
  if (pooled.shape != inside.shape) {
    fail("kernel", "an odd number", fmt::format("{}", block.kernel));
  }
  return convolve(concatenate(pooled, {half, half, half}),
                  {.channels = block.channels, .has_norm = block.has_norm});
}

Flowing LayerList::repeated(const ConvolutionalBlock& block, Flowing image) {
  const bool is_transposed = block.kind == BlockKind::Transposed;
  for (std::int64_t index = 0; index < block.repeat; ++index) {
    const std::int64_t stride = index == 0 ? block.stride : 1;
    if (block.kind == BlockKind::Basic || block.kind == BlockKind::Bottleneck) {
      image = residual(block, image, stride);
      continue;
    }
    image = convolve(
        image, {.channels = block.channels,
                .kernel = block.kernel,
                .stride = stride,
                .padding = block.padding.value_or(is_transposed ? 0 : same_padding(block.kernel)),
                .groups = block.groups,
                .has_norm = block.has_norm,
                .has_activation = block.has_activation,
                .is_transposed = is_transposed});
  }
  return image;
}

Flowing LayerList::add(const ConvolutionalBlock& block, const Flowing& image) {
  const ImageShape& in = image.shape;
  switch (block.kind) {
    case BlockKind::Convolution:
    case BlockKind::Transposed:
    case BlockKind::Basic:
    case BlockKind::Bottleneck:
      return repeated(block, image);
    case BlockKind::Linear:
      return convolve(
          {.shape = {.channels = in.elements()}, .is_sample = image.is_sample},
          {.channels = block.channels, .has_norm = false, .has_activation = block.has_activation});
    case BlockKind::MaxPool:
      return pool(image, block.kernel, block.stride,
                  block.padding.value_or(same_padding(block.kernel)));
    case BlockKind::AveragePool: {
      ImageLayer& made = layer("mean");
      made.forward.add(elements(in));
      made.backward.add(elements(in));
      return {.shape = {.channels = in.channels}};
    }
    case BlockKind::Upsample: {
      const ImageShape out = checked({.channels = in.channels,
                                      .height = in.height * block.stride,
                                      .width = in.width * block.stride});
      ImageLayer& made = layer("upsample");
      made.forward.add(elements(in) + elements(out));
      made.backward.add(elements(in) + elements(out));
      return {.shape = out};
    }
    case BlockKind::Concatenate:
      return join_named(block, image);
    case BlockKind::CrossStage:
      return cross_stage(block, image);
    case BlockKind::PyramidPool:
      return pyramid_pool(block, image);
  }
  return image;
}

}  // namespace

std::int64_t ImageLayer::parameters() const {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0});
}

std::vector<ImageLayer> layers_of(const ConvolutionalModel& model, const BlockFailure& fail) {
  return LayerList(model, fail).all();
}

}  // namespace trainyard
