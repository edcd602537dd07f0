// SPDX-License-Identifier: Apache-2.0
#include "cli/shell/names.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/options.h"
#include "cli/shell/key_paths.h"
#include "collectives/algorithms/algorithms.h"
#include "hw/parts/catalogue.h"
#include "nccl/types/variables.h"
#include "network/traffic/traffic_spec.h"
#include "parallelism/model/pipeline_schedule.h"
#include "parallelism/workload/workload.h"
#include "sim/fields.h"
#include "sim/yaml_names.h"
#include "topology/cluster/cluster_keys.h"

namespace trainyard {
namespace {

template <typename Parts>
void add_names(const Parts& parts, std::vector<NextWord>& found) {
  for (const auto& [name, part] : parts) {
    found.push_back({.text = name});
  }
}

// Kinds of parts as `trainyard parts` has them.
struct PartKind {
  std::string_view name;
  void (*add)(const Catalogue& catalogue, std::vector<NextWord>& found);
};
constexpr std::array<PartKind, 6> kPartKinds{{
    {"gpus", [](const Catalogue& all, auto& found) { add_names(all.gpus(), found); }},
    {"nics", [](const Catalogue& all, auto& found) { add_names(all.nics(), found); }},
    {"switches", [](const Catalogue& all, auto& found) { add_names(all.switches(), found); }},
    {"nvswitches", [](const Catalogue& all, auto& found) { add_names(all.nvswitches(), found); }},
    {"links", [](const Catalogue& all, auto& found) { add_names(all.links(), found); }},
    {"cpus", [](const Catalogue& all, auto& found) { add_names(all.cpus(), found); }},
}};

std::vector<NextWord> parts_of(std::string_view kind) {
  std::vector<NextWord> found;
  for (const PartKind& each : kPartKinds) {
    if (kind == "parts" || kind == each.name) {
      each.add(load_default_catalogue(), found);
    }
  }
  return found;
}

// Keys of the server stand for themselves in a cluster, as in `--set nic.speed=25 Gb/s`.
std::vector<KeyPath> keys_of(const Command& command, std::string_view list) {
  if (list == "traffic-keys") {
    return key_paths(schema_of<TrafficSpec>(traffic_fields));
  }
  std::vector<KeyPath> keys = key_paths(schema_of<ClusterKeys>(cluster_fields));
  const auto add = [&](std::vector<KeyPath> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  add(key_paths(schema_of<ServerKeys>(server_fields)));
  if (command.find("workload") != nullptr) {
    add(key_paths(schema_of<Workload>(workload_fields)));
  }
  return keys;
}

std::vector<NextWord> settings_of(const std::vector<KeyPath>& keys, std::string_view typed) {
  std::vector<NextWord> found;
  if (const std::size_t sign = typed.find('='); sign != std::string_view::npos) {
    const auto key = std::ranges::find(keys, typed.substr(0, sign), &KeyPath::path);
    if (key != keys.end()) {
      found = key->names_part ? parts_of("parts") : found;
      std::ranges::transform(key->words, std::back_inserter(found),
                             [](const std::string& word) { return NextWord{.text = word}; });
      std::ranges::for_each(found, [&](NextWord& each) { each.text.insert(0, key->path + "="); });
    }
    return found;
  }
  std::map<std::string, std::string> texts;  // The first text of each.
  for (const KeyPath& key : keys) {
    if (key.path.starts_with(typed)) {
      const std::size_t dot = key.path.find('.', typed.size());
      const bool is_whole = dot == std::string::npos;
      texts.emplace(is_whole ? key.path + "=" : key.path.substr(0, dot + 1),
                    is_whole ? key.text : "");
    }
  }
  for (const auto& [text, help] : texts) {
    found.push_back({.text = text, .help = help});
  }
  return found;
}

std::vector<NextWord> list_of(const Command& command, std::string_view list,
                              std::string_view typed) {
  if (list.ends_with("-keys")) {
    return settings_of(keys_of(command, list), typed);
  }
  std::vector<NextWord> found;
  if (list == "nccl-variables") {
    for (const std::string_view name : nccl::modelled_variables()) {
      found.push_back({.text = std::string(name) + "="});
    }
  } else if (list == "algorithms") {
    for (const Algorithm algorithm : kAlgorithms) {
      found.push_back({.text = std::string(to_string(algorithm))});
    }
  } else if (list == "protocols") {
    found = {{.text = "ll"}, {.text = "ll128"}, {.text = "simple"}};
  } else if (list == "schedules") {
    for (const std::string_view name : pipeline_schedule_names()) {
      found.push_back({.text = std::string(name)});
    }
  } else if (list == "part-kinds") {
    for (const PartKind& kind : kPartKinds) {
      found.push_back({.text = std::string(kind.name)});
    }
  } else if (list == "parts" ||
             std::ranges::find(kPartKinds, list, &PartKind::name) != kPartKinds.end()) {
    found = parts_of(list);
  } else {
    for (std::string& name : yaml_names_in(configs_folder() / list)) {
      found.push_back({.text = std::move(name)});
    }
  }
  return found;
}

}  // namespace

std::vector<NextWord> named_values(const Command& command, std::string_view lists,
                                   std::string_view typed) {
  std::vector<NextWord> found;
  while (!lists.empty()) {
    const std::size_t end = std::min(lists.find(' '), lists.size());
    for (NextWord& each : list_of(command, lists.substr(0, end), typed)) {
      found.push_back(std::move(each));
    }
    lists.remove_prefix(std::min(end + 1, lists.size()));
  }
  return found;
}

}  // namespace trainyard
