// SPDX-License-Identifier: Apache-2.0
#include "cli/common/team.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>
#include <sstream>
#include <string_view>
#include <system_error>

#include "cli/common/options.h"
#include "cli/common/runtime.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// A folder for what this process writes for nobody, which is gone with it.
class UnreadFiles {
 public:
  explicit UnreadFiles(std::uint32_t rank)
      : folder_(std::filesystem::temp_directory_path() /
                fmt::format("trainyard-{}-{}", getpid(), rank)) {
    std::filesystem::create_directory(folder_);
  }
  UnreadFiles(const UnreadFiles&) = delete;
  UnreadFiles& operator=(const UnreadFiles&) = delete;
  ~UnreadFiles() {
    std::error_code error;  // Ignored: files that nobody reads.
    std::filesystem::remove_all(folder_, error);
  }
  [[nodiscard]] std::string instead_of(std::string_view option, const std::string& file) const {
    const std::string name = std::filesystem::path(file).filename();
    return folder_ / fmt::format("{}-{}", option, name);
  }

 private:
  std::filesystem::path folder_;
};

// Everything as it was given, but other files for results, and no log.
OptionReader silent(const OptionReader& reader, const UnreadFiles& files) {
  OptionValues values = reader.values();
  for (const Option& row : reader.command().options) {
    const auto given = values.find(row.name);
    if (row.traits.role == Role::Result && row.value.starts_with("FILE") && given != values.end()) {
      for (std::string& file : given->second) {
        file = files.instead_of(row.name, file);
      }
    }
  }
  if (reader.command().find("log-level") != nullptr) {
    values["log-level"] = {"off"};
  }
  return {reader.command(), values};
}

int run_joined(PacketTeam& team, OptionReader reader, std::ostream& out) {
  assume_runtime(reader);
  reader.forget_reads();
  reader.join(team);
  return reader.command().run(reader, out);
}

}  // namespace

bool is_for_team(std::string_view command) {
  constexpr std::array<std::string_view, 5> kCommands{"collective", "jobs", "search", "step",
                                                      "traffic"};
  return std::ranges::find(kCommands, command) != kCommands.end();
}

int run_command_in(PacketTeam& team, const Command& command, std::span<const std::string> arguments,
                   std::ostream& out) {
  const OptionReader reader = parse_options(command, arguments);
  if (reader.given("help")) {
    if (team.rank() == 0) {
      out << help_of(command);
    }
    return 0;
  }
  const bool has_engine = command.find("fidelity") != nullptr && command.name != "search";
  if (has_engine && reader.text("fidelity").value_or("") != "packet") {
    throw ConfigError(fmt::format(
        "trainyard {} in several processes: expected --fidelity packet, found {}", command.name,
        reader.text("fidelity") ? "--fidelity " + *reader.text("fidelity") : "another engine"));
  }
  if (team.rank() == 0) {
    return run_joined(team, reader, out);
  }
  const UnreadFiles files(team.rank());
  std::ostringstream unread;
  return run_joined(team, silent(reader, files), unread);
}

}  // namespace trainyard
