// SPDX-License-Identifier: Apache-2.0
// The layers of a convolutional network with their shapes: what each multiplies, what it reads and
// writes besides, its parameters, and what it keeps for the way back. All counts are of one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trainyard {

struct ImageShape {
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;

  [[nodiscard]] std::int64_t pixels() const { return height * width; }
  [[nodiscard]] std::int64_t elements() const { return channels * pixels(); }
  bool operator==(const ImageShape&) const = default;
};

// A convolution, also one turned round, or a fully connected layer, which has one pixel.
struct ImageConvolution {
  std::int64_t inputs = 1;  // Channels.
  std::int64_t outputs = 1;
  std::int64_t window = 1;  // Pixels of the kernel.
  std::int64_t stride = 1;
  std::int64_t groups = 1;
  std::int64_t pixels_in = 1;
  std::int64_t pixels_out = 1;
  std::int64_t positions = 1;  // Places of the kernel: pixels that come out, or, turned round, in.
  bool has_input_gradient = true;  // The image itself needs none.

  [[nodiscard]] std::int64_t weights() const { return inputs / groups * outputs * window; }
  [[nodiscard]] double products() const {
    return static_cast<double>(positions) * static_cast<double>(weights());
  }
  [[nodiscard]] bool is_depthwise() const { return groups > 1 && outputs == groups; }
};

// Kernels that only read and write: norms, activations, sums, pools, copies.
struct PointwiseWork {
  double elements = 0.0;  // Read and written.
  int kernels = 0;

  void add(double more) {
    elements += more;
    ++kernels;
  }
};

struct ImageLayer {
  std::string name;
  std::optional<ImageConvolution> convolution = {};
  std::vector<std::int64_t> tensors = {};  // Elements of each parameter, as they are registered.
  PointwiseWork forward = {};
  PointwiseWork backward = {};
  std::int64_t kept = 0;          // Elements that the backward pass needs.
  std::int64_t kept_indices = 0;  // The same of 64 bits, whatever the precision.

  [[nodiscard]] std::int64_t parameters() const;
};

struct ConvolutionalModel;

// Called with the number of a block, what was expected and what was found; it throws.
using BlockFailure =
    std::function<void(std::size_t block, const std::string& expected, const std::string& found)>;

// The layers of all blocks in the order in which they run forward.
[[nodiscard]] std::vector<ImageLayer> layers_of(const ConvolutionalModel& model,
                                                const BlockFailure& fail);

}  // namespace trainyard
