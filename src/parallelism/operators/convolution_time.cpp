// SPDX-License-Identifier: Apache-2.0
#include "parallelism/operators/convolution_time.h"

#include <algorithm>

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
               : operators_.linear_over_long_k({.m = shape_.inputs / shape_.groups * shape_.window,
                                                .n = shape_.outputs / shape_.groups,
                                                .k = samples_ * shape_.positions,
                                                .count = shape_.groups,
                                                .first_elements = images_in()});
  }

 private:
  // Elements that each element of the product is summed over, with `pixels` of them for a channel:
  // those that a stride leaves out are not multiplied.
  [[nodiscard]] std::int64_t along(std::int64_t channels, std::int64_t pixels) const {
    const double sums = static_cast<double>(channels / shape_.groups * shape_.window) *
                        static_cast<double>(shape_.positions) / static_cast<double>(pixels);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(sums));
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
                                  const ComputeRates& rates) {
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
  return compute_rates(gpu, rates, kernels, precision);
}

}  // namespace trainyard
