// SPDX-License-Identifier: Apache-2.0
// One call of the library, in words that neither the public header nor the house has: they name
// some types alike, so that no file can include both.
#pragma once

#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "sim/host/control_callback.h"

namespace trainyard {

struct CallWatch {
  std::stop_token stop = {};
  std::function<void(std::string_view)> progress = {};
  std::function<ControlPace(const ControlEvent&)> control = {};
};

struct CallOutcome {
  int status = 0;
  std::string text = {};
  std::vector<std::string> log = {};
  // Renders the result as --format FORM does; empty where the command has no forms.
  std::function<std::string(std::string_view form)> rendered = {};
};

// Runs a command line. Throws ConfigError for all that the user or the machine is the reason of,
// RunCancelled, and std::logic_error for a mistake of ours.
[[nodiscard]] CallOutcome run_call(std::span<const std::string> words, const CallWatch& watch);

// Runs the whole program (cli/program.h).
[[nodiscard]] int run_whole_program(int argc, char** argv);

// The tables of commands and options are the same as those of the house, row by row.
struct CallOption {
  std::string name;
  std::string value;
  std::string help;
  std::vector<std::string> choices;
  bool is_argument = false;
  bool repeats = false;
};
struct CallCommand {
  std::string name;  // "explain step"
  std::string summary;
  std::vector<CallOption> options;
};
[[nodiscard]] std::vector<CallCommand> call_commands();

}  // namespace trainyard
