// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/recommender_model.h"

#include <string>

#include "sim/config_error.h"
#include "support/recommenders.h"

namespace trainyard {
namespace {

const std::string kGood =
    "title: T\nsource: s\ndense_features: 13\nwidth: 4\ntables: [{rows: 9}]\n"
    "bottom: [8, 4]\ninteraction: {kind: dot}\ntop: [2, 1]\n";

std::string error_of(std::string text, const std::string& old, const std::string& other) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  text.replace(at, old.size(), other);
  ConfigDocument document = ConfigDocument::parse(text, "m.yaml");
  try {
    RecommenderModel model;
    read_fields(document.root(), model, recommender_fields);
    document.finish();
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("shipped recommendation models have the parameters of their sources", "[recommender]") {
  // Weights and biases by hand: 13 x 512 + 512 and so on; three cross layers of 2 x 3456 x 512 +
  // 3456.
  const RecommenderModel dcn = shipped_recommender("dlrm-dcnv2");
  REQUIRE(dcn.bottom_parameters() == 171'392);
  REQUIRE(dcn.cross_parameters() == 10'627'200);
  REQUIRE(dcn.top_parameters() == 5'245'953);
  REQUIRE(dcn.table_parameters() == 204'184'588 * std::int64_t{128});
  // Published: 4.2 and 22.8 billion parameters.
  REQUIRE(shipped_recommender("dlrm-small").table_parameters() / 100'000'000 == 41);
  REQUIRE(shipped_recommender("dlrm-large").table_parameters() / 100'000'000 == 227);
  // 27 vectors in pairs, beside that of the bottom MLP.
  REQUIRE(shipped_recommender("dlrm-mlperf").interacted() == 128 + 351);
  REQUIRE(shipped_recommender("dlrm-mlperf").top_layers().front().inputs == 479);
}

TEST_CASE("operations of a sample are three times those of its products", "[recommender]") {
  const RecommenderModel model = small_recommender();
  // Four vectors of 16: six pairs.
  const double products = 16 * 32 + 32 * 16 + 6 * 16 + (16 + 6) * 32 + 32;
  REQUIRE(training_flops(model) == 6.0 * products);
  RecommenderModel cross = model;
  cross.cross = CrossNetwork{.layers = 2, .rank = 8};
  REQUIRE(training_flops(cross) == 6.0 * (16 * 32 + 32 * 16 + 2 * 2 * 8 * 64 + 64 * 32 + 32));
}

TEST_CASE("mistakes in a recommendation model give one line", "[recommender]") {
  REQUIRE(error_of(kGood, "bottom", "bottom") == "no error");
  REQUIRE(error_of(kGood, "[8, 4]", "[8, 5]") ==
          "m.yaml:6:9: bottom: expected 4 as outputs of the last layer, the width, found 5");
  REQUIRE(error_of(kGood, "[2, 1]", "[]") ==
          "m.yaml:8:6: top: expected 1 as outputs of the last layer, the prediction, found no "
          "layer");
  REQUIRE(error_of(kGood, "[{rows: 9}]", "[]") ==
          "m.yaml:5:9: tables: expected at least one table, found none");
  REQUIRE(error_of(kGood, "rows: 9", "rows: 9, colums: 2").find("unknown key") !=
          std::string::npos);
  REQUIRE(error_of(kGood, "[{rows: 9}]", "[{rows: 1000000000000, count: 90000}]") ==
          "m.yaml:5:9: tables: expected at most 10^15 elements, found 3.6e+17");
  REQUIRE(error_of(kGood, "kind: dot", "kind: cross").find("layers") != std::string::npos);
}

}  // namespace trainyard
