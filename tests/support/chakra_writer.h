// SPDX-License-Identifier: Apache-2.0
// Chakra traces for tests, with the field numbers of schema/protobuf/et_def.proto
// (github.com/mlcommons/chakra).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard {

[[nodiscard]] inline std::string wire_number(std::uint64_t value) {
  std::string text;
  while (value >= 0x80U) {
    text += static_cast<char>((value & 0x7fU) | 0x80U);
    value >>= 7U;
  }
  return text + static_cast<char>(value);
}

[[nodiscard]] inline std::string wire_field(std::uint32_t number, std::uint64_t value) {
  return wire_number(std::uint64_t{number} << 3U) + wire_number(value);
}

[[nodiscard]] inline std::string wire_field(std::uint32_t number, std::string_view text) {
  return wire_number((std::uint64_t{number} << 3U) | 2U) + wire_number(text.size()) +
         std::string(text);
}

// int64_val.
[[nodiscard]] inline std::string chakra_number(std::string_view name, std::uint64_t value) {
  return wire_field(10, wire_field(1, name) + wire_field(9, value));
}

[[nodiscard]] inline std::string chakra_text(std::string_view name, std::string_view value) {
  return wire_field(10, wire_field(1, name) + wire_field(29, value));
}

struct ChakraNodeText {
  std::uint64_t id = 0;
  std::uint64_t type = 4;
  std::vector<std::uint64_t> dependencies = {};
  std::uint64_t duration_micros = 0;
  std::string more = {};
};

[[nodiscard]] inline std::string chakra_node(const ChakraNodeText& node) {
  std::string dependencies;
  for (const std::uint64_t each : node.dependencies) {
    dependencies += wire_number(each);
  }
  return wire_field(1, node.id) + wire_field(2, "n" + std::to_string(node.id)) +
         wire_field(3, node.type) + (dependencies.empty() ? "" : wire_field(5, dependencies)) +
         wire_field(7, node.duration_micros) + node.more;
}

[[nodiscard]] inline std::string chakra_file(const std::vector<ChakraNodeText>& nodes) {
  const std::string metadata = wire_field(1, "0.0.4");
  std::string text = wire_number(metadata.size()) + metadata;
  for (const ChakraNodeText& node : nodes) {
    const std::string message = chakra_node(node);
    text += wire_number(message.size()) + message;
  }
  return text;
}

// COMM_COLL_NODE: 0 is ALL_REDUCE, 2 ALL_GATHER.
[[nodiscard]] inline ChakraNodeText chakra_call(std::uint64_t id, std::uint64_t type,
                                                std::uint64_t bytes,
                                                std::vector<std::uint64_t> dependencies = {},
                                                std::string more = {}) {
  return {.id = id,
          .type = 7,
          .dependencies = std::move(dependencies),
          .more = chakra_number("comm_type", type) + chakra_number("comm_size", bytes) +
                  std::move(more)};
}

}  // namespace trainyard
