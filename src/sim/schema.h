// SPDX-License-Identifier: Apache-2.0
// A schema holds as data what the reader of a kind of file accepts. `Fields` fills it from the same
// rows that read the file. tests/golden/schema_test.cpp writes the JSON Schemas for editors and the
// key lists of the docs from it, and holds both to it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

struct SchemaKey;

// A schema is at most as strict as the reader: what depends on another value is left to the reader.
struct Schema {
  std::string limits;  // Members of a JSON object, such as `"type": "integer", "minimum": 1`.
  std::string words;   // The docs call a value so: "a whole number from 1 to 8".
  bool is_map = false;
  bool is_cited = false;        // A value with evidence and source, of which the docs list no keys.
  std::vector<SchemaKey> keys;  // Keys of a mapping, in the order of reading.
  std::vector<Schema> named;    // The values under free names of a mapping: none or one.
  std::vector<Schema> items;    // The items of a sequence: none or one.
  std::vector<Schema> alternatives;  // A value is one of these, where there are any.

  // Returns the schema of `key`, which is added where it is missing.
  Schema& add(std::string_view key, std::string_view text, bool is_required);
};

struct SchemaKey {
  std::string name;
  std::string text;  // A sentence.
  bool is_required = false;
  Schema value = {};
};

}  // namespace trainyard
