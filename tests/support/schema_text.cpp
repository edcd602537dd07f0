// SPDX-License-Identifier: Apache-2.0
#include "support/schema_text.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

namespace trainyard {
namespace {

using Json = nlohmann::ordered_json;

// Adds the members of the schema. Recursion is as deep as the tables of fields, which end.
Json json_of(const Schema& schema, Json json = Json::object()) {
  json.update(Json::parse("{" + schema.limits + "}"));
  for (const Schema& part : schema.alternatives) {
    json["anyOf"].push_back(json_of(part));
  }
  if (!schema.items.empty()) {
    json["type"] = "array";
    json["items"] = json_of(schema.items.front());
  }
  if (schema.is_map) {
    json["type"] = "object";
    for (const SchemaKey& key : schema.keys) {
      json["properties"][key.name] = json_of(key.value, {{"description", key.text}});
      if (key.is_required) {
        json["required"].push_back(key.name);
      }
    }
    json["additionalProperties"] =
        schema.named.empty() ? Json(false) : json_of(schema.named.front());
  }
  return json;
}

void add_rows(const Schema& schema, const std::string& path, std::string& rows) {
  const auto below = [&](std::string_view name) {
    return path + (path.empty() ? "" : ".") + std::string(name);
  };
  for (const SchemaKey& key : schema.keys) {
    rows +=
        fmt::format("| `{}` | {} | {}{} |\n", below(key.name), key.is_required ? "required" : "",
                    key.text, key.value.words.empty() ? "" : " " + key.value.words);
    if (!key.value.is_cited) {
      add_rows(key.value, below(key.name), rows);
    }
  }
  for (const Schema& part : schema.alternatives) {
    add_rows(part, path, rows);
  }
  for (const Schema& part : schema.items) {
    add_rows(part, path + "[]", rows);
  }
  for (const Schema& part : schema.named) {
    add_rows(part, below("NAME"), rows);
  }
}

}  // namespace

std::string to_json(const Schema& schema, std::string_view title) {
  return json_of(schema, {{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", title}})
             .dump(2) +
         "\n";
}

std::string to_markdown(const Schema& schema) {
  std::string rows = "| key | | meaning |\n|---|---|---|\n";
  add_rows(schema, "", rows);
  return rows;
}

}  // namespace trainyard
