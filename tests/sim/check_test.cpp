// SPDX-License-Identifier: Apache-2.0
// What a failed CHECK prints and how it ends, seen from a parent process.
#include "support/catch.h"

#include "sim/check.h"

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <string>

#include "sim/crash_advice.h"

namespace trainyard {
namespace {

TEST_CASE("a CHECK that holds does nothing") {
  CHECK(1 + 1 == 2, "arithmetic");
  DCHECK(true, "truth");
}

TEST_CASE("a CHECK that fails prints place, condition and message, and aborts") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    check_failed("here.cpp", 12, "a < b", "the reason");
  }
  close(ends[1]);
  std::string text;
  char letter = 0;
  while (read(ends[0], &letter, 1) == 1) {
    text += letter;
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  REQUIRE(WTERMSIG(status) == SIGABRT);
  REQUIRE(text == std::string(crash_advice()) + "here.cpp:12: check failed: a < b: the reason\n");
}

}  // namespace
}  // namespace trainyard
