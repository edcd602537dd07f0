// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/common.h"

#include <atomic>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {

TEST_CASE("a cluster is found by its name or taken as a file") {
  REQUIRE(find_config("clusters", "dgx-1").filename() == "dgx-1.yaml");
  REQUIRE(std::filesystem::exists(find_config("clusters", "dgx-1")));
  REQUIRE(find_config("clusters", "dgx-1.yaml") == "dgx-1.yaml");
  REQUIRE(find_config("clusters", "some/dgx-1") == "some/dgx-1");
  REQUIRE_THROWS_AS(find_config("clusters", "dgx-9999"), ConfigError);
  REQUIRE_THROWS_WITH(find_config("clusters", ""),
                      "expected the name or file of one of the clusters, found nothing");
}

TEST_CASE("counted things are in the singular or plural") {
  REQUIRE(counted(0, "node") == "0 nodes");
  REQUIRE(counted(1, "node") == "1 node");
  REQUIRE(counted(2, "node") == "2 nodes");
}

TEST_CASE("output goes to the file or the stream, never to both") {
  const ScratchFolder folder;
  std::ostringstream out;
  write_output(std::nullopt, "text\n", out);
  write_output(folder.path() / "file", "other\n", out);
  REQUIRE(out.str() == "text\n");
  REQUIRE(read_text_file(folder.path() / "file") == "other\n");
}

TEST_CASE("every task runs once on any number of threads") {
  for (const unsigned threads : {0U, 1U, 3U, 100U}) {
    std::vector<std::atomic<int>> runs(20);
    run_tasks(runs.size(), threads, "test", [&](std::size_t index) { ++runs[index]; });
    for (const std::atomic<int>& count : runs) {
      REQUIRE(count == 1);
    }
  }
  run_tasks(0, 4, "test", [](std::size_t) { FAIL("there is no task"); });
}

TEST_CASE("of several failing tasks the first is reported, after all have ended") {
  std::atomic<int> ended{0};
  const auto task = [&](std::size_t index) {
    ++ended;
    if (index % 3 == 1) {
      throw std::runtime_error("task " + std::to_string(index));
    }
  };
  for (const unsigned threads : {1U, 4U}) {
    ended = 0;
    REQUIRE_THROWS_WITH(run_tasks(10, threads, "test", task), "task 1");
    REQUIRE(ended == 10);
  }
}

}  // namespace trainyard
