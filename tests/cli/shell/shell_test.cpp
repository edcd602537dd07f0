// SPDX-License-Identifier: Apache-2.0
// The scripts of --completion in the shells themselves, which ask the built program.
#include "support/catch.h"

#include "cli/shell/shell.h"

#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::string answer(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(answer_shell(all_commands(), "trainyard 1.2.3", arguments, out));
  return std::move(out).str();
}

// Runs `line` in a shell that has read its script, in a folder with a file of its own. Nothing if
// the shell is not installed, which is said by name.
std::string in_shell(const std::string& shell, const std::string& start, const std::string& line) {
  const ScratchFolder folder;
  if (run_shell("command -v " + shell, folder.path()).status != 0) {
    WARN("not installed, and so not asked: " << shell);
    return "";
  }
  static_cast<void>(folder.write("my-cluster.yaml", ""));
  static_cast<void>(folder.write("script", answer({"--completion", shell})));
  static_cast<void>(folder.write("line", start + "source ./script\n" + line));
  const ProgramResult result = run_shell(shell + " ./line", folder.path());
  REQUIRE(result.error == "");
  return result.output;
}

}  // namespace

TEST_CASE("the program answers nothing but what shells and packages ask") {
  std::ostringstream out;
  REQUIRE_FALSE(answer_shell(all_commands(), "trainyard 1.2.3", {}, out));
  REQUIRE_FALSE(
      answer_shell(all_commands(), "trainyard 1.2.3", std::vector<std::string>{"step"}, out));
  REQUIRE(out.str().empty());
  REQUIRE(answer({"--complete", "step", "--format", "c"}) == "csv\n");
  REQUIRE(answer({"--complete", "--vers"}) == "--version\tthe version of the program\n");
  REQUIRE(answer({"--man", "explain-step"}).starts_with(".TH TRAINYARD-EXPLAIN-STEP 1 "));
  REQUIRE(answer({"--man"}).starts_with(".TH TRAINYARD 1 "));
  REQUIRE(answer({"--completion", "zsh"}).starts_with("#compdef trainyard\n"));
}

TEST_CASE("an unknown shell or manual page is refused in one line") {
  std::ostringstream out;
  const auto asked = [&](const std::vector<std::string>& arguments) -> std::string {
    try {
      answer_shell(all_commands(), "", arguments, out);
      return "no error";
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  REQUIRE(asked({"--completion", "csh"}) ==
          "--completion: expected bash, zsh or fish, found \"csh\"; did you mean \"zsh\"?");
  REQUIRE(asked({"--completion"}) == "--completion: expected bash, zsh or fish, found \"\"");
  REQUIRE(asked({"--man", "stop"}) ==
          "--man: expected a command, found \"stop\"; did you mean \"step\"?");
  REQUIRE(asked({"--man", "step", "search"}) == "--man: expected a command, found \"step search\"");
}

TEST_CASE("bash completes command lines by its script") {
  const std::string line =
      "COMP_WORDS=(trainyard topology --set fabric.routing = ec); COMP_CWORD=5\n"
      "_trainyard trainyard; echo ${COMPREPLY[@]}\n"
      "COMP_WORDS=(trainyard step --cluster dgx-h); COMP_CWORD=3\n"
      "_trainyard trainyard; echo ${COMPREPLY[@]}\n"
      "complete -p trainyard\n";
  REQUIRE(in_shell("bash", "", line) ==
          "ecmp\ndgx-h100 dgx-h200\n"
          "complete -o default -o nosort -F _trainyard trainyard\n");
}

TEST_CASE("zsh completes command lines by its script") {
  const std::string start =
      "autoload -Uz compinit; compinit -D -u\n"
      "compadd() { print -r -- $ended / $open }\n_files() { print files }\n";
  const std::string line =
      "words=(trainyard step --cluster dgx-h); CURRENT=4 PREFIX=dgx-h\n_trainyard\n"
      "words=(trainyard topology --set fabric.rout); CURRENT=4 PREFIX=fabric.rout\n_trainyard\n"
      "words=(trainyard step --cluster my); CURRENT=4 PREFIX=my\n_trainyard\n"
      "print $_comps[trainyard]\n";
  const std::string output = in_shell("zsh", start, line);
  REQUIRE((output.empty() || output ==
                                 "dgx-h100 dgx-h200 /\ndgx-h100 dgx-h200 /\n"
                                 "/ fabric.routing= fabric.routing_seed=\n"
                                 "/ fabric.routing= fabric.routing_seed=\nfiles\n_trainyard\n"));
}

TEST_CASE("fish completes command lines by its script, and files where there is nothing else") {
  const std::string line =
      "complete -C 'trainyard step --cluster dgx-h'\n"
      "complete -C 'trainyard step --cluster my'\n"
      "complete -C 'trainyard topology --set fabric.rout'\n"
      "complete -C 'trainyard step --format=js'\n";
  const std::string output = in_shell("fish", "", line);
  REQUIRE((output.empty() ||
           output == "dgx-h100\ndgx-h200\nmy-cluster.yaml\n"
                     "fabric.routing=\tHow paths are chosen.\n"
                     "fabric.routing_seed=\tSeed of the ECMP hash: 1.\n--format=json\n"));
}

}  // namespace trainyard
