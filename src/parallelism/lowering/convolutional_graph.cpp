// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/convolutional_graph.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "parallelism/lowering/pass_units.h"
#include "parallelism/operators/convolution_time.h"
#include "parallelism/operators/operator_time.h"
#include "parallelism/walk/gradient_compression.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {
namespace {

constexpr std::int64_t kGradientBytes = 4;
// Read and written for each parameter in 32 bits: weight, gradient and momentum, or two moments, of
// which all but the gradient are written.
constexpr std::array<double, 2> kOptimizerBytes{20.0, 28.0};
// Gradients are copied into their buckets and back (DistributedDataParallel without
// gradient_as_bucket_view), and in 16 bits their scale is taken off (torch.amp.GradScaler).
constexpr double kBucketBytes = 16.0;
constexpr double kUnscaleBytes = 8.0;

SimTime optimizer_time(const ConvolutionalJob& job) {
  double bytes = kOptimizerBytes.at(static_cast<std::size_t>(job.workload.optimizer));
  bytes += job.ranks > 1 ? kBucketBytes : 0.0;
  bytes += job.workload.precision == Precision::Fp16 ? kUnscaleBytes : 0.0;
  return OperatorTimes(job.rates).memory(bytes *
                                         static_cast<double>(job.workload.model.parameters())) +
         job.rates.gemm_start;
}

class ConvolutionalLowering {
 public:
  explicit ConvolutionalLowering(const ConvolutionalJob& job)
      : job_(job),
        plan_(gradient_plan(job.workload, job.ranks)),
        graph_(job.is_folded ? OperationGraph(job.ranks, {0}) : OperationGraph(job.ranks)) {
    std::vector<int> all(static_cast<std::size_t>(job.ranks));
    std::iota(all.begin(), all.end(), 0);
    data_ = graph_.add_communicator("data", std::move(all));
    if (job.ranks > 1) {
      buckets_ = gradient_buckets(job.workload.model, job.workload.bucket, plan_);
    }
    for (const ImageLayer& layer : job.workload.model.layers) {
      const ImageLayerTimes times =
          image_layer_times(layer, job.workload.batch, job.rates, job.workload.has_channels_last);
      forward_.push_back(graph_.add_mix(times.forward));
      backward_.push_back(graph_.add_mix(times.backward));
    }
  }

  OperationGraph all() && {
    const std::vector<int> ranks(graph_.present().begin(), graph_.present().end());
    for (const int rank : ranks) {
      add_rank(rank);
    }
    return std::move(graph_);
  }

 private:
  void add_rank(int rank);
  // Adds the kernels before the calls of a bucket, if there are any; returns the last operation.
  OperationId compress(StreamId compute, const GradientBucket& bucket, OperationId done);
  // The kernels behind the calls of all buckets.
  [[nodiscard]] SimTime decompress_time() const;
  [[nodiscard]] CompressionTimes kernels(const GradientBucket& bucket) const {
    return compression_times(bucket.parameters, plan_, software_, OperatorTimes(job_.rates));
  }

  const ConvolutionalJob& job_;
  ParallelPlan plan_;
  SoftwareProfile software_ = gradient_software();
  OperationGraph graph_;
  CommunicatorId data_;
  std::vector<GradientBucket> buckets_;
  std::vector<std::uint32_t> forward_;  // Mixes by layer.
  std::vector<std::uint32_t> backward_;
};

void ConvolutionalLowering::add_rank(int rank) {
  const std::vector<ImageLayer>& layers = job_.workload.model.layers;
  const StreamId compute = graph_.add_stream(rank, "compute");
  const StreamId data = graph_.add_stream(rank, "data");
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    (void)graph_.add_compute(compute, layers[layer].name, forward_[layer]);
  }
  const bool overlaps = job_.workload.overlap_data;
  std::vector<OperationId> ready(buckets_.size());
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    const OperationId done =
        graph_.add_compute(compute, layers[layer].name + " backward", backward_[layer]);
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
      if ((overlaps ? buckets_[bucket].layer : 0) == layer) {
        ready[bucket] = compress(compute, buckets_[bucket], done);
      }
    }
  }
  std::vector<OperationId> summed;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    const DataCalls calls = data_calls(buckets_[bucket].parameters, plan_, software_);
    for (const GroupCall& call : calls.reduce) {
      const OperationId id = graph_.add_collective(
          data, fmt::format("bucket {}", bucket), StepPart::Data,
          {.communicator = data_,
           .operation = call.operation,
           .size = Bytes(call.elements) * call.element_bytes,
           .slowdown_ppm = overlaps ? slowdown_of(job_.rates.overlapped_data) : 0});
      graph_.add_dependency(ready[bucket], id);
      summed.push_back(id);
    }
  }
  std::vector<OperationId> last;
  if (const SimTime time = decompress_time(); time > SimTime()) {
    last.push_back(graph_.add_compute(compute, "decompress gradients", StepPart::Casts, time));
  }
  last.push_back(
      graph_.add_compute(compute, "optimizer", StepPart::Optimizer, optimizer_time(job_)));
  for (const OperationId id : summed) {
    graph_.add_dependency(id, last.front());
  }
}

OperationId ConvolutionalLowering::compress(StreamId compute, const GradientBucket& bucket,
                                            OperationId done) {
  const SimTime time = kernels(bucket).before;
  return time > SimTime() ? graph_.add_compute(compute, "compress gradients", StepPart::Casts, time)
                          : done;
}

SimTime ConvolutionalLowering::decompress_time() const {
  SimTime sum;
  for (const GradientBucket& bucket : buckets_) {
    sum += kernels(bucket).behind;
  }
  return sum;
}

}  // namespace

std::vector<GradientBucket> gradient_buckets(const ConvolutionalModel& model, Bytes limit,
                                             const ParallelPlan& plan) {
  std::vector<GradientBucket> buckets;
  Bytes size;
  RankParameters parameters;
  const auto close = [&](std::size_t layer) {
    buckets.push_back({.size = size, .parameters = parameters, .layer = layer});
    size = Bytes();
    parameters = {};
  };
  std::size_t last = 0;  // The layer of the last gradient.
  for (std::size_t layer = model.layers.size(); layer-- > 0;) {
    const std::vector<std::int64_t>& tensors = model.layers[layer].tensors;
    for (std::size_t tensor = tensors.size(); tensor-- > 0;) {
      size += Bytes(tensors[tensor] * kGradientBytes);
      parameters += tensor_parameters(model.layers[layer], tensor, plan);
      last = layer;
      if (size >= (buckets.empty() ? std::min(limit, kFirstBucket) : limit)) {
        close(layer);
      }
    }
  }
  if (size > Bytes()) {
    close(last);
  }
  return buckets;
}

OperationGraph lower_convolutional(const ConvolutionalJob& job) {
  return ConvolutionalLowering(job).all();
}

std::string_view convolutional_part_name(StepPart part) {
  constexpr std::array<std::string_view, kStepParts> kNames{
      "convolution", "",          "memory_bound", "casts", "", "", "", "", "", "", "data", "", "",
      "bubble",      "optimizer", "jitter",       ""};
  return kNames[static_cast<std::size_t>(part)];
}

}  // namespace trainyard
