// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/workload/imported_files.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {

TEST_CASE("a workload of another tool is recognised by its name, then by its first word",
          "[imported]") {
  const ScratchFolder folder;
  REQUIRE(recognise_imported(folder.write("a.goal", "")) == ImportedFormat::Goal);
  REQUIRE(recognise_imported(folder.path() / "missing.goal") == ImportedFormat::Goal);
  REQUIRE(recognise_imported(folder.write("a.txt", "\n num_ranks 4\n")) == ImportedFormat::Goal);
  REQUIRE(!recognise_imported(folder.write("b.txt", "num_ranksome 4\n")));
  REQUIRE(recognise_imported(folder.write("c.txt", "HYBRID_TRANSFORMER\tep: 1\n")) ==
          ImportedFormat::SimAi);
  REQUIRE(recognise_imported(folder.write("d.txt", "DATA\n2\n")) == ImportedFormat::SimAi);
  REQUIRE(!recognise_imported(folder.write("a.yaml", "num_ranks 4\n")));
  REQUIRE(!recognise_imported(folder.path()));
  REQUIRE(recognise_imported(folder.path() / "rank_{rank}.json") == ImportedFormat::Kineto);
  folder.write("rank_0.json", "{}");
  REQUIRE(recognise_imported(folder.path()) == ImportedFormat::Kineto);
  folder.write("trace.0.et", "");  // The JSON is then something else.
  REQUIRE(recognise_imported(folder.path()) == ImportedFormat::Chakra);
  REQUIRE(!recognise_imported("gpt-3-175b"));
}

TEST_CASE("files that are not there or not for one rank are named", "[imported]") {
  const ScratchFolder folder;
  const auto error_of = [](const std::filesystem::path& path, ImportedFormat format) {
    try {
      (void)read_imported_files(path, format);
    } catch (const ConfigError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  const std::string name = folder.path().string();
  REQUIRE(error_of(folder.path() / "a.goal", ImportedFormat::Goal) ==
          name + "/a.goal: expected a file, found nothing");
  REQUIRE(error_of(folder.path(), ImportedFormat::Goal) ==
          name + ": expected files named *.goal, one for each rank, found none");
  folder.write("1.goal", "num_ranks 1\n");
  folder.write("2.goal", "num_ranks 1\n");
  REQUIRE(error_of(folder.path(), ImportedFormat::Goal) ==
          name + ": expected one file, as a goal file has all ranks, found 2");
}

TEST_CASE("files of ranks are those that a pattern or a directory has", "[imported]") {
  const ScratchFolder folder;
  for (const char* name :
       {"a.10.json", "a.2.json", "a.0.json", "b.0.json", "a.x.json", "a.1.txt"}) {
    folder.write(name, name);
  }
  const auto ranks_of = [&](const std::string& pattern) {
    std::vector<std::optional<int>> ranks;
    for (const ImportedFile& file :
         read_imported_files(folder.path() / pattern, ImportedFormat::Kineto)) {
      REQUIRE(file.is_on_disc);
      REQUIRE(std::filesystem::path(file.name).filename() == with_text(file).text);
      ranks.push_back(file.rank);
    }
    return ranks;
  };
  REQUIRE(ranks_of("a.{rank}.json") == std::vector<std::optional<int>>{0, 2, 10});
  // Profiles state their rank: digits in a name may be of anything.
  REQUIRE(ranks_of("") == std::vector<std::optional<int>>(5));
  REQUIRE(ranks_of("a.2.json") == std::vector<std::optional<int>>(1));
  folder.write("h100.3.et", "");
  REQUIRE(read_imported_files(folder.path(), ImportedFormat::Chakra).at(0).rank == 3);
}

TEST_CASE("packed traces are found as others are", "[imported]") {
  const ScratchFolder folder;
  folder.write("a.json.gz", "{}");
  folder.write("b.json.zst", "{}");
  folder.write("c.json", "{}");
  folder.write("d.gz", "{}");
  REQUIRE(recognise_imported(folder.path()) == ImportedFormat::Kineto);
  REQUIRE(recognise_imported(folder.path() / "a.json.gz") == ImportedFormat::Kineto);
  REQUIRE(read_imported_files(folder.path(), ImportedFormat::Kineto).size() == 3);
  REQUIRE(recognise_imported(folder.write("e.txt.gz", "num_ranks 4\n")) == ImportedFormat::Goal);
  REQUIRE(recognise_imported(folder.write("f.txt.gz", " MICRO\n2\n")) == ImportedFormat::SimAi);
}

}  // namespace trainyard
