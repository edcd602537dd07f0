// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <nlohmann/json.hpp>

#include "sim/schema.h"
#include "support/schema_text.h"

namespace trainyard {
namespace {

Schema of_limits(std::string limits, std::string words) {
  Schema schema;
  schema.limits = std::move(limits);
  schema.words = std::move(words);
  return schema;
}

Schema example() {
  Schema schema;
  schema.add("title", "A \"name\".", true) = of_limits("\"type\": \"string\"", "");
  Schema& list = schema.add("wheels", "Wheels.", false);
  Schema& wheel = list.items.emplace_back();
  wheel.add("spokes", "Spokes.", true) = of_limits("\"type\": \"integer\"", "1 to 9");
  Schema& prices = schema.add("prices", "Prices.", false);
  prices.is_map = true;
  prices.named.push_back(of_limits("\"type\": \"number\"", ""));
  return schema;
}

}  // namespace

TEST_CASE("a schema is written as a JSON Schema") {
  const auto json = nlohmann::json::parse(to_json(example(), "Cart"));
  REQUIRE(json == nlohmann::json::parse(R"({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Cart",
  "type": "object",
  "properties": {
    "title": {
      "description": "A \"name\".",
      "type": "string"
    },
    "wheels": {
      "description": "Wheels.",
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "spokes": {
            "description": "Spokes.",
            "type": "integer"
          }
        },
        "required": ["spokes"],
        "additionalProperties": false
      }
    },
    "prices": {
      "description": "Prices.",
      "type": "object",
      "additionalProperties": {
        "type": "number"
      }
    }
  },
  "required": ["title"],
  "additionalProperties": false
}
)"));
}

TEST_CASE("a schema is written as a list of keys") {
  REQUIRE(to_markdown(example()) ==
          "| key | | meaning |\n|---|---|---|\n"
          "| `title` | required | A \"name\". |\n"
          "| `wheels` |  | Wheels. |\n"
          "| `wheels[].spokes` | required | Spokes. 1 to 9 |\n"
          "| `prices` |  | Prices. |\n");
}

TEST_CASE("a key that is described again keeps its place") {
  Schema schema;
  schema.add("a", "First.", false);
  schema.add("b", "Second.", false);
  schema.add("a", "First.", true);
  REQUIRE(schema.keys.size() == 2);
  REQUIRE(schema.keys[0].is_required);
}

}  // namespace trainyard
