// SPDX-License-Identifier: Apache-2.0
#include "calibration/predict/validation_case.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <system_error>

#include "nccl/types/types.h"
#include "sim/fields.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxNodes = 1'000'000;
constexpr std::int64_t kMaxGpusPerNode = 4096;

// A file beside the case file.
std::filesystem::path beside(const ConfigNode& node, const std::filesystem::path& file) {
  return first_file(node, {file.parent_path() / node.as_string()},
                    "a file, relative to the case file");
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

Bytes read_message_size(const ConfigNode& node) {
  try {
    return parse_message_size(node.as_string());
  } catch (const UnitError& error) {
    node.fail(error.what());
  }
}

void excluded_fields(Fields& fields, ExcludedRows& rows) {
  fields.optional("from", rows.from, Via{Text{}, read_message_size}, "Least message: any.");
  fields.optional("to", rows.to, Via{Text{}, read_message_size}, "Largest message: any.");
  fields.required("reason", rows.reason, Text{}, "Why.");
  fields.check([&](const ConfigNode& node) {
    if (rows.from && rows.to && *rows.to < *rows.from) {
      node.required("to").fail(fmt::format("at least {}", to_string(*rows.from)),
                               node.required("to").found());
    }
  });
}

std::string read_version(const ConfigNode& node) {
  std::string text = node.as_string();
  if (!nccl::parse_version(text)) {
    node.fail("a release of NCCL, such as \"2.27.7\"", node.found());
  }
  return text;
}

std::string in_words(int value) {
  return std::to_string(value);
}
std::string in_words(Operation operation) {
  return std::string(to_string(operation));
}

// A value that the measured table may know too; both must agree.
template <typename Value, typename Kind>
void agreed(Fields& fields, std::string_view key, const std::optional<Value>& measured,
            Value& value, const Kind& kind, std::string_view text) {
  if (!measured) {
    fields.where(true, [&] { fields.required(key, value, kind, text); });
    return;
  }
  value = *measured;
  fields.optional(key, value, kind, text);
  fields.check([&](const ConfigNode& node) {
    if (value != *measured) {
      const ConfigNode given = node.required(key);
      given.fail(fmt::format("{}, as in the measured table", in_words(*measured)), given.found());
    }
  });
}

void shape_fields(Fields& fields, const MeasuredTable& table, ValidationCase& item) {
  agreed(fields, "nodes", table.nodes, item.nodes, Whole{1, kMaxNodes}, "Servers.");
  agreed(fields, "gpus_per_node", table.gpus_per_node, item.gpus_per_node,
         Whole{1, kMaxGpusPerNode}, "GPUs of a server.");
  const std::int64_t gpus = std::int64_t{item.nodes} * item.gpus_per_node;
  item.ranks = static_cast<int>(std::min(gpus, kMaxNodes * kMaxGpusPerNode));
  std::int64_t ranks = gpus;
  fields.optional("ranks", ranks, Whole{1, kMaxNodes * kMaxGpusPerNode}, "The product of both.");
  fields.optional("gpus_per_process", item.gpus_per_process, Whole{1, kMaxGpusPerNode},
                  "GPUs that a process drives: 1.");
  fields.check([&](const ConfigNode& node) {
    if (ranks != gpus) {
      node.required("ranks").fail(fmt::format("nodes x gpus_per_node = {}", gpus),
                                  node.required("ranks").found());
    }
    if (table.ranks && *table.ranks != gpus) {
      node.fail(fmt::format("{} ranks, as in the measured table", *table.ranks),
                fmt::format("{} x {}", item.nodes, item.gpus_per_node));
    }
    if (item.gpus_per_node % item.gpus_per_process != 0) {
      const ConfigNode process = node.required("gpus_per_process");
      process.fail(fmt::format("a divisor of gpus_per_node = {}", item.gpus_per_node),
                   process.found());
    }
  });
}

}  // namespace

std::filesystem::path first_file(const ConfigNode& node,
                                 std::initializer_list<std::filesystem::path> places,
                                 std::string_view expected) {
  for (const std::filesystem::path& place : places) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(place, ignored)) {
      return place.lexically_normal();
    }
  }
  node.fail(expected, node.found());
}

