// SPDX-License-Identifier: Apache-2.0
// The training of a convolutional network as its YAML file describes it: data parallel, as
// PyTorch's DistributedDataParallel runs it. docs/models/convolutional.md explains the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "parallelism/model/convolutional_model.h"
#include "parallelism/workload/software_profile.h"
#include "parallelism/workload/workload.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// A momentum, or two moments, of 32 bits for each parameter.
enum class ConvolutionalOptimizer : std::uint8_t { Sgd, Adam };

struct ConvolutionalWorkload {
  std::string name;  // Name of the file.
  std::string title;
  ConvolutionalModel model;
  // Precision of images and products: one of kPlainPrecisions. Weights, gradients and the optimizer
  // are in 32 bits, as with torch.autocast.
  Precision precision = Precision::Fp16;
  std::int64_t batch = 0;  // Samples of each GPU.
  ConvolutionalOptimizer optimizer = ConvolutionalOptimizer::Sgd;
  bool has_channels_last = false;  // Images are NHWC in memory, not NCHW.
  bool overlap_data = true;        // Sums of gradients run beside the backward pass.
  // Buckets close at this size: `bucket_cap_mb` of DistributedDataParallel, by default 25 (MiB).
  Bytes bucket = kDataBucket;
  std::optional<GradientCompression> compression = {};
};

// Returns the plan of so many data ranks, and the software, as far as their gradients need them.
[[nodiscard]] ParallelPlan gradient_plan(const ConvolutionalWorkload& workload, int ranks);
[[nodiscard]] SoftwareProfile gradient_software();

void convolutional_workload_fields(Fields& fields, ConvolutionalWorkload& workload);

// Strict. `models` is the folder of the models that are named instead of described; `settings` are
// "key.path=value" as --set takes them. Throws ConfigError with the place of the mistake.
[[nodiscard]] ConvolutionalWorkload load_convolutional_workload(
    const std::filesystem::path& file, const std::filesystem::path& models,
    const std::vector<std::string>& settings = {});

}  // namespace trainyard
