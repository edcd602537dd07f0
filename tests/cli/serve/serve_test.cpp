// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <string>
#include <utility>
#include <vector>

#include "support/program.h"

namespace trainyard {

TEST_CASE("serve says where the page is, answers, and ends by a signal without a trace",
          "[serve]") {
  const ScratchFolder folder;
  const ProgramResult result = run_shell(
      R"(export TMPDIR="$PWD"
command trainyard serve --port 0 > said &
server=$!
for try in $(seq 100); do grep -q Open said && break; sleep 0.1; done
cat said
kill -TERM $server
wait $server
echo "status $?"
ls -d trainyard-serve-* 2>/dev/null || echo "no folder is left")",
      folder.path());
  INFO(result.error);
  REQUIRE(result.output.find("Open http://127.0.0.1:") == 0);
  REQUIRE(result.output.find("status 0\nno folder is left\n") != std::string::npos);
}

TEST_CASE("serve refuses what would open it to others or cannot be", "[serve]") {
  const ScratchFolder folder;
  folder.write("short", "secret\n");
  folder.write("token", "0123456789abcdef\n");
  for (const auto& [arguments, error] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--bind", "0.0.0.0"},
            "--bind: expected --token FILE beside an address that other machines reach, found "
            "0.0.0.0 alone"},
           {{"--bind", "localhost"},
            "--bind: expected an address such as 127.0.0.1 or ::1, found \"localhost\""},
           {{"--token", "short"},
            "--token: expected a file whose first line has 16 letters, digits and signs or more, "
            "found another in \"short\""},
           {{"--token", "none"}, "none: cannot be read"},
           {{"--folder", "none"}, "--folder: expected a folder, found \"none\""},
           {{"--port", "70000"},
            "--port: expected a whole number from 0 to 65535, found \"70000\""},
           {{"--runs", "0"}, "--runs: expected a whole number from 1 to 64, found \"0\""},
           {{"--run-seconds", "x"},
            "--run-seconds: expected a whole number from 1 to 86400, found \"x\""},
           {{"more"}, "serve: expected options alone, found \"more\""},
           {{"--bind", "192.0.2.1", "--token", "token"},  // RFC 5737: of documentation alone.
            "--port: expected a port of 192.0.2.1 that can be had, found 8790"}}) {
    std::vector<std::string> all{"serve"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const ProgramResult result = run_program(all, folder.path());
    INFO(result.error);
    REQUIRE(result.status == 2);
    REQUIRE(result.error.starts_with("trainyard: " + error));
    REQUIRE(result.error.find('\n') == result.error.size() - 1);
  }
}

}  // namespace trainyard
