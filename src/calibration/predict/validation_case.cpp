// SPDX-License-Identifier: Apache-2.0
#include "calibration/predict/validation_case.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "nccl/types/types.h"
#include "sim/config.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostNodes = 1'000'000;
constexpr std::int64_t kMostGpusPerNode = 4096;

std::optional<std::string> optional_text(const ConfigNode& node, std::string_view key) {
  const std::optional<ConfigNode> value = node.optional(key);
  return value ? std::optional<std::string>(value->as_string()) : std::nullopt;
}

bool flag(const ConfigNode& node, std::string_view key) {
  const std::optional<ConfigNode> value = node.optional(key);
  return value && value->as_bool();
}

// A file beside the case file.
std::filesystem::path beside(const ConfigNode& node, const std::filesystem::path& file) {
  std::filesystem::path path = (file.parent_path() / node.as_string()).lexically_normal();
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    node.fail("a file, relative to the case file", node.found());
  }
  return path;
}

std::optional<std::filesystem::path> optional_file(const ConfigNode& root, std::string_view key,
                                                   const std::filesystem::path& file) {
  const std::optional<ConfigNode> node = root.optional(key);
  return node ? std::optional<std::filesystem::path>(beside(*node, file)) : std::nullopt;
}

std::filesystem::path cluster_file(const ConfigNode& node, const std::filesystem::path& file,
                                   const std::filesystem::path& root) {
  const std::string text = node.as_string();
  const std::array<std::filesystem::path, 3> places{
      file.parent_path() / text, root / text, root / "configs" / "clusters" / (text + ".yaml")};
  for (const std::filesystem::path& place : places) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(place, ignored)) {
      return place.lexically_normal();
    }
  }
  node.fail("a cluster file, relative to the project or to the case file", node.found());
}

// {server.nics: 4} or ["server.nics=4"].
std::vector<std::string> read_settings(const ConfigNode& node) {
  std::vector<std::string> settings;
  if (node.is_sequence()) {
    for (const ConfigNode& setting : node.items()) {
      settings.push_back(setting.as_string());
      if (settings.back().find('=') == std::string::npos) {
        setting.fail("KEY=VALUE", setting.found());
      }
    }
    return settings;
  }
  for (const auto& [key, value] : node.entries()) {
    settings.push_back(key + "=" + value.as_string());
  }
  return settings;
}

std::vector<std::pair<std::string, std::string>> read_environment(const ConfigNode& node) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const auto& [name, value] : node.entries()) {
    const bool usual = std::ranges::all_of(name, [](char letter) {
      return (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') || letter == '_';
    });
    if (!usual) {
      value.fail("a variable's name in capitals, such as NCCL_ALGO", in_quotes(name));
    }
    variables.emplace_back(name, value.as_string());
  }
  return variables;
}

std::optional<Bytes> read_size(const ConfigNode& rows, std::string_view key) {
  const std::optional<ConfigNode> node = rows.optional(key);
  if (!node) {
    return std::nullopt;
  }
  try {
    return parse_message_size(node->as_string());
  } catch (const UnitError& error) {
    node->fail(error.what());
  }
}

std::vector<ExcludedRows> read_excluded(const ConfigNode& node) {
  std::vector<ExcludedRows> all;
  for (const ConfigNode& item : node.items()) {
    ExcludedRows rows{.from = read_size(item, "from"),
                      .to = read_size(item, "to"),
                      .reason = item.required("reason").as_string()};
    if (rows.from && rows.to && *rows.to < *rows.from) {
      item.required("to").fail(fmt::format("at least {}", to_string(*rows.from)),
                               item.required("to").found());
    }
    all.push_back(std::move(rows));
  }
  return all;
}

std::optional<std::string> read_version(const ConfigNode& root) {
  const std::optional<ConfigNode> node = root.optional("nccl_version");
  if (!node) {
    return std::nullopt;
  }
  std::string text = node->as_string();
  if (!nccl::parse_version(text)) {
    node->fail("a release of NCCL, such as \"2.27.7\"", node->found());
  }
  return text;
}

std::optional<Fidelity> read_fidelity(const ConfigNode& root) {
  static constexpr std::array<std::string_view, 2> kNames{"analytical", "flow"};
  static constexpr std::array kFidelities{Fidelity::Analytical, Fidelity::Flow};
  const std::optional<ConfigNode> node = root.optional("fidelity");
  if (!node) {
    return std::nullopt;
  }
  return kFidelities[node->as_choice(kNames)];
}

// An integer that the measured table may know too; both must agree.
int read_count(const ConfigNode& root, std::string_view key, std::optional<int> measured,
               std::int64_t most) {
  const std::optional<ConfigNode> node = root.optional(key);
  if (!node) {
    return measured ? *measured : static_cast<int>(root.required(key).as_integer(1, most));
  }
  const auto value = static_cast<int>(node->as_integer(1, most));
  if (measured && *measured != value) {
    node->fail(fmt::format("{}, as in the measured table", *measured), node->found());
  }
  return value;
}

