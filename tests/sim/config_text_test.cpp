// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/config_text.h"

#include <string>

namespace trainyard {
namespace {

std::string rewritten(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "a.yaml");
  return yaml_text(document.root());
}

}  // namespace

TEST_CASE("documents are written in one form", "[config-text]") {
  REQUIRE(rewritten("{a: 1, b: [x, 'y z'], c: {d: null, e: {}, f: []}}") ==
          "a: 1\nb: [x, \"y z\"]\nc:\n  d: null\n  e: {}\n  f: []\n");
  REQUIRE(rewritten("- a: 1\n  b: 2\n- [3, [4, 5]]\n") ==
          "-\n  a: 1\n  b: 2\n-\n  - 3\n  - [4, 5]\n");
  REQUIRE(rewritten("plain") == "plain\n");
}

TEST_CASE("scalars keep their text", "[config-text]") {
  const std::string text =
      "a: \"null\"\nb: \"\"\nc: \"say \\\"so\\\" \\\\ here\"\nd: \"- x: #\"\ne: \"a\\tb\"\n"
      "\"key: odd\": 1\nf: 1e-3\ng: \"~\"\nh: \"-5\"\n";
  ConfigDocument first = ConfigDocument::parse(text, "a.yaml");
  ConfigDocument second = ConfigDocument::parse(yaml_text(first.root()), "b.yaml");
  const auto before = first.root().entries();
  const auto after = second.root().entries();
  REQUIRE(before.size() == after.size());
  for (std::size_t index = 0; index < before.size(); ++index) {
    INFO(before[index].first);
    REQUIRE(before[index].first == after[index].first);
    REQUIRE(before[index].second.as_string() == after[index].second.as_string());
  }
}

TEST_CASE("writing what was written changes nothing", "[config-text]") {
  const std::string once = rewritten("a: [{b: 1}, {c: [2, 3]}]\nd: &x {e: 5}\nf: *x\n");
  REQUIRE(rewritten(once) == once);
  REQUIRE(once == "a:\n  -\n    b: 1\n  -\n    c: [2, 3]\nd:\n  e: 5\nf:\n  e: 5\n");
}

}  // namespace trainyard
