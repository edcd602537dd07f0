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

TEST_CASE("a journal with a line that is none is refused", "[sweep]") {
  const JournalledOutput at;
  { const SweepJournal journal(at.output, 0, 42); }
  std::ofstream(at.output + ".partial", std::ios::app) << "nonsense\n";
  REQUIRE(at.refusal(42, true).find(":2: expected the result of a point, found ") !=
          std::string::npos);
}

TEST_CASE("results go to another process as they are", "[sweep]") {
  const SweepResults results{{0, kGood}, {5, kBad}};
  REQUIRE(results_from(to_text(results)) == results);
  REQUIRE(results_from("").empty());
}

}  // namespace trainyard
