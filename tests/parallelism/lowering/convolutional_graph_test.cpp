// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/lowering/convolutional_graph.h"

#include "support/convolutional.h"

namespace trainyard {

TEST_CASE("buckets close as those of DistributedDataParallel do", "[convolutional]") {
  const ConvolutionalModel model = shipped_network("resnet-50");
  const std::vector<GradientBucket> buckets = gradient_buckets(model, mib(25));
  // The bias and the weights of the last layer alone are more than the first MiB.
  REQUIRE(buckets.front().size == Bytes(4 * (1000 + 2048 * 1000)));
  REQUIRE(buckets.front().layer == model.layers.size() - 1);
  Bytes sum;
  for (const GradientBucket& bucket : buckets) {
    sum += bucket.size;
    if (&bucket != &buckets.front() && &bucket != &buckets.back()) {
      REQUIRE(bucket.size >= mib(25));
    }
  }
  REQUIRE(sum == Bytes(4 * 25'557'032));
  REQUIRE(buckets.size() == 5);
  REQUIRE(buckets.back().layer == 0);
  REQUIRE(gradient_buckets(model, gib(1)).size() == 2);
}

TEST_CASE("one rank stands for all, and takes as long as all of them", "[convolutional]") {
  const Cluster cluster = shipped_cluster("dgx-1", {.nodes = 1});
  const ConvolutionalWorkload workload = image_workload(shipped_network("resnet-50"), 32);
  StepTables tables = image_tables();
  const ConvolutionalRun folded = run_convolutional(cluster, workload, tables);
  REQUIRE(folded.graph.present().size() == 1);
  tables.slow_rank = SlowRank{.rank = 3, .ppm = 1'000'000};
  const ConvolutionalRun all = run_convolutional(cluster, workload, tables);
  REQUIRE(all.graph.present().size() == 8);
  REQUIRE(all.step.time == folded.step.time);
}

TEST_CASE("compressed gradients of a network are smaller, at the price of kernels",
          "[convolutional]") {
  const Cluster cluster = shipped_cluster("dgx-1", {.nodes = 2});
  ConvolutionalWorkload workload = image_workload(shipped_network("resnet-50"), 32);
  workload.overlap_data = false;
  const ConvolutionalRun plain = run_convolutional(cluster, workload, image_tables());
  REQUIRE_FALSE(plain.compression);
  workload.compression = GradientCompression{};
  const ConvolutionalRun cast = run_convolutional(cluster, workload, image_tables());
  REQUIRE(cast.compression->sent.count() * 2 == Approx(cast.compression->uncompressed.count()));
  const SimTime casts = cast.step.parts[StepPart::Casts] - plain.step.parts[StepPart::Casts];
  REQUIRE(casts > SimTime());
  REQUIRE(casts.seconds() <= cast.compression->kernels.seconds() * 1.0001);
  REQUIRE(cast.step.time < plain.step.time);
  REQUIRE(cast.memory[MemoryClass::Buffers] == plain.memory[MemoryClass::Buffers]);
  workload.compression = {.method = CompressionMethod::PowerSgd, .rank = 4};
  const ConvolutionalRun power = run_convolutional(cluster, workload, image_tables());
  // Vectors are sent as they are; each of the 82,491 rows and columns of all others is 4 elements.
  REQUIRE(static_cast<double>(power.compression->uncompressed.count()) ==
          Approx(static_cast<double>(power.compression->sent.count()) * 25'557'032.0 /
                 (54'120.0 + 4.0 * 82'491.0)));
  REQUIRE(power.memory[MemoryClass::Buffers] - plain.memory[MemoryClass::Buffers] ==
          power.compression->buffers);
  REQUIRE(power.compression->buffers > Bytes(4 * 25'557'032));
}

TEST_CASE("every part of a convolutional network's step has a name", "[convolutional]") {
  const ConvolutionalRun run =
      run_convolutional(shipped_cluster("dgx-1", {.nodes = 1}),
                        image_workload(shipped_network("unet"), 1), image_tables());
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const auto part = static_cast<StepPart>(index);
    INFO(to_string(part));
    REQUIRE((run.step.parts[part] == SimTime() || !convolutional_part_name(part).empty()));
  }
  REQUIRE(convolutional_part_name(StepPart::Linear) == "convolution");
}

}  // namespace trainyard
