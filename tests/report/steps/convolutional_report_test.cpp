// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/convolutional_report.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "support/convolutional.h"

namespace trainyard {
namespace {

struct RenderedImages {
  ConvolutionalWorkload workload = image_workload(shipped_network("resnet-50"), 256);
  ConvolutionalRun run =
      run_convolutional(shipped_cluster("dgx-1", {.nodes = 1}), workload, image_tables());

  [[nodiscard]] std::string as(Format format) const {
    return render(
        document_of({.setup = {.cluster = "DGX", .workload = "resnet", .gpus = 8},
                     .workload = &workload,
                     .run = &run,
                     .interval = TimeInterval{.low = run.step.time, .high = run.step.time * 2},
                     .notes = {"a note"}}),
        format);
  }
};

}  // namespace

TEST_CASE("the report of a convolutional network's step counts images", "[convolutional]") {
  const RenderedImages rendered;
  const nlohmann::json json = nlohmann::json::parse(rendered.as(Format::Json));
  std::int64_t sum = 0;
  for (const auto& part : json["breakdown_ps"]) {
    sum += part.get<std::int64_t>();
  }
  REQUIRE(sum == json["step_time_ps"].get<std::int64_t>());
  const double seconds = json["step_time_s"].get<double>();
  REQUIRE(json["images_per_s"].get<double>() == Approx(8 * 256 / seconds));
  REQUIRE(json["step_time_high_s"].get<double>() == Approx(2 * seconds));
  REQUIRE(json["network"]["parameters"] == 25'557'032);
  REQUIRE(json["plan"]["global_batch"] == 2048);
  REQUIRE(json["plan"]["buckets"] == 5);
  for (const char* const key : {"convolution", "memory_bound", "data", "optimizer"}) {
    REQUIRE(json["breakdown_s"].contains(key));
  }
}

TEST_CASE("text and CSV of a convolutional network's step say the same", "[convolutional]") {
  const RenderedImages rendered;
  const std::string text = rendered.as(Format::Table);
  REQUIRE(text.find("layers of 2.556e+07 parameters, 4.089e+09 products for an image of 3 x 224 x "
                    "224\n") != std::string::npos);
  REQUIRE(text.find("# 256 images on each GPU, optimizer sgd\n") != std::string::npos);
  const std::string csv = rendered.as(Format::Csv);
  REQUIRE(
      csv.rfind("cluster,workload,gpus,step_time_s,step_time_low_s,step_time_high_s,images_per_s",
                0) == 0);
}

}  // namespace trainyard
