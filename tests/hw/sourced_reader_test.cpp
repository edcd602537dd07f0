// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <string>

#include "hw/sourced_reader.h"

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

TEST_CASE("off is a word, not a mapping", "[transport]") {
  ConfigDocument document = ConfigDocument::parse("a: off\nb: {c: off}\nd: on\n", "file.yaml");
  const ConfigNode root = document.root();
  REQUIRE(is_off(root.required("a")));
  REQUIRE(!is_off(root.required("b")));
  REQUIRE(!is_off(root.required("d")));
}

}  // namespace trainyard
