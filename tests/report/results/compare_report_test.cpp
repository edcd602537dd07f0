// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/results/compare_report.h"

#include <nlohmann/json.hpp>

#include "report/formats/csv.h"

namespace trainyard {
namespace {

RunComparison example() {
  return {.what = "steps",
          .before = "a.json",
          .after = "b.json",
          .inputs = {{.key = "plan.tensor", .before = "8", .after = ""}},
          .resources = {},
          .figures = {},
          .times = {{.label = "step",
                     .before_how = "",
                     .after_how = "",
                     .before = seconds(2),
                     .after = seconds(1),
                     .parts = {{.name = "linear", .before = seconds(2), .after = seconds(1)},
                               {.name = "tensor", .before = {}, .after = {}}}}},
          .notes = {"a note"}};
}

}  // namespace

TEST_CASE("a comparison has what changed, and parts that are not nothing", "[compare-report]") {
  const std::string text = render(document_of(example()), Format::Table);
  REQUIRE(text.find("  plan.tensor: 8 -> nothing\n") != std::string::npos);
  REQUIRE(text.find("-50.00") != std::string::npos);
  REQUIRE(text.find("tensor  ") == std::string::npos);
  REQUIRE(text.find("# Note: a note\n") != std::string::npos);
}

TEST_CASE("a comparison has exact differences in JSON and all parts in CSV", "[compare-report]") {
  const auto json = nlohmann::json::parse(render(document_of(example()), Format::Json));
  REQUIRE(json["times"][0]["difference_ps"] == -1'000'000'000'000);
  REQUIRE(json["inputs"][0]["b"].is_null());
  REQUIRE(parse_csv(render(document_of(example()), Format::Csv)).size() == 4);
}

}  // namespace trainyard
