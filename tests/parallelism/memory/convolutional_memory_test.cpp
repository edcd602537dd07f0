// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/memory/convolutional_memory.h"

#include "support/convolutional.h"

namespace trainyard {

// NVIDIA's recipe runs both on a V100 with 16 GB (DeepLearningExamples, ConvNets/configs.yml).
TEST_CASE("the batches that NVIDIA trains with on 16 GB fit", "[convolutional]") {
  ConvolutionalWorkload workload = image_workload(shipped_network("resnet-50"), 256);
  const Bytes size = device_capacity(shipped_catalogue().gpus().at("V100-SXM2-16GB").memory.value);
  REQUIRE(convolutional_memory(workload, 8).device() <= size);
  workload.batch = 512;
  REQUIRE(convolutional_memory(workload, 8).device() > size);
  workload.batch = 112;
  workload.precision = Precision::Fp32;
  REQUIRE(convolutional_memory(workload, 8).device() <= size);
}

TEST_CASE("weights, gradients and momenta are in 32 bits, and copies in 16", "[convolutional]") {
  ConvolutionalWorkload workload = image_workload(shipped_network("resnet-50"), 1);
  const MemoryUse mixed = convolutional_memory(workload, 1);
  REQUIRE(mixed[MemoryClass::Weights] == Bytes(6 * 25'557'032L));
  REQUIRE(mixed[MemoryClass::OptimizerStates] == mixed[MemoryClass::Gradients]);
  REQUIRE(mixed[MemoryClass::Buffers] == Bytes());
  workload.precision = Precision::Fp32;
  workload.optimizer = ConvolutionalOptimizer::Adam;
  const MemoryUse wide = convolutional_memory(workload, 8);
  REQUIRE(wide[MemoryClass::Weights] == Bytes(4 * 25'557'032L));
  REQUIRE(wide[MemoryClass::OptimizerStates] == wide[MemoryClass::Gradients] * 2);
  REQUIRE(wide[MemoryClass::Buffers] == wide[MemoryClass::Gradients]);
  REQUIRE(wide[MemoryClass::Activations] > mixed[MemoryClass::Activations]);
}

}  // namespace trainyard
