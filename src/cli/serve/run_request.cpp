// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/run_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "cli/common/commands.h"
#include "cli/serve/work_folder.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

// The first words of commands that predict from names and settings alone. The others read files of
// the user, fit, or write.
constexpr std::array<std::string_view, 6> kServed{"step",    "collective", "search",
                                                  "traffic", "cost",       "explain"};
constexpr std::array<std::string_view, 5> kForms{"json", "csv", "report", "cluster", "workload"};
constexpr std::size_t kMostWords = 200;

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.emplace_back(command.name);
  }
  return names;
}

// The command that the words begin with, and how many of them are its name.
std::pair<Command, std::size_t> command_of(const std::vector<std::string>& words) {
  const std::vector<Command> commands = served_commands();
  for (const Command& command : commands) {
    const std::string_view name = command.name;
    const std::size_t blank = name.find(' ');
    const bool is_part = blank != std::string::npos;
    if (!words.empty() && words[0] == name.substr(0, blank) &&
        (!is_part || (words.size() > 1 && words[1] == name.substr(blank + 1)))) {
      return {command, is_part ? 2 : 1};
    }
  }
  fail_value("words", alternatives(names_of(commands)), words.empty() ? "" : words[0]);
}

void check_options(const Command& command, const OptionReader& reader) {
  for (const auto& [name, values] : reader.values()) {
    const Option* const row = command.find(name);
    if (row == nullptr || !is_served(*row)) {
      throw ConfigError(fmt::format("--{}: expected no option of results and their form", name));
    }
    for (const std::string& value : values) {
      check_stays_inside(command.is_argument(name) ? name : "--" + name, value);
    }
  }
}

nlohmann::json parsed(std::string_view body) {
  nlohmann::json json = nlohmann::json::parse(body, nullptr, false);
  if (!json.is_object()) {
    throw ConfigError("expected an object of JSON, found something else");
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "words" && key != "form") {
      fail_value("request", "the keys words and form", key);
    }
  }
  return json;
}

}  // namespace

std::vector<std::string> RunRequest::arguments(const std::filesystem::path& report) const {
  std::vector<std::string> all = words;
  switch (form) {
    case RunForm::Json:
    case RunForm::Csv:
      all.insert(all.end(), {"--format", std::string(kForms[static_cast<std::size_t>(form)])});
      break;
    case RunForm::Report:
      all.insert(all.end(), {"--report", report.string()});
      break;
    case RunForm::Cluster:
    case RunForm::Workload:
      break;
  }
  if (has_log_level) {
    all.insert(all.end(), {"--log-level", "info"});
  }
  return all;
}

std::vector<Command> served_commands() {
  std::vector<Command> served;
  const std::vector<Command> all = all_commands();
  for (const std::string_view name : kServed) {
    const auto command = std::ranges::find(all, name, &Command::name);
    if (command->parts.empty()) {
      served.push_back(*command);
    }
    for (Command part : command->parts) {
      part.name = part.form;
      served.push_back(std::move(part));
    }
  }
  return served;
}

bool is_served(const Option& option) {
  return option.traits.role != Role::Result;
}

std::pair<Command, OptionReader> options_of(const RunRequest& request) {
  const auto [command, named] = command_of(request.words);
  return {command, parse_options(command, std::span(request.words).subspan(named))};
}

RunRequest read_run_request(std::string_view body) {
  const nlohmann::json json = parsed(body);
  RunRequest request;
  const auto words = json.find("words");
  const auto is_text = [](const nlohmann::json& word) { return word.is_string(); };
  if (words == json.end() || !words->is_array() || words->size() > kMostWords ||
      !std::ranges::all_of(*words, is_text)) {
    throw ConfigError(fmt::format("words: expected a list of at most {} texts", kMostWords));
  }
  request.words = words->get<std::vector<std::string>>();
  const std::string form = json.contains("form") && json["form"].is_string()
                               ? json["form"].get<std::string>()
                           : json.contains("form") ? ""
                                                   : "json";
  const auto found = std::ranges::find(kForms, form);
  if (found == kForms.end()) {
    fail_value("form", "json, csv, report, cluster or workload", form);
  }
  request.form = static_cast<RunForm>(found - kForms.begin());
  const auto [command, reader] = options_of(request);
  check_options(command, reader);
  request.has_log_level = command.find("log-level") != nullptr && !reader.given("log-level");
  return request;
}

}  // namespace trainyard
