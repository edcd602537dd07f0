// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/workload/imported_lines.h"

#include <string>
#include <vector>

#include "sim/config_error.h"
#include "sim/random.h"
#include "support/program.h"

namespace trainyard {
namespace {

std::vector<std::string> lines_of(const ImportedFile& file) {
  std::vector<std::string> lines;
  ImportedLines reader(file);
  while (const auto line = reader.next()) {
    lines.emplace_back(*line);
  }
  return lines;
}

}  // namespace

TEST_CASE("a file on disc has the lines of its text", "[imported_lines]") {
  const ScratchFolder folder;
  RandomStream random(0, "lines");
  // Shorter and longer than a block of a megabyte, cut anywhere; also one line of several blocks.
  for (const std::size_t length : {0U, 1U, 1000U, 1U << 20U, 3'000'000U}) {
    for (const std::uint64_t longest : {2U, 100U, 5'000'000U}) {
      std::string text;
      std::vector<std::string> expected;
      while (text.size() < length) {
        expected.emplace_back(random.below(longest), 'x');
        text += expected.back() + '\n';
      }
      // The last line may have no end.
      if (!text.empty() && random.below(2) == 0) {
        text.pop_back();
        if (expected.back().empty()) {
          expected.pop_back();
        }
      }
      const auto path = folder.write("a.txt", text);
      REQUIRE(lines_of({.name = "a", .rank = {}, .text = text}) == expected);
      REQUIRE(lines_of({.name = path.string(), .rank = {}, .text = {}, .is_on_disc = true}) ==
              expected);
    }
  }
}

TEST_CASE("a file that cannot be read is named", "[imported_lines]") {
  const ScratchFolder folder;
  const ImportedFile gone{
      .name = folder.path().string() + "/gone", .rank = {}, .text = {}, .is_on_disc = true};
  REQUIRE_THROWS_AS(ImportedLines(gone), ConfigError);
}

}  // namespace trainyard
