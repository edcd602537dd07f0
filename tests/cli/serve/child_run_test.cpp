// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/serve/child_run.h"

#include <string>
#include <vector>

#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const ChildWatch kSilent{.on_line = [](std::string_view /*line*/) {},
                         .is_wanted = [] { return true; }};

ChildResult run_script(const std::string& script, const ChildLimits& limits = {},
                       const ChildWatch& watch = kSilent) {
  const ScratchFolder folder;
  return run_child("/bin/sh", {"-c", script}, folder.path(), limits, watch);
}

}  // namespace

TEST_CASE("a run prints to whoever asked, line by line on standard error", "[serve]") {
  const ScratchFolder folder;
  std::vector<std::string> lines;
  const ChildWatch watch{.on_line = [&](std::string_view line) { lines.emplace_back(line); },
                         .is_wanted = [] { return true; }};
  const ChildResult result = run_child("/bin/sh", {"-c", "pwd; echo one >&2; echo two >&2; exit 3"},
                                       folder.path(), {}, watch);
  REQUIRE(result.output == folder.path().string() + "\n");
  REQUIRE(lines == std::vector<std::string>{"one", "two"});
  REQUIRE(result.last_line == "two");
  REQUIRE(result.status == 3);
  REQUIRE(result.stopped.empty());
  const ChildResult program = run_child(program_path(), {"--version"}, folder.path(), {}, kSilent);
  REQUIRE(program.output.starts_with("trainyard "));
}

TEST_CASE("a run that takes too long, too much memory or output is ended, with what it started",
          "[serve]") {
  ChildLimits limits;
  limits.time = std::chrono::seconds(1);
  REQUIRE(run_script("sleep 60 & sleep 60", limits).stopped == "the run took more than 1 s");
  limits.time = std::chrono::seconds(60);
  limits.output = kib(100);
  REQUIRE(run_script("yes", limits).stopped == "the result has more than 100KiB");
  limits.memory = mib(64);
  const ChildResult large =
      run_script("a=x; while :; do a=$a$a; done", limits);  // Doubles until it is ended.
  REQUIRE(large.stopped == "the run took more than 64MiB of memory");
  REQUIRE(large.status == 128 + 9);
}

TEST_CASE("a run that nobody wants any more is ended", "[serve]") {
  int asked = 0;
  const ChildWatch watch{.on_line = [](std::string_view /*line*/) {},
                         .is_wanted = [&] { return ++asked < 3; }};
  const ChildResult result = run_script("sleep 60", {}, watch);
  REQUIRE(result.stopped == "cancelled");
  REQUIRE(asked == 3);
}

TEST_CASE("a run writes no file unless it may, and a crash is a status", "[serve]") {
  ChildLimits limits;
  REQUIRE(run_script("echo text > file && cat file", limits).output.empty());
  limits.has_files = true;
  REQUIRE(run_script("echo text > file && cat file", limits).output == "text\n");
  REQUIRE(run_script("kill -SEGV $$").status == 128 + 11);
  const ScratchFolder folder;
  REQUIRE(run_child("/nowhere/program", {}, folder.path(), {}, kSilent).status == 127);
}

}  // namespace trainyard
