// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/shell/man_page.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "support/program.h"

namespace trainyard {
namespace {

constexpr std::string_view kVersion = "trainyard 1.2.3";

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string dashed(std::string_view option) {
  std::string text = "\\-\\-";
  for (const char letter : option) {
    text += letter == '-' ? "\\-" : std::string(1, letter);
  }
  return text;
}

// Whether the checker is installed; says so by name if it is not.
bool is_there(const std::string& checker, const ScratchFolder& folder) {
  const bool is_found = run_shell("command -v " + checker, folder.path()).status == 0;
  if (!is_found) {
    WARN("not installed, and so not asked: " << checker);
  }
  return is_found;
}

}  // namespace

TEST_CASE("each command has a manual page with all its options, and the first lists them") {
  const std::vector<ManPage> pages = man_pages(all_commands());
  const std::string first = program_man_page(pages, kVersion);
  REQUIRE(pages.size() > all_commands().size());
  for (const ManPage& page : pages) {
    INFO(page.name);
    const std::string text = to_roff(page, kVersion);
    REQUIRE(text.starts_with(".TH TRAINYARD-"));
    REQUIRE(has(text, "\"trainyard 1.2.3\""));
    REQUIRE(has(first, ".BR " + dashed("trainyard-" + page.name).substr(4) + " (1)\n"));
    for (const Option& row : page.command.options) {
      INFO(row.name);
      REQUIRE(has(text, "\\fB" + dashed(row.name) + "\\fR"));
    }
  }
  REQUIRE(has(first, ".BR trainyard\\-explain\\-step (1)\n"));
}

TEST_CASE("a manual page has description, examples and choices of its command") {
  Command command{
      .name = "haul",
      .form = "haul FILE",
      .summary = "moves wagons",
      .usage = "haul FILE [options]",
      .options = {{"speed", "NAME", "how fast it 'goes'", {.letter = 's', .choices = "slow|fast"}}},
      .example =
          "\n.dots first\nand more.\n\n  as: it is\n\nExamples:\n  trainyard "
          "haul a-b\n"};
  const std::vector<ManPage> pages = man_pages(std::vector{command});
  REQUIRE(to_roff(pages.front(), kVersion) ==
          ".TH TRAINYARD-HAUL 1 2026-11-28 \"trainyard 1.2.3\" \"Trainyard\"\n"
          ".ad l\n.nh\n.SH NAME\ntrainyard\\-haul \\- moves wagons\n"
          ".SH SYNOPSIS\n\\fBtrainyard\\fR haul FILE [options]\n"
          ".SH DESCRIPTION\n\\&.dots first and more.\n.PP\n.EX\n  as: it is\n.EE\n"
          ".SH OPTIONS\n.TP\n\\fB\\-\\-help\\fR\nthis text\n"
          ".TP\n\\fB\\-s\\fR, \\fB\\-\\-speed\\fR \\fINAME\\fR\n"
          "how fast it \\(aqgoes\\(aq (slow, fast)\n"
          ".SH EXIT STATUS\n.TP\n0\nThe run is complete.\n"
          ".TP\n1\nThe command says on this page what it counts as a failure.\n"
          ".TP\n2\nThe input cannot be used, or the machine lacks what the run needs; one line on\n"
          "standard error says what and where.\n"
          ".SH EXAMPLES\n.EX\n  trainyard haul a\\-b\n.EE\n"
          ".SH SEE ALSO\n.BR trainyard (1)\n");
}

TEST_CASE("mandoc and man find nothing to complain of in manual pages") {
  const ScratchFolder folder;
  const std::vector<ManPage> pages = man_pages(all_commands());
  static_cast<void>(folder.write("trainyard.1", program_man_page(pages, kVersion)));
  for (const ManPage& page : pages) {
    static_cast<void>(folder.write("trainyard-" + page.name + ".1", to_roff(page, kVersion)));
  }
  if (is_there("mandoc", folder)) {
    const ProgramResult lint = run_shell("mandoc -T lint -W warning *.1", folder.path());
    REQUIRE(lint.output + lint.error == "");
    REQUIRE(lint.status == 0);
  }
  if (is_there("man", folder)) {
    const ProgramResult read =
        run_shell("for page in *.1; do man --warnings -l $page >>pages.txt; done", folder.path());
    REQUIRE(read.error == "");
    REQUIRE(has(read_text_file(folder.path() / "pages.txt"), "--cluster NAME|FILE"));
  }
}

}  // namespace trainyard
