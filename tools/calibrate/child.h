// SPDX-License-Identifier: Apache-2.0
// A process under a watchdog: what it wrote, and how it ended.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace trainyard::calibrate {

struct ChildEnd {
  bool timed_out = false;
  int status = 0;      // Exit status, if no signal ended it.
  int signal = 0;      // 0 if none did.
  std::string output;  // Standard output.
  std::string error;   // The last 4 KiB of standard error.
  double seconds = 0.0;
};

// Runs `program` in a process group of its own and waits until it and its pipes are closed. When
// `patience` has passed, and whenever it has ended, all of its group is killed: ranks that it left
// behind would disturb the next measurement. Throws std::system_error if it cannot be started.
[[nodiscard]] ChildEnd run_child(const std::string& program,
                                 const std::vector<std::string>& arguments,
                                 std::chrono::milliseconds patience);

// To be called first in a child: it ends when its parent does, even by SIGKILL.
void end_with_parent();

// The program that this process runs.
[[nodiscard]] std::string own_program();

}  // namespace trainyard::calibrate
