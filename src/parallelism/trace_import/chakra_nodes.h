// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces: the nodes of one rank (github.com/mlcommons/chakra,
// schema/protobuf/et_def.proto). A file is a GlobalMetadata, then Nodes, the length before each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

// NodeType of the schema.
enum class ChakraType : std::uint8_t {
  Invalid = 0,
  Metadata = 1,
  MemoryLoad = 2,
  MemoryStore = 3,
  Compute = 4,
  Send = 5,
  Receive = 6,
  Collective = 7,
};

// Lists but of bools are not kept: monostate.
using ChakraValue =
    std::variant<std::monostate, std::int64_t, double, std::string, std::vector<bool>>;

struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  std::string_view file;  // Name of the file, which outlives the node.
  ChakraType type = ChakraType::Invalid;
  std::vector<std::uint64_t> dependencies = {};  // Dependencies of control and data.
  std::uint64_t start_micros = 0;
  std::uint64_t duration_micros = 0;
  std::string inputs = {};  // IOInfo.values.
  std::vector<std::pair<std::string, ChakraValue>> attributes = {};

  // "FILE: node 5 (NAME)".
  [[nodiscard]] std::string place() const;
  // The last one of that name; null: none.
  [[nodiscard]] const ChakraValue* attribute(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return attribute(key) != nullptr; }
  // Returns a number from 0 to `most`; a bool is 0 or 1. Throws ConfigError.
  [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t max) const;
  [[nodiscard]] std::int64_t number_or(std::string_view key, std::int64_t max,
                                       std::int64_t otherwise) const;
  [[nodiscard]] std::string text_or_none(std::string_view key) const;
};

enum class ChakraPart : std::uint8_t {
  Whole,
  Groups,  // Nodes of metadata alone, and no attributes.
};

// Returns the nodes in the order of the file, whose name they refer to. Throws ConfigError: for
// what is damaged or of an unknown kind.
[[nodiscard]] std::vector<ChakraNode> read_chakra_nodes(const ImportedFile& file,
                                                        ChakraPart part = ChakraPart::Whole);

}  // namespace trainyard
