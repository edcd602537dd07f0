// SPDX-License-Identifier: Apache-2.0
// A run as a process of its own: what it crashes with, hangs in or takes of memory ends it alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace trainyard {

struct ChildLimits {
  std::chrono::seconds time{600};
  Bytes memory = gib(4);   // Resident, looked at twenty times a second.
  Bytes output = mib(64);  // The most that it may print, and write to each file.
  bool has_files = false;  // Whether it may write files at all.
};

struct ChildResult {
  int status = 0;  // 128 + N if signal N ended it.
  std::string output = {};
  std::string last_line = {};  // The last one on standard error: the reason, where it failed.
  std::string stopped = {};    // Why it was ended from here; empty: it ended by itself.
};

struct ChildWatch {
  // Each line on standard error, without its end.
  std::function<void(std::string_view line)> on_line;
  // Asked twenty times a second: false ends the run.
  std::function<bool()> is_wanted;
};

// Runs a program with these arguments in `folder`; ends it and all that it started when it
// breaks a limit, when it is not wanted any more, and when the thread that called this ends.
// Throws ConfigError where the system has no process to give.
[[nodiscard]] ChildResult run_child(const std::string& program,
                                    const std::vector<std::string>& arguments,
                                    const std::filesystem::path& folder, const ChildLimits& limits,
                                    const ChildWatch& watch);

}  // namespace trainyard
