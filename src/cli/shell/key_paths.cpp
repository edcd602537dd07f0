// SPDX-License-Identifier: Apache-2.0
#include "cli/shell/key_paths.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

namespace trainyard {
namespace {

using Json = nlohmann::json;

// The words of a value: those of an enumeration, or true and false.
std::vector<std::string> words_of(const Schema& schema) {
  const Json limits = Json::parse("{" + schema.limits + "}");
  std::vector<std::string> words;
  if (limits.contains("enum")) {
    for (const Json& word : limits.at("enum")) {
      words.push_back(word.get<std::string>());
    }
  } else if (limits.value("type", Json()) == "boolean") {
    words = {"true", "false"};
  }
  for (const Schema& part : schema.alternatives) {
    for (std::string& word : words_of(part)) {
      words.push_back(std::move(word));
    }
  }
  return words;
}

// A part is a name, or a mapping of keys that only the kind of the part tells (catalogue.h).
bool is_part(const Schema& schema) {
  return std::ranges::any_of(schema.alternatives, [](const Schema& part) {
    return part.keys.empty() && !part.named.empty();
  });
}

// Whether the value may be something else than a mapping.
bool has_value(const Schema& schema) {
  return !schema.is_map &&
         (schema.alternatives.empty() || std::ranges::any_of(schema.alternatives, has_value));
}

class Walk {
 public:
  std::vector<KeyPath> paths;

  // Recursion is as deep as the tables of fields, which end.
  void add(const Schema& schema, const std::string& prefix) {
    for (const SchemaKey& key : schema.keys) {
      const std::string path = prefix + key.name;
      if (has_value(key.value) && seen_.insert(path).second) {
        paths.push_back({.path = path,
                         .text = key.text,
                         .words = words_of(key.value),
                         .names_part = is_part(key.value)});
      }
      if (!key.value.is_cited) {
        add(key.value, path + ".");
      }
    }
    for (const Schema& part : schema.alternatives) {
      add(part, prefix);
    }
    for (const Schema& part : schema.items) {
      add(part, prefix + "0.");
    }
  }

 private:
  std::set<std::string, std::less<>> seen_ = {};
};

}  // namespace

std::vector<KeyPath> key_paths(const Schema& schema) {
  Walk walk;
  walk.add(schema, "");
  return std::move(walk.paths);
}

}  // namespace trainyard
