// SPDX-License-Identifier: Apache-2.0
// A page asks for runs by the words of command lines. Only commands and options are taken that read
// nothing outside of configs and the work folder, and write nothing.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/option_table.h"
#include "cli/common/options.h"

namespace trainyard {

// A run writes its figures, its first table, or the page of --report. The others are no runs: the
// cluster and the workload as files (setup_file.h).
enum class RunForm { Json, Csv, Report, Cluster, Workload };

struct RunRequest {
  std::vector<std::string> words = {};  // "step", "--cluster", "dgx-h100".
  RunForm form = RunForm::Json;
  // The words with what makes the form, and lines about progress. A report goes to that file.
  [[nodiscard]] std::vector<std::string> arguments(const std::filesystem::path& report) const;

  bool has_log_level = false;  // The command can tell how far it is, and is not told whether.
};

// The commands that a page may run, in the order of its list. Parts of a command are commands of
// their own, whose name has two words: "explain step".
[[nodiscard]] std::vector<Command> served_commands();

// Whether a page may give that option: it is neither where results go nor their form.
[[nodiscard]] bool is_served(const Option& option);

// Reads {"words": [...], "form": "json|csv|report|cluster|workload"}; the form may be left out.
// Throws ConfigError.
[[nodiscard]] RunRequest read_run_request(std::string_view body);

// The command of a request and its options. Throws ConfigError.
[[nodiscard]] std::pair<Command, OptionReader> options_of(const RunRequest& request);

}  // namespace trainyard
