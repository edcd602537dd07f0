// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/workload/convolutional_workload.h"

#include <string>

#include "sim/config_error.h"
#include "support/paths.h"

namespace trainyard {
namespace {

const std::filesystem::path kNetworks = source_dir() / "configs/workloads/convolutional";

ConvolutionalWorkload load_images(const std::vector<std::string>& settings,
                                  const std::string& name = "resnet-50") {
  return load_convolutional_workload(source_dir() / "configs/workloads" / (name + ".yaml"),
                                     kNetworks, settings);
}

}  // namespace

TEST_CASE("shipped convolutional workloads are read, with settings", "[convolutional]") {
  const ConvolutionalWorkload workload = load_images({"batch.micro=112", "precision=fp32"});
  REQUIRE(workload.model.name == "resnet-50");
  REQUIRE(workload.batch == 112);
  REQUIRE(workload.precision == Precision::Fp32);
  REQUIRE(workload.overlap_data);
  REQUIRE(workload.bucket == mib(25));
  REQUIRE(load_images({}, "unet").optimizer == ConvolutionalOptimizer::Adam);
  REQUIRE(load_images({"overlap.bucket=1 MiB"}, "yolov5s").bucket == mib(1));
}

TEST_CASE("convolutional workloads are read strictly", "[convolutional]") {
  for (const char* const setting : {"batch.micro=0", "precision=fp8", "optimizer=lamb",
                                    "overlap.bucket=0 B", "batch.global=8"}) {
    INFO(setting);
    REQUIRE_THROWS_AS(load_images({setting}), ConfigError);
  }
  REQUIRE(is_workload_of(source_dir() / "configs/workloads/unet.yaml", "convolutional"));
}

}  // namespace trainyard