void read_shape(const ConfigNode& root, const MeasuredTable& table, ValidationCase& item) {
  item.nodes = read_count(root, "nodes", table.nodes, kMostNodes);
  item.gpus_per_node = read_count(root, "gpus_per_node", table.gpus_per_node, kMostGpusPerNode);
  const std::int64_t gpus = std::int64_t{item.nodes} * item.gpus_per_node;
  item.ranks = static_cast<int>(std::min(gpus, kMostNodes * kMostGpusPerNode));
  if (const std::optional<ConfigNode> ranks = root.optional("ranks")) {
    if (ranks->as_integer(1, kMostNodes * kMostGpusPerNode) != gpus) {
      ranks->fail(fmt::format("nodes x gpus_per_node = {}", gpus), ranks->found());
    }
  }
  if (table.ranks && *table.ranks != gpus) {
    root.fail(fmt::format("{} ranks, as in the measured table", *table.ranks),
              fmt::format("{} x {}", item.nodes, item.gpus_per_node));
  }
  if (const std::optional<ConfigNode> node = root.optional("gpus_per_process")) {
    item.gpus_per_process = static_cast<int>(node->as_integer(1, kMostGpusPerNode));
    if (item.gpus_per_node % item.gpus_per_process != 0) {
      node->fail(fmt::format("a divisor of gpus_per_node = {}", item.gpus_per_node), node->found());
    }
  }
}

// The key is for tables that do not say it; elsewhere it must agree.
Operation read_operation(const ConfigNode& root, const MeasuredTable& table) {
  const std::optional<ConfigNode> given = root.optional("operation");
  if (!given && table.operation) {
    return *table.operation;
  }
  const ConfigNode node = root.required("operation");
  const std::optional<Operation> operation = parse_operation(node.as_string());
  if (!operation) {
    node.fail(fmt::format("one of {}", operation_names()), node.found());
  }
  if (table.operation && *table.operation != *operation) {
    node.fail(fmt::format("{}, as in the measured table", to_string(*table.operation)),
              node.found());
  }
  return *operation;
}

void read_scoring(const ConfigNode& root, ValidationCase& item) {
  static constexpr std::array<std::string_view, 2> kColumns{"out_of_place", "in_place"};
  if (const std::optional<ConfigNode> node = root.optional("column")) {
    item.in_place = node->as_choice(kColumns) == 1;
  }
  item.one_row_per_doubling = flag(root, "one_row_per_doubling");
  if (const std::optional<ConfigNode> node = root.optional("exclude_rows")) {
    item.excluded = read_excluded(*node);
  }
  item.not_covered = optional_text(root, "not_covered");
}

}  // namespace

bool ExcludedRows::holds(Bytes size) const {
  return (!from || *from <= size) && (!to || size <= *to);
}

std::string ExcludedRows::sizes() const {
  if (from && to) {
    return *from == *to ? to_string(*from)
                        : fmt::format("{} to {}", to_string(*from), to_string(*to));
  }
  if (from) {
    return "from " + to_string(*from);
  }
  return to ? "up to " + to_string(*to) : "every size";
}

const std::string* ValidationCase::variable(std::string_view variable_name) const {
  for (const auto& [name_of_one, value] : environment) {
    if (name_of_one == variable_name) {
      return &value;
    }
  }
  return nullptr;
}

const std::string* ValidationCase::exclusion(Bytes size) const {
  for (const ExcludedRows& rows : excluded) {
    if (rows.holds(size)) {
      return &rows.reason;
    }
  }
  return nullptr;
}

ClusterOverrides ValidationCase::overrides() const {
  return {.nodes = nodes, .gpus_per_node = gpus_per_node, .settings = settings};
}

LoadedCase load_validation_case(const std::filesystem::path& file,
                                const std::filesystem::path& root_folder) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  LoadedCase loaded;
  ValidationCase& item = loaded.item;
  item.name = file.stem().string();
  item.system_class = optional_text(root, "class").value_or("unclassified");
  item.system = optional_text(root, "system").value_or(item.name);
  item.reference = beside(root.required("reference"), file);
  item.cluster = cluster_file(root.required("cluster"), file, root_folder);
  loaded.table = load_measurement(item.reference);
  read_shape(root, loaded.table, item);
  loaded.operation = read_operation(root, loaded.table);
  if (const std::optional<ConfigNode> node = root.optional("set")) {
    item.settings = read_settings(*node);
  }
  if (const std::optional<ConfigNode> node = root.optional("env")) {
    item.environment = read_environment(*node);
  }
  item.cuda_graph = flag(root, "cuda_graph");
  item.symmetric = flag(root, "symmetric");
  item.nccl_version = read_version(root);
  item.fidelity = read_fidelity(root);
  item.graph_file = optional_file(root, "graph_file", file);
  item.tuner_csv = optional_file(root, "tuner_csv", file);
  read_scoring(root, item);
  item.note = optional_text(root, "note").value_or("");
  document.finish();
  return loaded;
}

std::vector<std::filesystem::path> validation_case_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".yaml") {
      files.push_back(entry->path());
    }
  }
  if (error || files.empty()) {
    throw ConfigError(fmt::format("{}: expected a folder of validation cases (*.yaml), found {}",
                                  folder.string(), error ? error.message() : "none"));
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace trainyard
