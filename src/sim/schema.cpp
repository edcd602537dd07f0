// SPDX-License-Identifier: Apache-2.0
#include "sim/schema.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "sim/printable.h"

namespace trainyard {
namespace {

// Escapes what a description may contain: quotes and backslashes.
std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    result += letter == '"' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
  }
  return result + "\"";
}

std::string on_lines(const std::vector<std::string>& members, const std::string& indent,
                     std::string_view open, std::string_view close) {
  std::string result(open);
  for (const std::string& member : members) {
    result += (&member == &members.front() ? "\n" : ",\n") + indent + "  " + member;
  }
  return result + (members.empty() ? "" : "\n" + indent) + std::string(close);
}

// Recursion is as deep as the tables of fields, which end.
std::string json_object(const Schema& schema, std::vector<std::string> members,
                        const std::string& indent) {
  const std::string below = indent + "  ";
  if (!schema.limits.empty()) {
    members.push_back(schema.limits);
  }
  if (!schema.alternatives.empty()) {
    std::vector<std::string> parts;
    for (const Schema& part : schema.alternatives) {
      parts.push_back(json_object(part, {}, below + "  "));
    }
    members.push_back("\"anyOf\": " + on_lines(parts, below, "[", "]"));
  }
  if (!schema.items.empty()) {
    members.emplace_back("\"type\": \"array\"");
    members.push_back("\"items\": " + json_object(schema.items.front(), {}, below));
  }
  if (schema.is_map) {
    members.emplace_back("\"type\": \"object\"");
    std::vector<std::string> properties;
    std::string required;
    for (const SchemaKey& key : schema.keys) {
      properties.push_back(
          json_text(key.name) + ": " +
          json_object(key.value, {"\"description\": " + json_text(key.text)}, below + "  "));
      if (key.is_required) {
        required += (required.empty() ? "" : ", ") + json_text(key.name);
      }
    }
    if (!properties.empty()) {
      members.push_back("\"properties\": " + on_lines(properties, below, "{", "}"));
    }
    if (!required.empty()) {
      members.push_back("\"required\": [" + required + "]");
    }
    members.push_back(
        "\"additionalProperties\": " +
        (schema.named.empty() ? "false" : json_object(schema.named.front(), {}, below)));
  }
  return on_lines(members, indent, "{", "}");
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

Schema& Schema::add(std::string_view key, std::string_view text, bool is_required) {
  is_map = true;
  const auto known =
      std::find_if(keys.begin(), keys.end(), [&](const SchemaKey& one) { return one.name == key; });
  if (known != keys.end()) {
    known->is_required = known->is_required || is_required;
    known->value = {};
    return known->value;
  }
  return keys.emplace_back(SchemaKey{std::string(key), std::string(text), is_required}).value;
}

std::string to_json(const Schema& schema, std::string_view title) {
  return json_object(schema,
                     {"\"$schema\": \"http://json-schema.org/draft-07/schema#\"",
                      "\"title\": " + json_text(title)},
                     "") +
         "\n";
}

std::string to_markdown(const Schema& schema) {
  std::string rows = "| key | | meaning |\n|---|---|---|\n";
  add_rows(schema, "", rows);
  return rows;
}

}  // namespace trainyard
