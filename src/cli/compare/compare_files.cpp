// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare_files.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "parallelism/workload/workload.h"
#include "report/formats/run_inputs.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/yaml_names.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

struct ReadFile {
  std::filesystem::path path;
  bool is_workload = false;
  std::vector<std::pair<std::string, std::string>> keys = {};  // In file order.
};

// A key that clusters do not have.
bool has_model(ConfigDocument& document) {
  const ConfigNode root = document.root();
  return root.is_map() && root.optional("model").has_value();
}

void flatten(const ConfigNode& node, const std::string& path, ReadFile& file) {
  if (node.is_map()) {
    for (const auto& [key, child] : node.entries()) {
      flatten(child, path.empty() ? key : path + "." + key, file);
    }
  } else if (node.is_sequence()) {
    std::size_t index = 0;
    for (const ConfigNode& item : node.items()) {
      flatten(item, fmt::format("{}.{}", path, index++), file);
    }
  } else {
    file.keys.emplace_back(path, node.is_scalar() ? node.as_string() : node.found());
  }
}

std::filesystem::path find_file(const std::string& name) {
  const std::vector<std::string> workloads = yaml_names_in(configs_folder() / "workloads");
  const bool is_workload = std::find(workloads.begin(), workloads.end(), name) != workloads.end();
  return find_config(is_workload ? "workloads" : "clusters", name);
}

ReadFile read(const std::string& name) {
  ReadFile file{.path = find_file(name)};
  ConfigDocument document = ConfigDocument::load(file.path);
  file.is_workload = has_model(document);
  // Parts of the catalogue and models by name stay names; a server is what it is made of.
  if (file.is_workload) {
    static_cast<void>(load_workload(file.path, configs_folder() / "workloads" / "models"));
  }
  flatten(document.root(), "", file);
  return file;
}

std::vector<ComparedValue> differences(
    const std::vector<std::pair<std::string, std::string>>& before,
    const std::vector<std::pair<std::string, std::string>>& after) {
  const std::map<std::string, std::string> first(before.begin(), before.end());
  const std::map<std::string, std::string> second(after.begin(), after.end());
  std::vector<ComparedValue> changed;
  for (const auto& [key, value] : before) {
    const auto other = second.find(key);
    if (other == second.end() || other->second != value) {
      changed.push_back(
          {.key = key, .before = value, .after = other == second.end() ? "" : other->second});
    }
  }
  for (const auto& [key, value] : after) {
    if (!first.contains(key)) {
      changed.push_back({.key = key, .before = "", .after = value});
    }
  }
  return changed;
}

}  // namespace

RunComparison compare_files(const std::string& before, const std::string& after) {
  const ReadFile first = read(before);
  const ReadFile second = read(after);
  if (first.is_workload != second.is_workload) {
    throw ConfigError(fmt::format(
        "compare: expected two clusters or two workloads, found a cluster and a workload"));
  }
  RunComparison comparison{.what = first.is_workload ? "workloads" : "clusters",
                           .before = before,
                           .after = after,
                           .inputs = differences(first.keys, second.keys),
                           .resources = {},
                           .figures = {},
                           .times = {},
                           .notes = {}};
  if (!first.is_workload) {
    const Catalogue catalogue = load_default_catalogue();
    const auto resources = [&](const ReadFile& file) {
      const Cluster cluster = load_cluster(file.path, catalogue, {});
      std::vector<std::pair<std::string, std::string>> all = run_inputs(cluster, {}).resources;
      all.emplace_back("gpus", std::to_string(cluster.gpus.size()));
      return all;
    };
    comparison.resources = differences(resources(first), resources(second));
  }
  return comparison;
}

}  // namespace trainyard
