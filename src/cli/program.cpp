// SPDX-License-Identifier: Apache-2.0
#include "cli/program.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <iostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/trainyard/version.h"
#include "cli/common/commands.h"
#include "cli/common/program_end.h"
#include "cli/mpi_start.h"
#include "cli/shell/shell.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::string_view kIntroduction =
    "Trainyard predicts what clusters of GPUs do, from descriptions of their parts in YAML.\n";

constexpr std::string_view kAdvice = R"(
Every command has --help; --man has manual pages, --completion scripts for shells. Try first:
  trainyard collective all_reduce --cluster dgx-h100 --nodes 4 --algo ring,tree
  trainyard topology --cluster dgx-h100 --nodes 4
)";

// A result that nobody received, as on a full disk, must not look like success.
void require_written(std::ostream& out) {
  if (!out.flush()) {
    throw ConfigError("standard output: cannot be written");
  }
}

}  // namespace

int run_words(std::span<const std::string> arguments, std::ostream& out, KeptResult* kept) {
  const std::vector<Command> commands = all_commands();
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "help") {
    out << kIntroduction << list_commands(commands) << kAdvice;
    return 0;
  }
  if (arguments[0] == "--version") {
    out << "trainyard " TRAINYARD_VERSION_TEXT "\n";
    return 0;
  }
  if (answer_shell(commands, "trainyard " TRAINYARD_VERSION_TEXT, arguments, out)) {
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (arguments[0] == command.name) {
      return run_command(command, arguments.subspan(1), out, kept);
    }
    names.emplace_back(command.name);
  }
  std::ranges::sort(names);
  throw ConfigError(fmt::format("expected a command ({}), found {}{}", fmt::join(names, ", "),
                                in_quotes(arguments[0]),
                                did_you_mean(arguments[0], names, "; see trainyard --help")));
}

int run_process(int argc, char** argv) {
  keep_standard_streams();
  explain_crashes();
  try {
    if (is_one_of_several()) {
      become_team_member(argv);
    }
    const int status = run_words(std::vector<std::string>(argv + 1, argv + argc), std::cout);
    require_written(std::cout);
    return status;
  } catch (...) {
    return end_with(std::current_exception());
  }
}

}  // namespace trainyard
