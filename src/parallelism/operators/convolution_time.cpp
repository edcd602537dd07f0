// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/convolution_time.h"

#include <algorithm>
#include <cmath>

#include "parallelism/operators/operator_time.h"

namespace trainyard {
namespace {

constexpr int kWideBytes = 4;  // Bytes of an element of weights and of their gradients.

class ConvolutionTimes {
 public:
  ConvolutionTimes(const ImageConvolution& shape, std::int64_t samples, const ComputeRates& rates)
      : shape_(shape), samples_(samples), rates_(rates), operators_(rates) {}

  [[nodiscard]] SimTime forward() const {
    return shape_.is_depthwise() ? at_memory()
                                 : operators_.linear({.m = samples_ * shape_.pixels_out,
                                                      .n = shape_.outputs / shape_.groups,
                                                      .k = along(shape_.inputs, shape_.pixels_out),
                                                      .count = shape_.groups,
                                                      .first_elements = images_in()});
  }
  [[nodiscard]] SimTime input_gradient() const {
    return shape_.is_depthwise() ? at_memory()
                                 : operators_.linear({.m = samples_ * shape_.pixels_in,
                                                      .n = shape_.inputs / shape_.groups,
                                                      .k = along(shape_.outputs, shape_.pixels_in),
                                                      .count = shape_.groups,
                                                      .first_elements = images_out()});
  }
  [[nodiscard]] SimTime weight_gradient() const {
    return shape_.is_depthwise()
               ? at_memory()
               : operators_.linear_over_long_k(
                     {.m = shape_.inputs / shape_.groups * shape_.window,
                      .n = shape_.outputs / shape_.groups,
                      .k = std::max<std::int64_t>(
                          static_cast<std::int64_t>(
                              saved() * static_cast<double>(samples_ * shape_.positions)),
                          1),
                      .count = shape_.groups,
                      .first_elements = images_in()});
  }

 private:
  // Elements that each element of the product is summed over, with `pixels` of them for a channel:
  // those that a stride leaves out are not multiplied.
  [[nodiscard]] std::int64_t along(std::int64_t channels, std::int64_t pixels) const {
    const double sums = saved() * static_cast<double>(channels / shape_.groups * shape_.window) *
                        static_cast<double>(shape_.positions) / static_cast<double>(pixels);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(sums));
  }
  // The share of products that are multiplied: cuDNN runs 3 x 3 without stride in FP32 as
  // Winograd's F(2 x 2, 3 x 3), with 16 instead of 36 (arXiv 1509.09308, section 4.1).
  [[nodiscard]] double saved() const {
    constexpr std::int64_t kWinogradWindow = 9;
    constexpr double kWinograd = 16.0 / 36.0;
    return !rates_.has_tensor_cores && shape_.window == kWinogradWindow && shape_.stride == 1
               ? kWinograd
               : 1.0;
  }
  [[nodiscard]] std::int64_t images_in() const {
    return samples_ * shape_.pixels_in * (shape_.inputs / shape_.groups);
  }
  [[nodiscard]] std::int64_t images_out() const {
    return samples_ * shape_.pixels_out * (shape_.outputs / shape_.groups);
  }
  [[nodiscard]] SimTime at_memory() const {
    return operators_.memory(static_cast<double>(rates_.element_bytes) *
                             static_cast<double>(shape_.groups) *
                             static_cast<double>(images_in() + images_out())) +
           rates_.gemm_start;
  }

  const ImageConvolution& shape_;
  std::int64_t samples_;
  const ComputeRates& rates_;
  OperatorTimes operators_;
};

}  // namespace

ImageLayerTimes image_layer_times(const ImageLayer& layer, std::int64_t samples,
                                  const ComputeRates& rates, bool has_channels_last) {
  const OperatorTimes operators(rates);
  const auto pointwise = [&](const PointwiseWork& work) {
    return operators.memory(work.elements * static_cast<double>(samples) * rates.element_bytes) +
           rates.gemm_start * work.kernels;
  };
  ImageLayerTimes times;
  times.forward[StepPart::MemoryBound] = pointwise(layer.forward);
  times.backward[StepPart::MemoryBound] = pointwise(layer.backward);
  if (!layer.convolution) {
    return times;
  }
  const ConvolutionTimes products(*layer.convolution, samples, rates);
  times.forward[StepPart::Linear] = products.forward();
  times.backward[StepPart::Linear] = products.weight_gradient();
  if (layer.convolution->has_input_gradient) {
    times.backward[StepPart::Linear] += products.input_gradient();
  }
  if (rates.has_tensor_cores && !has_channels_last) {
    // Both images of a product are read and written once more.
    PointwiseWork transposed;
    const ImageConvolution& shape = *layer.convolution;
    transposed.add(2.0 * static_cast<double>(shape.inputs * shape.pixels_in));
    transposed.add(2.0 * static_cast<double>(shape.outputs * shape.pixels_out));
    times.forward[StepPart::MemoryBound] += pointwise(transposed);
    times.backward[StepPart::MemoryBound] +=
        pointwise(transposed) * (shape.has_input_gradient ? 2 : 1);
  }
  if (rates.element_bytes < kWideBytes) {
    const SimTime cast = operators.memory(static_cast<double>(layer.convolution->weights()) *
                                          (rates.element_bytes + kWideBytes)) +
                         rates.gemm_start;
    times.forward[StepPart::Casts] = cast;
    times.backward[StepPart::Casts] = cast;
  }
  return times;
}

ComputeRates convolutional_rates(const GpuModel& gpu, const GpuRates& rates, Precision precision) {
  SoftwareProfile kernels;
  kernels.name = "PyTorch";
  kernels.attention = "unfused";
  kernels.fusion = "eager";
  ComputeRates made = compute_rates(gpu, rates, kernels, precision);
  if (precision == Precision::Fp32) {
    // Cores that are as much slower lose as much less by the start of a tile, and nothing by odd
    // sizes and small tiles.
    made.has_tensor_cores = false;
    made.misaligned = 1.0;
    if (const auto fast = gpu.peak.find("fp16"); fast != gpu.peak.end()) {
      made.tile_prologue = std::llround(static_cast<double>(made.tile_prologue) * made.peak /
                                        std::max(made.peak, fast->second.value.flops_per_second()));
    }
  }
  return made;
}

}  // namespace trainyard
