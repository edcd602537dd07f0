// SPDX-License-Identifier: Apache-2.0
#include "sim/xml_file.h"

#include "sim/config_error.h"
#include "support/catch.h"

namespace trainyard {
namespace {

const std::string kName = "some.xml";

void require_refused(std::string_view text, const std::string& message) {
  REQUIRE_THROWS_MATCHES(XmlFile(text, kName, std::size_t{1} << 20U, "algo"), ConfigError,
                         Catch::Matchers::Message(message));
}

}  // namespace

TEST_CASE("elements and attributes of an XML file have places") {
  const std::string text =
      "<?xml version=\"1.0\"?>\n<algo a='1'\n  b = \"2 ' =\" c='3'>\n <x/></algo>\n";
  const XmlFile file(text, kName, text.size(), "algo");
  const pugi::xml_node root = file.root();
  REQUIRE(file.place_of(root).line == 2);
  REQUIRE(file.place_of(root).column == 2);
  REQUIRE(text.substr(file.offset_of(root, 0), 1) == "a");
  REQUIRE(text.substr(file.offset_of(root, 1), 1) == "b");
  REQUIRE(text.substr(file.offset_of(root, 2), 1) == "c");
  const pugi::xml_node child = *root.children().begin();
  REQUIRE(file.place_of(child).line == 4);
  // Backwards, and beyond the end.
  REQUIRE(file.place_of(file.offset_of(root, 1)).line == 3);
  REQUIRE(file.place_of(std::size_t{1} << 40U).line == 5);
}

TEST_CASE("what is no XML file of the kind that is read is refused with its place") {
  require_refused("", "some.xml:1:1: expected XML, found a mistake: no document element found");
  require_refused("<algo>\n<",
                  "some.xml:2:1: expected XML, found a mistake: could not determine tag "
                  "type");
  require_refused("<algo/>\n<algo/>",
                  "some.xml:2:2: expected one element \"algo\", found something beside it");
  require_refused("\n<graphs/>", "some.xml:2:2: expected the element \"algo\", found \"graphs\"");
  require_refused(std::string_view("<algo>\n \0</algo>", 16),
                  "some.xml:2:2: expected text, found the byte \"\\x00\"");
  require_refused(std::string(std::size_t{2} << 20U, ' '),
                  "some.xml:1:1: expected at most 1 MiB, found more");
}

}  // namespace trainyard
