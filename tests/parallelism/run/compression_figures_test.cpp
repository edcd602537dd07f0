// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/compression_figures.h"

#include <string>

#include "parallelism/model/pipeline_stages.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

std::optional<CompressionFigures> figures_of(const std::string& software,
                                             const std::optional<GradientCompression>& compression,
                                             int data = 4) {
  const Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  const ParallelPlan plan{.data = data, .compression = compression};
  return compression_figures(place_parameters(model, pipeline_stages(plan, model), plan, 0), plan,
                             shipped_software(software), shipped_compute("H100-SXM", software));
}

}  // namespace

TEST_CASE("figures say what is sent instead of what", "[compression-figures]") {
  const auto cast = figures_of("pytorch-native", GradientCompression{});
  REQUIRE(cast);
  REQUIRE(static_cast<double>(cast->sent.count()) ==
          Approx(static_cast<double>(cast->uncompressed.count()) / 2.0));
  // A ring sends 2 (r - 1) / r of the gradients of 8.03 billion parameters.
  REQUIRE(static_cast<double>(cast->uncompressed.count()) ==
          Approx(8.03e9 * 4.0 * 2.0 * 3.0 / 4.0).epsilon(0.001));
  REQUIRE(cast->note().find("not modelled") != std::string::npos);
  const auto top = figures_of(
      "pytorch-native", GradientCompression{.method = CompressionMethod::TopK, .ratio = 0.01});
  // Each rank gets 1 % of values and places from the three others, instead of 1.5 times all.
  REQUIRE(static_cast<double>(top->sent.count()) ==
          Approx(0.01 * 2.0 * 3.0 / 1.5 * static_cast<double>(top->uncompressed.count()))
              .epsilon(0.001));
  REQUIRE(top->buffers > cast->buffers);
  REQUIRE_FALSE(figures_of("pytorch-native", std::nullopt));
  REQUIRE_FALSE(figures_of("pytorch-native", GradientCompression{}, 1));
  REQUIRE_FALSE(figures_of("nemo", GradientCompression{}));
}

}  // namespace trainyard
