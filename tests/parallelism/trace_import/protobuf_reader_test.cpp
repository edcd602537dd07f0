// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/protobuf_reader.h"

#include <string>

#include "sim/config_error.h"
#include "support/chakra_writer.h"

namespace trainyard {
namespace {

std::string wire_error(std::string_view text) {
  try {
    ProtobufReader reader(text, "m");
    while (reader.next()) {
    }
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("fields of all wire types are read", "[protobuf]") {
  // 150 in field 1 and "testing" in field 2: the examples of the encoding's description.
  const std::string text = std::string("\x08\x96\x01\x12\x07testing", 12) +
                           std::string("\x1d\x01\x02\x00\x00", 5) +
                           std::string("\x21\x01\x00\x00\x00\x00\x00\x00\x80", 9);
  ProtobufReader reader(text, "m");
  const auto number = reader.next();
  REQUIRE(number->number == 1);
  REQUIRE(number->value == 150);
  REQUIRE(reader.next()->bytes == "testing");
  const auto fixed = reader.next();
  REQUIRE(fixed->wire == ProtobufWire::Fixed32);
  REQUIRE(fixed->value == 0x201);
  REQUIRE(reader.next()->value == 0x8000'0000'0000'0001);
  REQUIRE(!reader.next());
  REQUIRE(protobuf_signed(0) == 0);
  REQUIRE(protobuf_signed(1) == -1);
  REQUIRE(protobuf_signed(0xffff'fffe) == 2'147'483'647);
}

TEST_CASE("messages that end too early are refused with their place", "[protobuf]") {
  REQUIRE(wire_error(std::string("\x08", 1)) ==
          "m: byte 1: expected a number, found the end of the message");
  REQUIRE(wire_error(std::string("\x12\x07test", 6)) ==
          "m: byte 2: expected 7 bytes, found 4 to the end");
  REQUIRE(wire_error(std::string("\x1d\x01", 2)) ==
          "m: byte 1: expected 4 bytes, found 1 to the end");
  REQUIRE(wire_error(std::string("\x0b", 1)) ==
          "m: byte 1: expected a wire type of 0, 1, 2 or 5, found 3");
  REQUIRE(wire_error(std::string("\x02\x00", 2)) ==
          "m: byte 1: expected the number of a field, found 0");
  REQUIRE(wire_error(std::string(11, '\xff')) ==
          "m: byte 10: expected a number of at most 64 bits, found a longer one");
  const std::string one = chakra_file({{.id = 300}});
  for (std::size_t size = 1; size < one.size(); ++size) {
    ProtobufReader reader(std::string_view(one).substr(0, size), "m");
    try {
      while (reader.next_message()) {
      }
      REQUIRE(size == 8);  // After the first message.
    } catch (const ConfigError& problem) {
      REQUIRE(std::string(problem.what()).find("m: byte ") == 0);
    }
  }
}

}  // namespace trainyard
