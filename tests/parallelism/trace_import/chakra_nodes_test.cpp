// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/chakra_nodes.h"

#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/chakra_writer.h"

namespace trainyard {
namespace {

std::vector<ChakraNode> nodes_of(const std::string& text) {
  std::vector<ChakraNode> nodes = read_chakra_nodes({.name = "a.et", .rank = 0, .text = text});
  for (ChakraNode& node : nodes) {
    node.file = "a.et";  // As that of the file ends here.
  }
  return nodes;
}

std::string nodes_error(const std::string& text) {
  try {
    (void)nodes_of(text);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

std::string attribute(const std::string& value) {
  return wire_field(10, wire_field(1, "key") + value);
}

}  // namespace

TEST_CASE("nodes have the fields of the schema", "[chakra]") {
  // Dependencies of control one by one, of data packed.
  const auto nodes = nodes_of(chakra_file(
      {{.id = 7,
        .type = 7,
        .dependencies = {3, 300},
        .duration_micros = 1'000,
        .more = wire_field(4, 5) + wire_field(6, 99) + wire_field(8, wire_field(1, "in")) +
                chakra_number("comm_size", 1'048'576) + chakra_text("pg_name", "0") +
                wire_field(10, wire_field(1, "is_cpu_op") + wire_field(27, 1)) +
                wire_field(10, wire_field(1, "dims") + wire_field(28, wire_field(1, "\x01")))}}));
  REQUIRE(nodes.size() == 1);
  REQUIRE(nodes[0].id == 7);
  REQUIRE(nodes[0].name == "n7");
  REQUIRE(nodes[0].type == ChakraType::Collective);
  REQUIRE(nodes[0].dependencies == std::vector<std::uint64_t>{3, 300, 5});
  REQUIRE(nodes[0].start_micros == 99);
  REQUIRE(nodes[0].duration_micros == 1'000);
  REQUIRE(nodes[0].inputs == "in");
  REQUIRE(nodes[0].number("comm_size", 1 << 30) == 1'048'576);
  REQUIRE(nodes[0].number_or("is_cpu_op", 1, 0) == 1);
  REQUIRE(nodes[0].number_or("comm_tag", 1, 0) == 0);
  REQUIRE(nodes[0].text_or_none("pg_name") == "0");
  REQUIRE(std::get<std::vector<bool>>(*nodes[0].attribute("dims")) == std::vector<bool>{true});
}

TEST_CASE("numbers of all types of the schema are numbers", "[chakra]") {
  const std::string fixed32 = wire_number((19U << 3U) | 5U) + std::string("\x07\0\0\0", 4);
  const std::string fixed64 = wire_number((21U << 3U) | 1U) + std::string("\x07\0\0\0\0\0\0\0", 8);
  for (const std::string& value :
       {wire_field(7, 7), wire_field(9, 7), wire_field(11, 7), wire_field(13, 7),
        wire_field(15, 14), wire_field(17, 14), fixed32, fixed64}) {
    const auto nodes = nodes_of(chakra_file({{.more = attribute(value)}}));
    REQUIRE(nodes[0].number("key", 10) == 7);
  }
  const auto nodes = nodes_of(chakra_file({{.more = attribute(wire_field(17, 1))}}));
  std::string error;
  try {
    (void)nodes[0].number("key", 10);
  } catch (const ConfigError& problem) {
    error = problem.what();
  }
  REQUIRE(error == "a.et: node 0 (n0): key: expected a whole number from 0 to 10, found -1");
}

TEST_CASE("what is no Chakra trace is refused", "[chakra]") {
  REQUIRE(nodes_error("") == "a.et: expected GlobalMetadata, found the end of the file");
  const std::string node = chakra_node({.id = 1});
  REQUIRE(nodes_error(wire_number(node.size()) + node) ==
          "a.et: expected GlobalMetadata as the first message, found field 1");
  REQUIRE(nodes_error(chakra_file({{.type = 8}})) ==
          "a.et: message 1: type: expected a node of metadata, memory, computation or "
          "communication, found 8");
  REQUIRE(nodes_error(chakra_file({{.more = wire_field(12, 1)}})) ==
          "a.et: message 1: expected a field of the schema, 1 to 11, found 12");
  REQUIRE(nodes_error(chakra_file({{.more = wire_field(2, 1)}})) ==
          "a.et: message 1: field 2: expected the wire type of the schema, found 0");
  REQUIRE(nodes_error(chakra_file({{.more = attribute(wire_field(33, 1))}})) ==
          "a.et: message 1: key: expected a field of the schema, 1 to 32, found 33");
  REQUIRE(nodes_error("{\"traceEvents\": []}").find("a.et: byte 1: expected 123 bytes") == 0);
}

}  // namespace trainyard
