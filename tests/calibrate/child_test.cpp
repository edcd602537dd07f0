// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibrate/child.h"

#include <system_error>

namespace trainyard::calibrate {
namespace {

ChildEnd shell(const std::string& command, int milliseconds = 60'000) {
  return run_child("/bin/sh", {"-c", command}, std::chrono::milliseconds(milliseconds));
}

TEST_CASE("a child's output, words and status come back") {
  const ChildEnd end = shell("echo out; echo words >&2; exit 7");
  REQUIRE_FALSE(end.timed_out);
  REQUIRE(end.status == 7);
  REQUIRE(end.signal == 0);
  REQUIRE(end.output == "out\n");
  REQUIRE(end.error == "words\n");
  REQUIRE(shell("kill -SEGV $$").signal == 11);
  REQUIRE(shell("true").output.empty());
}

TEST_CASE("a child that ignores everything is killed, and what it wrote is kept") {
  const ChildEnd end = shell("trap '' TERM INT HUP; echo before; sleep 1000", 300);
  REQUIRE(end.timed_out);
  REQUIRE(end.signal == 9);
  REQUIRE(end.output == "before\n");
  // One that closes its pipes is waited for all the same.
  REQUIRE(shell("exec >&- 2>&-; sleep 1000", 300).timed_out);
}

TEST_CASE("what a child leaves behind neither holds up its end nor outlives it") {
  const ChildEnd end = shell("sleep 1000 & echo $!");
  REQUIRE_FALSE(end.timed_out);
  REQUIRE(end.status == 0);
  const std::string process = end.output.substr(0, end.output.size() - 1);
  // Gone, or dead and not yet collected by whoever inherited it.
  REQUIRE(shell("for i in 1 2 3 4 5 6 7 8 9 10; do\n"
                "  grep -q '^State:.[^Z]' /proc/" +
                process + "/status 2>/dev/null || exit 0\n  sleep 0.1\ndone\nexit 1")
              .status == 0);
}

TEST_CASE("much output does not block a child") {
  const ChildEnd end = shell("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2");
  REQUIRE(end.status == 0);
  REQUIRE(end.output.size() == 1'000'000);
  REQUIRE(end.error.size() == 4096);
}

TEST_CASE("a program that cannot be started is an error") {
  REQUIRE_THROWS_AS(run_child("/nowhere/program", {}, std::chrono::seconds(1)), std::system_error);
}

}  // namespace
}  // namespace trainyard::calibrate
