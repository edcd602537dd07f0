// SPDX-License-Identifier: Apache-2.0
#include "cli/common/option_checks.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "cli/common/common.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 5> kConfigs{"clusters", "workloads", "traffic", "transport",
                                                   "sweeps"};

bool is_read_as(const std::string& output, const std::string& value) {
  if (value.empty()) {
    return false;
  }
  std::error_code error;
  if (std::filesystem::is_directory(value, error)) {
    return is_same_file(std::filesystem::absolute(output, error).parent_path().string(), value);
  }
  return is_same_file(output, value) ||
         std::any_of(kConfigs.begin(), kConfigs.end(), [&](std::string_view kind) {
           return is_same_file(output, (configs_folder() / kind / (value + ".yaml")).string());
         });
}

}  // namespace

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code error;  // Ignored: a missing file equals no existing one.
  const auto whole = [&](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file, error), error);
  };
  return std::filesystem::equivalent(one, other, error) || whole(one) == whole(other);
}

void check_not_read(const NamedFile& output, const Command& command, std::string_view input,
                    const std::string& value) {
  std::error_code error;
  const Option* const row = command.find(input);
  if (row == nullptr || row->traits.role != Role::Input || input == output.option || !output.file ||
      !std::filesystem::is_regular_file(*output.file, error)) {
    return;
  }
  const std::size_t sign = value.find('=');
  const std::string assigned = sign == std::string::npos ? "" : value.substr(sign + 1);
  for (const std::string& part : {value, value.substr(0, value.rfind('@')), assigned}) {
    if (is_read_as(*output.file, part)) {
      fail_option(output.option,
                  command.is_argument(input) ? "another file than one that is read"
                                             : fmt::format("another file than that of --{}", input),
                  *output.file);
    }
  }
}

void check_not_read(const NamedFile& output, const OptionReader& reader) {
  const Command& command = reader.command();
  for (const Option& row : joined({command.arguments, command.options})) {
    for (const std::string& value : reader.texts(row.name)) {
      check_not_read(output, command, row.name, value);
    }
  }
}

void check_keys(std::string_view name, const std::vector<std::string>& settings) {
  std::set<std::string> keys;
  for (const std::string& setting : settings) {
    const std::string key = setting.substr(0, setting.find('='));
    if (!keys.insert(key).second) {
      throw ConfigError(fmt::format("--{} {}: expected once, found again", name, escaped(key)));
    }
  }
}

void check_gpus_per_process(int gpus, const Cluster& cluster) {
  for (const int of_node : cluster.server_gpus) {
    if (of_node % gpus != 0) {
      fail_option("gpus-per-process",
                  fmt::format("a number that divides the {} GPUs of a node", of_node),
                  std::to_string(gpus));
    }
  }
}

}  // namespace trainyard
