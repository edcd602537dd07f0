// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/sweep/sweep_journal.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

// An output without any file, and its journals.
struct JournalledOutput {
  ScratchFolder folder;
  std::string output = (folder.path() / "out.csv").string();

  [[nodiscard]] std::string refusal(std::uint64_t sweep, bool resumes) const {
    try {
      (void)read_journals(output, sweep, resumes);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

const SweepResult kGood{.csv = "a,b\n1,\"x, y\"\n", .error = ""};
const SweepResult kBad{.csv = "", .error = "expected \"this\", found that"};

}  // namespace

TEST_CASE("finished points are there again after a run that was cut off", "[sweep]") {
  const JournalledOutput at;
  REQUIRE(read_journals(at.output, 42, false).empty());
  SweepJournal(at.output, 0, 42).add(3, kGood);
  SweepJournal(at.output, 11, 42).add(1, kBad);
  std::ofstream(at.output + ".partial", std::ios::app) << R"({"point": 7, "csv": "cut o)";
  REQUIRE(at.refusal(42, false).find("--resume continues with them") != std::string::npos);
  REQUIRE(at.refusal(43, true).find(":1: expected results of this sweep") != std::string::npos);
  REQUIRE(read_journals(at.output, 42, true) == SweepResults{{1, kBad}, {3, kGood}});
  SweepJournal(at.output, 0, 42).add(7, kGood);
  REQUIRE(read_journals(at.output, 42, true) == SweepResults{{1, kBad}, {3, kGood}, {7, kGood}});
  std::ofstream(at.output + ".partially") << "of somebody else";
  remove_journals(at.output);
  REQUIRE(read_journals(at.output, 42, false).empty());
  REQUIRE(std::filesystem::exists(at.output + ".partially"));
}

TEST_CASE("a journal with a damaged line is refused, whatever was changed in it", "[sweep]") {
  const JournalledOutput at;
  SweepJournal(at.output, 0, 42).add(3, kGood);
  const std::string whole = read_text_file(at.output + ".partial");
  const std::size_t second = whole.find('\n') + 1;
  REQUIRE(read_journals(at.output, 42, true) == SweepResults{{3, kGood}});
  for (std::size_t at_byte = second; at_byte + 1 < whole.size(); ++at_byte) {
    INFO(at_byte);
    std::string text = whole;
    text[at_byte] = text[at_byte] == '7' ? '8' : '7';
    std::ofstream(at.output + ".partial") << text;
    REQUIRE(at.refusal(42, true).find(":2: expected the result of a point with its checksum, "
                                      "found ") != std::string::npos);
    text.erase(at_byte, 1);
    std::ofstream(at.output + ".partial") << text;
    REQUIRE(at.refusal(42, true).find(":2: expected the result of a point") != std::string::npos);
  }
  std::ofstream(at.output + ".partial") << whole << "nonsense\n";
  REQUIRE(at.refusal(42, true).find(":3: expected the result of a point with its checksum, "
                                    "found \"nonsense\"") != std::string::npos);
}

TEST_CASE("text that is not UTF-8 does not end a sweep", "[sweep]") {
  const JournalledOutput at;
  SweepJournal(at.output, 0, 42).add(0, {.csv = "a\xff", .error = ""});
  REQUIRE(read_journals(at.output, 42, true).at(0).csv == "a\xef\xbf\xbd");
}

TEST_CASE("results go to another process as they are", "[sweep]") {
  const SweepResults results{{0, kGood}, {5, kBad}};
  REQUIRE(results_from(to_text(results)) == results);
  REQUIRE(results_from("").empty());
}

}  // namespace trainyard
