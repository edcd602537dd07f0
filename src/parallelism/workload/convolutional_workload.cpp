// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/convolutional_workload.h"

#include <array>
#include <string_view>
#include <tuple>

namespace trainyard {
namespace {

constexpr std::int64_t kMaxImages = 65'536;
constexpr std::array<std::string_view, 2> kImageOptimizers{"sgd", "adam"};

void image_batch_fields(Fields& fields, ConvolutionalWorkload& workload) {
  fields.required("micro", workload.batch, Whole{1, kMaxImages}, "Samples of each GPU.");
  fields.optional("channels_last", workload.has_channels_last, Flag{},
                  "Images are NHWC, not NCHW: false.");
}

void image_overlap_fields(Fields& fields, ConvolutionalWorkload& workload) {
  fields.optional("data", workload.overlap_data, Flag{}, "Sums of gradients: true.");
  fields.optional("bucket", workload.bucket, SomeAmount{},
                  "Size of a bucket of gradients: 25 MiB.");
}

void image_plan_fields(Fields& fields, ConvolutionalWorkload& workload) {
  fields.optional("gradient_compression", workload.compression, Group{compression_fields},
                  "What data ranks send instead of whole gradients.");
}

}  // namespace

ParallelPlan gradient_plan(const ConvolutionalWorkload& workload, int ranks) {
  return {.data = ranks, .compression = workload.compression};
}

SoftwareProfile gradient_software() {
  SoftwareProfile software;
  software.gradient_bytes = 4;
  return software;
}

void convolutional_workload_fields(Fields& fields, ConvolutionalWorkload& workload) {
  fields.required("source", std::ignore, Unread{}, "Where the run is from.");
  std::size_t kind = 0;
  fields.required("kind", kind, Choice{kWorkloadKinds}, "`convolutional`.");
  fields.required("title", workload.title, Text{}, "Name for people.");
  fields.required("model", workload.model, Composed{convolutional_fields}, "Model.");
  plain_precision_field(fields, workload.precision, "Precision of images and products.");
  fields.optional("plan", workload, Group{image_plan_fields}, "How gradients are sent.");
  fields.required("batch", workload, Group{image_batch_fields}, "Samples.");
  fields.optional("optimizer", workload.optimizer, Choice{kImageOptimizers},
                  "With momentum, or two moments: `sgd`.");
  fields.optional("overlap", workload, Group{image_overlap_fields},
                  "What runs beside the backward pass.");
}

ConvolutionalWorkload load_convolutional_workload(const std::filesystem::path& file,
                                                  const std::filesystem::path& models,
                                                  const std::vector<std::string>& settings) {
  ConfigDocument document = ConfigDocument::load(file);
  const std::string model_name = compose_workload(document, models, settings);
  ConvolutionalWorkload workload;
  workload.name = file.stem().string();
  read_fields(document.root(), workload, convolutional_workload_fields);
  workload.model.name = model_name;
  document.finish();
  return workload;
}

}  // namespace trainyard
