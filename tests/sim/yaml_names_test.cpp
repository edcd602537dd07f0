// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/yaml_names.h"

#include "support/program.h"

namespace trainyard {
namespace {

TEST_CASE("the names of a folder are those of its YAML files, in order") {
  const ScratchFolder folder;
  for (const char* name : {"b.yaml", "a.yaml", "c.yml", "d"}) {
    static_cast<void>(folder.write(name, "x: 1"));
  }
  REQUIRE(yaml_names_in(folder.path()) == std::vector<std::string>{"a", "b"});
  REQUIRE(yaml_names_in(folder.path() / "none").empty());
}

}  // namespace
}  // namespace trainyard
