// SPDX-License-Identifier: Apache-2.0
// The tree of a text, and that hostile text is refused before it costs time, memory or stack.
#include "support/catch.h"

#include "sim/yaml_tree.h"

#include <chrono>
#include <string>
#include <utility>

namespace trainyard {
namespace {

constexpr std::size_t kLarge = 15'000'000;

std::string repeated(std::string_view piece, std::size_t bytes) {
  std::string text;
  text.reserve(bytes + piece.size());
  while (text.size() < bytes) {
    text += piece;
  }
  return text;
}

std::string error_of_tree(const std::string& text) {
  YamlTree tree("f.yaml");
  try {
    static_cast<void>(tree.parse(text, 0));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// "[[[...]]]"
std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

}  // namespace

TEST_CASE("a tree has the values of its text, with their places") {
  YamlTree tree("f.yaml");
  const YamlValue& root = *tree.parse("a: 1\nb:\n  - x\n  - {c: 'd'}\ne: ~\n", 0);
  REQUIRE(root.kind == YamlValue::Kind::Mapping);
  REQUIRE(root.entries.size() == 3);
  REQUIRE(root.entries[0].key == "a");
  REQUIRE(root.entries[0].value->text == "1");
  REQUIRE(root.entries[0].value->place.column == 4);
  const YamlValue& items = *root.entries[1].value;
  REQUIRE(items.kind == YamlValue::Kind::Sequence);
  REQUIRE(items.items[0]->place.line == 3);
  REQUIRE(items.items[1]->entries[0].value->text == "d");
  REQUIRE(root.entries[2].place.line == 5);
  REQUIRE(root.entries[2].value->kind == YamlValue::Kind::Null);
}

TEST_CASE("an item that is not there has the place of its dash") {
  const auto place = [](const std::string& text, std::size_t number) {
    YamlTree tree("f.yaml");
    const YamlValue& items = *tree.parse(text, 0)->entries[0].value;
    REQUIRE(items.items[number]->kind == YamlValue::Kind::Null);
    const Place where = items.items[number]->place;
    return std::pair(where.line, where.column);
  };
  for (const std::string end :
       {"", "\n", "\n\n\n", "  # a - b\n", "\n# - c\n", "\r\n", "\nb: 1\n"}) {
    INFO(end);
    REQUIRE((place("a:\n  - x\n  -" + end, 1) == std::pair(3, 3)));
  }
  REQUIRE((place("a:\n  -\n\n  - x\n", 0) == std::pair(2, 3)));
  REQUIRE((place("a:\n-\n-\n", 0) == std::pair(2, 1)));
  REQUIRE((place("a:\n-\n-\n", 1) == std::pair(3, 1)));
  // Those that are written have their own.
  REQUIRE((place("a:\n  - x\n  - ~\n", 1) == std::pair(3, 5)));
  REQUIRE((place("a: [x, null]\n", 1) == std::pair(1, 8)));
}

TEST_CASE("an alias is a copy of its anchor") {
  YamlTree tree("f.yaml");
  const YamlValue& root = *tree.parse("a: &x {b: [1, 2]}\nc: *x\n", 0);
  const YamlValue& original = *root.entries[0].value;
  const YamlValue& copy = *root.entries[1].value;
  REQUIRE(copy.entries[0].value->items[1]->text == "2");
  REQUIRE(copy.entries[0].value != original.entries[0].value);
  REQUIRE(copy.entries[0].value->items[1] != original.entries[0].value->items[1]);
}

TEST_CASE("nesting may be 64 levels deep and no deeper") {
  REQUIRE(error_of_tree(nested(64)) == "no error");
  REQUIRE(error_of_tree(nested(65)) ==
          "f.yaml:1:65: expected at most 64 levels of nesting, found more");
  REQUIRE(error_of_tree("a: &x " + nested(40) + "\nb: [[[*x]]]\n") == "no error");
  REQUIRE(error_of_tree("a: &x " + nested(40) + "\nb: " + std::string(30, '[') + "*x" +
                        std::string(30, ']') + "\n") ==
          "f.yaml:2:34: expected at most 64 levels of nesting, found more");
}

TEST_CASE("deep nesting of 15 MB is refused at once") {
  std::string indented;
  for (std::size_t depth = 0; indented.size() < kLarge; ++depth) {
    indented += std::string(depth, ' ') + "a:\n";
  }
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(error_of_tree(repeated("[", kLarge)) ==
          "f.yaml:1:1001: expected at most 64 levels of nesting, found more");
  REQUIRE(error_of_tree(repeated("{a: ", kLarge)) ==
          "f.yaml:1:4001: expected at most 64 levels of nesting, found more");
  REQUIRE(error_of_tree(repeated("- ", kLarge)) ==
          "f.yaml:1:129: expected at most 64 levels of nesting, found more");
  REQUIRE(error_of_tree(indented) ==
          "f.yaml:65:65: expected at most 64 levels of nesting, found more");
  REQUIRE(error_of_tree(repeated("? ", kLarge)) ==
          "f.yaml:1:6000001: expected at most 1000000 values, found more");
  REQUIRE(error_of_tree(repeated("? ", 1'000'000)) ==
          "f.yaml:1:129: expected at most 64 levels of nesting, found more");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  REQUIRE(taken.count() < 20.0);  // About 0.4 s; sanitizers and a busy machine take their share.
}

TEST_CASE("more than a million values are refused") {
  REQUIRE(error_of_tree("[" + repeated("1,", kLarge) + "]") ==
          "f.yaml:1:6000001: expected at most 1000000 values, found more");
  REQUIRE(error_of_tree(repeated("- 1\n", 4'000'004)) ==
          "f.yaml:1000000:3: expected at most 1000000 values, found more");
}

TEST_CASE("aliases that multiply are refused before they expand") {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string name = "a" + std::to_string(i);
    const std::string below = "*a" + std::to_string(i - 1);
    text += name + ": &" + name + " [" + below;
    for (int j = 1; j < 10; ++j) {
      text += ", " + below;
    }
    text += "]\n";
  }
  REQUIRE(error_of_tree(text) == "f.yaml:6:45: expected at most 1000000 values, found more");
}

TEST_CASE("an alias within its own anchor is refused") {
  REQUIRE(error_of_tree("a: &x [*x]\n") ==
          "f.yaml:1:8: a[0]: expected an alias of a finished value, found one within the value "
          "itself");
}

TEST_CASE("text that is too large is refused") {
  REQUIRE(error_of_tree(repeated("# comment\n", YamlTree::kMaxBytes + 1)) ==
          "f.yaml: expected at most 16 MiB, found more");
}

TEST_CASE("bytes that are not UTF-8 are refused with their place") {
  const auto refused = [](const std::string& bytes) {
    INFO(bytes);
    const std::string error = error_of_tree("a: 1\nb: " + bytes + "\n");
    return error.find("f.yaml:2:4: expected UTF-8 text, found the byte 0x") == 0;
  };
  REQUIRE(refused("\x80"));      // A continuation alone.
  REQUIRE(refused("\xc3("));     // A lead alone.
  REQUIRE(refused("\xc0\xaf"));  // Overlong forms.
  REQUIRE(refused("\xe0\x80\xaf"));
  REQUIRE(refused("\xf0\x80\x80\xaf"));
  REQUIRE(refused("\xed\xa0\x80"));      // A surrogate.
  REQUIRE(refused("\xf4\x90\x80\x80"));  // Above U+10FFFF.
  REQUIRE(refused("\xff"));
  REQUIRE(error_of_tree("\xe2\x82") == "f.yaml:1:1: expected UTF-8 text, found the byte 0xE2");
  REQUIRE(error_of_tree("a: \xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x82\n") == "no error");
  REQUIRE(error_of_tree("\xef\xbb\xbf"
                        "a: 1\n") == "no error");  // A byte order mark.
}

TEST_CASE("control characters are refused, tabs and line ends are not") {
  REQUIRE(error_of_tree("a: 1\r\nb:\t2\r\n") == "no error");
  // yaml-cpp alone would take this for the end of the file.
  REQUIRE(error_of_tree("a: 1\n\x04"
                        "b: 2\n") == "f.yaml:2:1: expected text, found the control character 0x04");
}

TEST_CASE("values of another origin have no line") {
  YamlTree tree("f.yaml");
  const std::size_t origin = tree.add_origin("--set a=[");
  REQUIRE_THROWS_WITH(tree.parse("[", origin),
                      "--set a=[: not valid YAML: end of sequence flow not found");
  REQUIRE(tree.parse("{a: 1}", origin)->entries[0].place.line == 0);
  REQUIRE(tree.parse("", origin)->kind == YamlValue::Kind::Null);
}

TEST_CASE("paths join keys with dots and indices in brackets") {
  REQUIRE(join_path("", "server") == "server");
  REQUIRE(join_path("server", "nics") == "server.nics");
  REQUIRE(join_path("server.nics", 2) == "server.nics[2]");
  REQUIRE(join_path("a", "b\nc") == "a.b\\nc");
}

}  // namespace trainyard
