// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/results/groups_report.h"

#include <nlohmann/json.hpp>

#include "report/formats/csv.h"

namespace trainyard {

TEST_CASE("a row of a group has its own time, bandwidth and slowdown", "[groups]") {
  GroupsReport report;
  report.cluster = "a cluster";
  report.rows.push_back({.group = "rail",
                         .ranks = "0-24:8",
                         .count = 4,
                         .size = Bytes(3'000'000),
                         .algorithm = "ring",
                         .channels = 2,
                         .start = microseconds(10),
                         .end = microseconds(40),
                         .alone = microseconds(20)});
  report.runs.push_back({.size = {}, .makespan = microseconds(40)});
  const auto json = nlohmann::json::parse(render(document_of(report), Format::Json));
  const auto& row = json["rows"][0];
  REQUIRE(row["time_us"] == 30.0);
  REQUIRE(row["slowdown"] == 1.5);
  REQUIRE(row["algbw_gb_per_s"].get<double>() == Approx(100.0));
  REQUIRE(row["busbw_gb_per_s"].get<double>() == Approx(150.0));  // 2 (n - 1) / n.
  REQUIRE(json["runs"][0]["makespan_us"] == 40.0);
  REQUIRE(parse_csv(render(document_of(report), Format::Csv)).size() == 2);
  const std::string text = render(document_of(report), Format::Table);
  REQUIRE(text.find("# communicators 1, on one network at once\n") != std::string::npos);
  REQUIRE(text.find("makespan") != std::string::npos);
}

}  // namespace trainyard
