// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/program_end.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "sim/crash_advice.h"
#include "support/program.h"

namespace trainyard {
namespace {

// Runs a command of the shell in a folder of its own.
ProgramResult in_scratch(const ScratchFolder& folder, const std::string& command) {
  return run_shell(command, folder.path());
}

void require_one_line(const ProgramResult& result, const std::string& part) {
  INFO(result.error);
  REQUIRE(result.status == 2);
  REQUIRE(result.error.starts_with("trainyard: "));
  REQUIRE(result.error.find(part) != std::string::npos);
  REQUIRE(std::count(result.error.begin(), result.error.end(), '\n') == 1);
  REQUIRE(result.error.size() <= 400);
}

}  // namespace

TEST_CASE("an error is one line of less than 400 bytes, its begin and its end kept") {
  REQUIRE(one_line("a\nb") == "a\\nb");
  const std::string long_text = "place: " + std::string(1000, 'x') + ", found \"y\"";
  const std::string line = one_line(long_text);
  REQUIRE(line.size() == 399);
  REQUIRE(line.starts_with("place: xxx"));
  REQUIRE(line.find("x ... x") != std::string::npos);
  REQUIRE(line.ends_with("x, found \"y\""));
  REQUIRE(one_line(std::string(399, 'x')) == std::string(399, 'x'));
  std::string wide;
  for (int count = 0; count < 300; ++count) {
    wide += "\u00e4";
  }
  const std::string cut = one_line("a" + wide);
  REQUIRE(cut.size() < 400);
  REQUIRE((cut.find(" ... ") - 1) % 2 == 0);
  REQUIRE((cut.size() - cut.find(" ... ") - 5) % 2 == 0);
}

TEST_CASE("closed and full standard streams end a run by its status, never by a crash") {
  const ScratchFolder folder;
  for (const std::string to : {"2>&-", "2>/dev/full", ">&- 2>&-", "<&- >&- 2>&-"}) {
    INFO(to);
    const ProgramResult wrong =
        in_scratch(folder, "trainyard topology --cluster nope " + to + " || exit $?");
    REQUIRE(wrong.status == 2);
    REQUIRE(wrong.error.empty());
  }
  for (const std::string to : {">&-", "> /dev/full", "<&- >&-"}) {
    INFO(to);
    const ProgramResult lost =
        in_scratch(folder, "trainyard topology --cluster dgx-h100 " + to + " || exit $?");
    REQUIRE(lost.status == 2);
    REQUIRE(lost.error == "trainyard: standard output: cannot be written\n");
  }
}

TEST_CASE("no line that is meant for a closed stream gets into a file of ours") {
  const ScratchFolder folder;
  folder.write("s.yaml",
               "title: t\ncommand: collective\noptions: {operation: all_reduce, cluster: "
               "dgx-h100, maxbytes: 1K}\nvary: {nodes: [1, 2]}\n");
  const auto swept = [&](const std::string& to) {
    const ProgramResult result =
        in_scratch(folder, "trainyard sweep s.yaml --log-level debug --output o.csv " + to);
    INFO(result.error);
    REQUIRE(result.status == 0);
    return read_text_file(folder.path() / "o.csv");
  };
  const std::string expected = swept("");
  REQUIRE(swept("2>&-") == expected);
  REQUIRE(swept("<&- >&- 2>&-") == expected);
}

TEST_CASE("paths that the system refuses are one line, and hide no name of the catalogue") {
  const ScratchFolder folder;
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  const std::string name(300, 'x');
  for (const std::string& path : {std::string("loop"), name}) {
    for (const std::string command :
         {"topology --cluster ", "check ", "traffic --cluster dgx-h100 ", "sweep ",
          "step --cluster dgx-h100 --workload ", "step --cluster dgx-h100 --model ",
          "topology --cluster dgx-h100 --output ", "parts --parts ", "validate --cases ",
          "collective all_reduce --cluster dgx-h100 --tuner "}) {
      INFO(command << path.substr(0, 10));
      const ProgramResult result =
          in_scratch(folder, "trainyard " + command + path + " || exit $?");
      if (command == std::string("check ")) {
        REQUIRE(result.status == 2);
        REQUIRE(result.error.find("internal") == std::string::npos);
        continue;
      }
      require_one_line(result, "");
    }
  }
  REQUIRE(std::filesystem::is_symlink(folder.path() / "loop"));
  require_one_line(in_scratch(folder, "trainyard validate --cases '' || exit $?"),
                   "--cases: expected a folder of validation cases, found \"\"");
}

TEST_CASE("a lack of memory is one line") {
  const ScratchFolder folder;
  // With the address sanitizer the program needs terabytes of addresses to start.
  const ProgramResult starts =
      in_scratch(folder, "(ulimit -v 400000; trainyard --version) || exit $?");
  if (starts.status != 0) {
    return;
  }
  require_one_line(in_scratch(folder,
                              "(ulimit -v 400000; trainyard collective alltoall --cluster "
                              "hgx-h100-clos --nodes 256 --runtime plain -b 1G -e 1G) || exit $?"),
                   "memory: expected enough for this run, found no more");
}

TEST_CASE("every crash says first what to send to whom") {
  REQUIRE(crash_advice().starts_with("trainyard: this is a mistake of Trainyard, not yours: "));
  REQUIRE(crash_advice().find("CONTRIBUTING.md") != std::string_view::npos);
  REQUIRE(crash_advice().ends_with("\n"));
  REQUIRE(crash_advice().size() < 400);
}

}  // namespace trainyard
