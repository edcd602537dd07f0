// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "support/program.h"

#include <string>

namespace trainyard {

TEST_CASE("parts lists the catalogue with parts of one's own, and shows sources of values") {
  const ScratchFolder folder;
  const std::string file =
      folder.write("mine.yaml", "nics: {mine: {base: ConnectX-6, speed: 25 Gb/s, source: x}}\n")
          .string();
  const ProgramResult listed =
      run_program({"parts", "nics", "--parts", folder.path().string()}, folder.path());
  REQUIRE(listed.status == 0);
  REQUIRE(listed.output.find("nics  mine") != std::string::npos);
  const ProgramResult one =
      run_program({"parts", "mine", "--parts", file, "--format", "csv"}, folder.path());
  REQUIRE(one.status == 0);
  REQUIRE(one.output.find("speed,25 Gb/s,user,") != std::string::npos);
  const ProgramResult unknown = run_program({"parts", "H100-SMX"}, folder.path());
  REQUIRE(unknown.status == 2);
  REQUIRE(unknown.error.find("did you mean \"H100-SXM\"?") != std::string::npos);
}

}  // namespace trainyard
