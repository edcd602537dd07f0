// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/convolutional_run.h"

#include <cmath>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/convolutional.h"

namespace trainyard {
namespace {

// A measured throughput, of NVIDIA/DeepLearningExamples: PyTorch/Classification/ConvNets/
// resnet50v1.5/README.md with the batches of ../configs.yml, and TensorFlow2/Segmentation/
// UNet_Medical/README.md.
struct MeasuredImages {
  std::string model;
  std::string cluster;
  int gpus = 1;
  Precision precision = Precision::Fp16;
  std::int64_t batch = 1;  // Images of each GPU.
  double images_per_s = 0.0;
  double error = 0.0;  // ln of predicted over measured time, as recorded.
};

const std::vector<MeasuredImages>& measured_images() {
  constexpr auto kMixed = Precision::Fp16;
  static const std::vector<MeasuredImages> rows{
      {"resnet-50", "dgx-1", 1, Precision::Fp32, 112, 367.0, 0.0977},
      {"resnet-50", "dgx-1", 8, Precision::Fp32, 112, 2855.0, 0.0736},
      {"resnet-50", "dgx-1", 1, kMixed, 256, 1200.0, 0.0968},
      {"resnet-50", "dgx-1", 8, kMixed, 256, 8322.0, -0.0404},
      {"resnet-50", "dgx-a100", 1, Precision::Tf32, 256, 938.0, -0.0416},
      {"resnet-50", "dgx-a100", 8, Precision::Tf32, 256, 7248.0, -0.0734},
      {"resnet-50", "dgx-a100", 1, kMixed, 256, 2470.0, -0.0909},
      {"resnet-50", "dgx-a100", 8, kMixed, 256, 16621.0, -0.2560},
      {"resnet-50", "dgx-h200", 1, Precision::Bf16, 256, 4735.0, 0.0359},
      {"resnet-50", "dgx-h100", 1, Precision::Bf16, 256, 3995.0, 0.1498},
      {"unet", "dgx-1", 1, Precision::Fp32, 8, 17.91, -0.0764},
      {"unet", "dgx-1", 8, Precision::Fp32, 8, 137.11, -0.1168},
      {"unet", "dgx-1", 1, kMixed, 8, 59.58, 0.4440},
      {"unet", "dgx-1", 8, kMixed, 8, 368.88, 0.1949},
  };
  return rows;
}

double error_of_images(const MeasuredImages& row) {
  static const nccl::Profile profile =
      nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  ConvolutionalWorkload workload = image_workload(shipped_network(row.model), row.batch);
  workload.precision = row.precision;
  workload.has_channels_last = row.precision == Precision::Fp16;
  workload.optimizer =
      row.model == "unet" ? ConvolutionalOptimizer::Adam : ConvolutionalOptimizer::Sgd;
  StepTables tables = image_tables();
  tables.nccl = &profile;
  const ConvolutionalRun run = run_convolutional(
      shipped_cluster(row.cluster, {.nodes = 1, .gpus_per_node = row.gpus}), workload, tables);
  return std::log(run.step.time.seconds() * row.images_per_s /
                  static_cast<double>(row.batch * row.gpus));
}

}  // namespace

TEST_CASE("measured throughputs of convolutional networks are as far off as recorded",
          "[convolutional]") {
  for (const MeasuredImages& row : measured_images()) {
    const double error = error_of_images(row);
    INFO(row.model << " " << row.cluster << " " << row.gpus << " " << to_string(row.precision)
                   << " " << error);
    REQUIRE(error == Approx(row.error).margin(0.0006));
  }
}

TEST_CASE("gradients that are not overlapped take longer, and one GPU sends none",
          "[convolutional]") {
  ConvolutionalWorkload workload = image_workload(shipped_network("resnet-50"), 64);
  const Cluster cluster = shipped_cluster("dgx-1", {.nodes = 2});
  const ConvolutionalRun beside = run_convolutional(cluster, workload, image_tables());
  workload.overlap_data = false;
  const ConvolutionalRun exposed = run_convolutional(cluster, workload, image_tables());
  REQUIRE(exposed.step.time > beside.step.time);
  REQUIRE(exposed.step.parts[StepPart::Data] > beside.step.parts[StepPart::Data]);
  REQUIRE(exposed.step.parts.total() == exposed.step.time);
  const ConvolutionalRun alone = run_convolutional(
      shipped_cluster("dgx-1", {.nodes = 1, .gpus_per_node = 1}), workload, image_tables());
  REQUIRE(alone.calls == 0);
  REQUIRE(alone.step.parts[StepPart::Data] == SimTime());
}

TEST_CASE("all traffic of a convolutional network on one network takes as long as each call",
          "[convolutional]") {
  ConvolutionalWorkload workload = image_workload(shipped_network("resnet-50"), 64);
  workload.overlap_data = false;
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  StepTables tables = image_tables();
  const SimTime alone = run_convolutional(cluster, workload, tables).step.time;
  tables.shares_network = true;
  REQUIRE(run_convolutional(cluster, workload, tables).step.time == alone);
}

TEST_CASE("batches of more images than anybody could count are refused", "[convolutional]") {
  const ConvolutionalWorkload workload = image_workload(shipped_network("unet"), 1'000'000);
  REQUIRE_THROWS_AS(
      run_convolutional(shipped_cluster("dgx-1", {.nodes = 1}), workload, image_tables()),
      ConfigError);
}

}  // namespace trainyard
