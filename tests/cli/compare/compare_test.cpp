// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string refusal_of(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(compare_command(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("compare wants two of a kind", "[compare-command]") {
  const std::string wanted = "compare: expected A and B, or A and --against FILE, found ";
  REQUIRE(refusal_of({}).starts_with(wanted + "neither; "));
  REQUIRE(refusal_of({"a.json"}).starts_with(wanted + "A alone; "));
  REQUIRE(refusal_of({"a.json", "b.json", "--against", "c"}).starts_with(wanted + "all three; "));
  REQUIRE(refusal_of({"a.json", "b.yaml"}) ==
          "compare: expected two results (.json) or two files, found a.json and b.yaml");
  REQUIRE(refusal_of({"a.json", "b.json", "--steps", "2"}) ==
          "--steps: expected --against FILE beside it, found none");
  std::ostringstream out;
  REQUIRE(run_command(compare_command(), std::vector<std::string>{"--help"}, out) == 0);
}

}  // namespace trainyard
