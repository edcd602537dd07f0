// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string refusal_of_explain(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(explain_command(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("explain says what it can explain", "[explain-command]") {
  std::ostringstream out;
  REQUIRE(run_command(explain_command(), std::vector<std::string>{"--help"}, out) == 0);
  REQUIRE(out.str().find("trainyard explain collective OP") != std::string::npos);
  REQUIRE(refusal_of_explain({}) ==
          "explain: expected step or collective, found none; see trainyard explain --help");
  REQUIRE(refusal_of_explain({"stap"}) ==
          "explain: expected step or collective, found \"stap\"; did you mean \"step\"?");
}

}  // namespace trainyard
