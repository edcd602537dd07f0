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

// Options of any command whose values are files that it reads, or have such a file in them.
constexpr std::array<std::string_view, 23> kInputs{
    "file",    "a",           "b",   "against",   "algo-file",  "budgets",   "case",    "cases",
    "cluster", "comm-groups", "env", "gpu-rates", "graph-file", "job",       "matrix",  "nccl-xml",
    "prices",  "profile",     "set", "topo",      "transport",  "tuner-csv", "workload"};
// Those that are given without their name.
constexpr std::array<std::string_view, 3> kUnnamed{"file", "a", "b"};
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
  std::error_code error;  // What is not there is equal to nothing that is.
  const auto whole = [&](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file, error), error);
  };
  return std::filesystem::equivalent(one, other, error) || whole(one) == whole(other);
}

void check_not_read(const NamedFile& output, std::string_view input, const std::string& value) {
  std::error_code error;
  const bool is_input = std::find(kInputs.begin(), kInputs.end(), input) != kInputs.end();
  if (!is_input || input == output.option || !output.file ||
      !std::filesystem::is_regular_file(*output.file, error)) {
    return;
  }
  const std::size_t sign = value.find('=');
  const std::string assigned = sign == std::string::npos ? "" : value.substr(sign + 1);
  for (const std::string& part : {value, value.substr(0, value.rfind('@')), assigned}) {
    if (is_read_as(*output.file, part)) {
      const bool has_name = std::find(kUnnamed.begin(), kUnnamed.end(), input) == kUnnamed.end();
      fail_option(output.option,
                  has_name ? fmt::format("another file than that of --{}", input)
                           : "another file than one that is read",
                  *output.file);
    }
  }
}

void check_not_read(const NamedFile& output, const OptionReader& reader) {
  for (const std::string_view input : kInputs) {
    for (const std::string& value : reader.texts(input)) {
      check_not_read(output, input, value);
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
