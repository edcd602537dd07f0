// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/serve/served_options.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace trainyard {

TEST_CASE("a page gets the tables of commands, the names of configs and short words of settings",
          "[serve]") {
  const nlohmann::json json = nlohmann::json::parse(served_options({"mine.yaml"}));
  REQUIRE(json["files"] == nlohmann::json{"mine.yaml"});
  const auto& step = json["commands"][0];
  REQUIRE(step["name"] == "step");
  REQUIRE(step["reports"] == true);
  REQUIRE(step["swept"] == true);
  const auto option = [&](const std::string& name) {
    for (const auto& row : step["options"]) {
      if (row["name"] == name) {
        return row;
      }
    }
    return nlohmann::json();
  };
  REQUIRE(option("method")["choices"] == nlohmann::json{"closed-forms", "graph"});
  REQUIRE(option("costs")["value"] == "");
  REQUIRE(option("set")["repeats"] == true);
  REQUIRE(option("output").is_null());
  REQUIRE(option("format").is_null());
  REQUIRE(step["settings"][0] == nlohmann::json{{"key", "plan.tensor"}, {"value", "N"}});
  for (const auto& [name, known] :
       {std::pair{"cluster", "dgx-h100"}, std::pair{"workload", "llama-3-8b"},
        std::pair{"model", "grok-1"}, std::pair{"file", "incast"}, std::pair{"control", "swift"}}) {
    INFO(name);
    REQUIRE(std::ranges::count(json["names"][name], known) == 1);
  }
}

}  // namespace trainyard
