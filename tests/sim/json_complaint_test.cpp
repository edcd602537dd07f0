// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/json_complaint.h"

#include <nlohmann/json.hpp>
#include <string>

#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string complaint_of(const std::string& text) {
  try {
    const nlohmann::json parsed = nlohmann::json::parse(text);
    return "parsed: " + parsed.dump();
  } catch (const nlohmann::json::exception& problem) {
    try {
      fail_json("a.json", text, problem);
    } catch (const ConfigError& error) {
      return error.what();
    }
  }
}

}  // namespace

TEST_CASE("text that is no JSON is answered with its place and what is there") {
  REQUIRE(complaint_of("{\"a\": nan}") == "a.json:1:8: expected JSON, found \"{\"a\": nan}\"");
  REQUIRE(complaint_of("[\n  1,\n  2,,\n]") == "a.json:3:5: expected JSON, found \"  2,,\"");
  REQUIRE(complaint_of("[1, 2") == "a.json:1:6: expected JSON, found the end of the text");
  REQUIRE(complaint_of("") == "a.json:1:1: expected JSON, found the end of the text");
  REQUIRE(complaint_of("[\n") == "a.json:2:1: expected JSON, found the end of the text");
  REQUIRE(complaint_of("[1] x").starts_with("a.json:1:5: expected JSON, found "));
}

TEST_CASE("a number that no double holds has no place, and no name of a C++ type") {
  REQUIRE(complaint_of("1e999") == "a.json: expected JSON, found number overflow parsing '1e999'");
}

TEST_CASE("what walks JSON meets no more than 64 levels, brackets in texts aside") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  check_json_depth("a.json", nested(64));
  check_json_depth("a.json", "{\"a\\\"" + nested(100) + "\": [[]]}");
  check_json_depth("a.json", "\"\\");
  REQUIRE_THROWS_WITH(check_json_depth("a.json", "[\n" + nested(64)),
                      "a.json:2:64: expected at most 64 levels of lists and objects, found more");
}

}  // namespace trainyard
