// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/groups_file.h"

#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

using Catch::Matchers::EndsWith;

std::vector<GroupSpec> groups_of(const std::string& text) {
  const ScratchFolder folder;
  return read_groups(folder.write("groups.yaml", text), 16);
}

}  // namespace

TEST_CASE("groups of N ranks follow each other, those of :N take every Nth", "[groups]") {
  const std::vector<GroupSpec> near = read_groups("4", 8);
  REQUIRE(near.size() == 2);
  REQUIRE(near[1].name == "1");
  REQUIRE(near[1].ranks == std::vector<int>{4, 5, 6, 7});
  const std::vector<GroupSpec> far = read_groups(":4", 8);
  REQUIRE(far.size() == 4);
  REQUIRE(far[1].ranks == std::vector<int>{1, 5});
  for (const std::string text : {"3", ":3", "1", ":8", "0", ":", "16", "1:2"}) {
    INFO(text);
    REQUIRE_THROWS_WITH(
        read_groups(text, 8),
        "--groups: expected N, groups of N of the 8 ranks, :N, N groups of every Nth, where N "
        "divides 8 and a group has two or more; or a file, found \"" +
            text + "\"");
  }
}

TEST_CASE("a file of groups says of each what differs from the command line", "[groups]") {
  const std::vector<GroupSpec> groups = groups_of(R"(groups:
  - ranks: 0-7
  - name: rail
    ranks: 0-15:8
    operation: all_gather
    size: 16 MiB
    algorithm: pat
    start: 30 us
)");
  REQUIRE(groups.size() == 2);
  REQUIRE(groups[0].name == "0");
  REQUIRE(groups[0].ranks.size() == 8);
  REQUIRE(!groups[0].operation);
  REQUIRE(!groups[0].size);
  REQUIRE(!groups[0].algorithm);
  REQUIRE(groups[0].start == SimTime());
  REQUIRE(groups[1].name == "rail");
  REQUIRE(groups[1].ranks == std::vector<int>{0, 8});
  REQUIRE(groups[1].operation == Operation::AllGather);
  REQUIRE(groups[1].size == mib(16));
  REQUIRE(groups[1].algorithm == &kPat);
  REQUIRE(groups[1].start == microseconds(30));
}

TEST_CASE("mistakes in a file of groups have a place", "[groups]") {
  REQUIRE_THROWS_WITH(groups_of("groups: [{ranks: 0-7, begin: 3 us}]"),
                      Catch::Matchers::Contains("groups[0]: unknown key \"begin\""));
  REQUIRE_THROWS_WITH(groups_of("groups: [{ranks: \"8,0\"}]"),
                      EndsWith("groups.yaml:1:18: groups[0].ranks: expected two or more ranks that "
                               "rise, such as 0-7, 0,8,16 or 0-63:8, found \"8,0\""));
  REQUIRE_THROWS_WITH(groups_of("groups: [{ranks: \"4\"}]"), EndsWith("found \"4\""));
  REQUIRE_THROWS_WITH(groups_of("groups: [{ranks: 0-7, operation: alltoallv}]"),
                      EndsWith("expected an operation without a matrix, found \"alltoallv\""));
  REQUIRE_THROWS_WITH(
      groups_of("groups: [{ranks: 0-16}]"),
      EndsWith("groups.yaml:1:18: groups[0].ranks: expected ranks from 0 to 15, found 16"));
  REQUIRE_THROWS_WITH(groups_of("groups: []"), EndsWith("expected one group or more, found none"));
}

// A list of ranks in short form has the ranks that it was made from.
TEST_CASE("ranks have a short form that reads back", "[groups]") {
  for (const auto& [ranks, text] : std::vector<std::pair<std::vector<int>, std::string>>{
           {{3}, "3"},
           {{0, 1}, "0-1"},
           {{0, 8}, "0,8"},
           {{0, 8, 16, 24}, "0-24:8"},
           {{0, 1, 2, 3, 8, 9, 10, 11}, "0-3,8-11"},
           {{0, 2, 4, 5, 6, 9}, "0-4:2,5-6,9"}}) {
    REQUIRE(ranks_text(ranks) == text);
    REQUIRE(rising_ranks(text) == ranks);
  }
  REQUIRE(rising_ranks("8,0").empty());
  REQUIRE(rising_ranks("0,0").empty());
  REQUIRE(rising_ranks("0-3,2").empty());
}

}  // namespace trainyard
