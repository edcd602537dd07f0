// SPDX-License-Identifier: Apache-2.0
#include "cli/serve/setup_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/inputs.h"
#include "cli/common/options.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster_document.h"

namespace trainyard {
namespace {

// A scalar as YAML reads it back: in quotes, as JSON has them, where it could be something else.
std::string scalar_text(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+ -";
  const bool is_plain = !text.empty() && text.find_first_not_of(kPlain) == std::string::npos &&
                        text.front() != ' ' && text.front() != '-' && text.back() != ' ' &&
                        text != "null" && text != "Null" && text != "NULL";
  return is_plain ? text : nlohmann::json(text).dump();
}

// A value in one line.
std::string flow_text(const ConfigNode& node) {
  std::vector<std::string> parts;
  if (node.is_map()) {
    for (const auto& [key, value] : node.entries()) {
      parts.push_back(fmt::format("{}: {}", scalar_text(key), flow_text(value)));
    }
    return fmt::format("{{{}}}", fmt::join(parts, ", "));
  }
  if (node.is_sequence()) {
    for (const ConfigNode& item : node.items()) {
      parts.push_back(flow_text(item));
    }
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  return node.is_null() ? "null" : scalar_text(node.as_string());
}

// A line for each key, and for each key of a mapping below it.
std::string block_text(const ConfigNode& root) {
  std::string text;
  for (const auto& [key, value] : root.entries()) {
    if (!value.is_map() || value.entries().empty()) {
      text += fmt::format("{}: {}\n", scalar_text(key), flow_text(value));
      continue;
    }
    text += fmt::format("{}:\n", scalar_text(key));
    for (const auto& [below, each] : value.entries()) {
      text += fmt::format("  {}: {}\n", scalar_text(below), flow_text(each));
    }
  }
  return text;
}

// A file of the work folder, or what `find` says of the name.
template <typename Find>
std::filesystem::path file_of(const std::string& name, const std::filesystem::path& folder,
                              Find find) {
  std::error_code ignored;
  const std::filesystem::path own = folder / name;
  return !folder.empty() && std::filesystem::is_regular_file(own, ignored) ? own : find(name);
}

// The words that stay beside the files.
std::string line_of(const Command& command, const OptionReader& reader, bool has_workload) {
  std::string line = fmt::format("trainyard {}", command.name);
  for (const Option& row : command.arguments) {
    for (const std::string& value : reader.texts(row.name)) {
      line += " " + value;
    }
  }
  line +=
      has_workload ? " --cluster cluster.yaml --workload workload.yaml" : " --cluster cluster.yaml";
  constexpr std::array<std::string_view, 5> kInFiles{"cluster", "workload", "model", "nodes",
                                                     "set"};
  for (const auto& [name, values] : reader.values()) {
    if (command.is_argument(name) || std::ranges::find(kInFiles, name) != kInFiles.end()) {
      continue;
    }
    const Option* const row = command.find(name);
    for (const std::string& value : values) {
      line += row->value.empty() ? fmt::format(" --{}", name)
                                 : fmt::format(" --{}={}", name, nlohmann::json(value).dump());
    }
  }
  return line;
}

}  // namespace

std::string setup_file(const RunRequest& request, const std::filesystem::path& folder) {
  const auto [command, reader] = options_of(request);
  InputNames names = read_input_names(reader);
  const std::string line = line_of(command, reader, !names.workload.empty());
  const std::string above =
      fmt::format("# The figures of this line are those of the page:\n#   {}\n", line);
  if (request.form == RunForm::Cluster) {
    const auto find = [](const std::string& name) { return find_config("clusters", name); };
    ConfigDocument document = cluster_document(file_of(names.cluster, folder, find),
                                               load_default_catalogue(), names.overrides);
    return above + block_text(document.root());
  }
  if (names.workload.empty()) {
    throw ConfigError("form: expected a command with --workload or --model, found none");
  }
  ConfigDocument document = ConfigDocument::load(
      file_of(names.workload, folder, [](const std::string& name) { return find_workload(name); }));
  for (const std::string& setting : names.workload_settings) {
    const std::size_t equals = setting.find('=');
    document.set(setting.substr(0, equals),
                 setting.substr(std::min(equals, setting.size() - 1) + 1));
  }
  return above + block_text(document.root());
}

}  // namespace trainyard
