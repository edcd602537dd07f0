// SPDX-License-Identifier: Apache-2.0
// Pictures, where Python has matplotlib; otherwise that its absence is one line.
#include "support/catch.h"

#include "cli/plot.h"

#include <filesystem>
#include <string>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string check(const std::string& file) {
  try {
    check_plot(file);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("only formats that can be drawn are accepted") {
  REQUIRE(check("a.gif") ==
          "--plot: expected a file that ends in .svg, .png or .pdf, found \"a.gif\"");
  REQUIRE(check("svg") == "--plot: expected a file that ends in .svg, .png or .pdf, found \"svg\"");
}

TEST_CASE("a report is drawn, or one line says what is missing") {
  const ScratchFolder folder;
  const std::string picture = (folder.path() / "a.svg").string();
  const ProgramResult result =
      run_program({"collective", "all_gather", "--cluster", "dgx-a100", "--nodes", "1", "-b", "1M",
                   "-e", "4M", "--algo", "ring,bruck", "--compare", "--plot", picture},
                  source_dir());
  const std::string missing = check("a.svg");
  if (!missing.empty()) {
    REQUIRE(missing.find("matplotlib") != std::string::npos);
    REQUIRE(missing.find('\n') == std::string::npos);
    REQUIRE(result.status == 2);
    REQUIRE(result.error == "trainyard: " + missing + "\n");
    REQUIRE(result.output.empty());
    return;
  }
  REQUIRE(result.error.empty());
  REQUIRE(result.status == 0);
  REQUIRE(std::filesystem::file_size(picture) > 1000);
}

}  // namespace
}  // namespace trainyard
