// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <string>

#include "hw/parts/sourced_reader.h"

namespace trainyard {
namespace {

// The error of reading `entry`, or nothing.
std::string error_of(const std::string& entry) {
  ConfigDocument document =
      ConfigDocument::parse("sources: {page: \"A page\"}\nrate: " + entry + "\n", "file.yaml");
  try {
    const SourcedReader reader(document.root());
    static_cast<void>(reader.value(document.root(), "rate").as_bandwidth());
    document.finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a value needs its evidence and a source that the file names", "[transport]") {
  REQUIRE(error_of("{value: 1 Gb/s, evidence: measured, source: page, note: once}").empty());
  REQUIRE(error_of("{value: 1 Gb/s, evidence: measured}").find("source") != std::string::npos);
  REQUIRE(error_of("{value: 1 Gb/s, evidence: guess, source: page}").find("evidence") !=
          std::string::npos);
  REQUIRE(error_of("{value: 1 Gb/s, evidence: measured, source: book}").find("page") !=
          std::string::npos);
  REQUIRE(error_of("{value: 1, evidence: measured, source: page}").find("rate.value") !=
          std::string::npos);
  REQUIRE(error_of("{value: 1 Gb/s, evidence: measured, source: page, unit: x}").find("unit") !=
          std::string::npos);
}

TEST_CASE("a size or a time above zero is one", "[transport]") {
  ConfigDocument document =
      ConfigDocument::parse("size: 1 B\ntime: 1 ps\nnothing: 0 B\nnever: 0 s\n", "file.yaml");
  const ConfigNode root = document.root();
  REQUIRE(some_bytes(root.required("size")) == Bytes(1));
  REQUIRE(some_time(root.required("time")) == picoseconds(1));
  REQUIRE_THROWS_WITH(some_bytes(root.required("nothing")),
                      "file.yaml:3:10: nothing: expected a size above zero, found \"0 B\"");
  REQUIRE_THROWS_WITH(some_time(root.required("never")),
                      "file.yaml:4:8: never: expected a time above zero, found \"0 s\"");
}

TEST_CASE("off is a word, not a mapping", "[transport]") {
  ConfigDocument document = ConfigDocument::parse("a: off\nb: {c: off}\nd: on\n", "file.yaml");
  const ConfigNode root = document.root();
  REQUIRE(is_off(root.required("a")));
  REQUIRE(!is_off(root.required("b")));
  REQUIRE(!is_off(root.required("d")));
}

}  // namespace trainyard