std::filesystem::path cluster_file(const ConfigNode& node, const std::filesystem::path& file,
                                   const std::filesystem::path& root) {
  const std::string text = node.as_string();
  return first_file(
      node,
      {file.parent_path() / text, root / text, root / "configs" / "clusters" / (text + ".yaml")},
      "a cluster file, relative to the project or to the case file");
}

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
  using Variable = std::pair<std::string, std::string>;
  const auto found = std::ranges::find(environment, variable_name, &Variable::first);
  return found == environment.end() ? nullptr : &found->second;
}

const std::string* ValidationCase::exclusion(Bytes size) const {
  const auto found =
      std::ranges::find_if(excluded, [&](const ExcludedRows& rows) { return rows.holds(size); });
  return found == excluded.end() ? nullptr : &found->reason;
}

ClusterOverrides ValidationCase::overrides() const {
  return {.nodes = nodes, .gpus_per_node = gpus_per_node, .settings = settings};
}

void case_fields(Fields& fields, LoadedCase& loaded, const std::filesystem::path& file,
                 const std::filesystem::path& root_folder) {
  static constexpr std::array<std::string_view, 2> kFidelities{"analytical", "flow"};
  static constexpr std::array<std::string_view, 2> kColumns{"out_of_place", "in_place"};
  ValidationCase& item = loaded.item;
  const Via beside_file{Text{}, [&](const ConfigNode& node) { return beside(node, file); }};
  const Via of_cluster{
      Text{}, [&](const ConfigNode& node) { return cluster_file(node, file, root_folder); }};
  item.system_class = "unclassified";
  fields.optional("class", item.system_class, Text{}, "Class of machines, with its own budget.");
  fields.optional("system", item.system, Text{}, "Machines of one owner: the name of the file.");
  fields.required("reference", item.reference, beside_file, "The measured table.");
  fields.required("cluster", item.cluster, of_cluster, "A cluster file.");
  fields.check(
      [&](const ConfigNode& /*node*/) { loaded.table = load_measurement(item.reference); });
  shape_fields(fields, loaded.table, item);
  agreed(fields, "operation", loaded.table.operation, loaded.operation,
         Via{Text{}, read_measured_operation}, "Collective, where the table does not say it.");
  fields.optional("set", item.settings, Via{Either{Named{Text{}}, List{Text{}}}, read_settings},
                  "Values of the cluster file, as `--set` has them.");
  fields.optional("env", item.environment, Via{Named{Text{}}, read_environment},
                  "Variables of NCCL.");
  fields.optional("cuda_graph", item.cuda_graph, Flag{}, "Calls are replayed CUDA graphs.");
  fields.optional("symmetric", item.symmetric, Flag{}, "Buffers are symmetric windows.");
  fields.optional("nccl_version", item.nccl_version, Via{Text{}, read_version}, "Release.");
  fields.optional("fidelity", item.fidelity, Choice{kFidelities}, "Engine of the network.");
  fields.optional("graph_file", item.graph_file, beside_file, "NCCL_GRAPH_FILE of the run.");
  fields.optional("tuner_csv", item.tuner_csv, beside_file, "Choices of a tuner plugin.");
  fields.optional("column", item.in_place, Choice{kColumns}, "What counts.");
  fields.optional("one_row_per_doubling", item.one_row_per_doubling, Flag{}, "A linear sweep.");
  fields.optional("exclude_rows", item.excluded, List{Group{excluded_fields}},
                  "Rows that do not count.");
  fields.optional("not_covered", item.not_covered, Text{}, "Why it cannot be predicted.");
  fields.optional("note", item.note, Text{}, "A remark.");
}

LoadedCase load_validation_case(const std::filesystem::path& file,
                                const std::filesystem::path& root_folder) {
  ConfigDocument document = ConfigDocument::load(file);
  LoadedCase loaded;
  loaded.item.name = file.stem().string();
  loaded.item.system = loaded.item.name;
  Fields fields(document.root());
  case_fields(fields, loaded, file, root_folder);
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
