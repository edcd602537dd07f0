// SPDX-License-Identifier: Apache-2.0
#include "cli/common/inputs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/log.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/fields.h"
#include "sim/printable.h"
#include "sim/yaml_names.h"
#include "topology/cluster/cluster_keys.h"
#include "topology/lint/staging.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 9> kWorkloadKeys{"model",     "adapters", "software",
                                                        "precision", "plan",     "batch",
                                                        "overlap",   "routing",  "optimizer"};

std::string first_key(const std::string& setting) {
  return setting.substr(0, setting.find_first_of(".="));
}

bool is_of_cluster(const std::string& setting) {
  return std::ranges::find(kWorkloadKeys, first_key(setting)) == kWorkloadKeys.end();
}

// Adds the paths of mappings, such as batch.sequence, that end with `key`.
void add_paths_to(std::string_view key, const Schema& schema, const std::string& path,
                  std::vector<std::string>& paths) {
  for (const SchemaKey& each : schema.keys) {
    if (each.name == key) {
      paths.push_back(path + each.name);
    }
    add_paths_to(key, each.value, path + each.name + ".", paths);
  }
  for (const Schema& each : schema.alternatives) {
    add_paths_to(key, each, path, paths);
  }
}

// A key without the mapping that it stands in is of the cluster by its form, and may be of either.
void require_known_keys(std::span<const std::string> settings) {
  const Schema cluster = schema_of<ClusterKeys>(cluster_fields);
  for (const std::string& setting : settings) {
    const std::string key = first_key(setting);
    if (std::ranges::find(cluster.keys, key, &SchemaKey::name) != cluster.keys.end()) {
      continue;
    }
    std::vector<std::string> paths;
    add_paths_to(key, cluster, "", paths);
    add_paths_to(key, schema_of<Workload>(workload_fields), "", paths);
    constexpr std::size_t kShown = 3;
    if (!paths.empty()) {
      paths.resize(std::min(paths.size(), kShown));
      throw ConfigError(fmt::format("--set {}: expected a whole path, found {}; did you mean {}?",
                                    setting, in_quotes(key), alternatives(paths)));
    }
  }
}

// The job of a model that is named without one, configs/workloads/data-parallel.yaml.
constexpr std::string_view kDefaultJob = "data-parallel";

struct JobFile {
  std::string_view option;
  std::string_view folder;
};

constexpr JobFile kWorkloadFile{.option = "workload", .folder = "workloads"};
constexpr JobFile kModelFile{.option = "model", .folder = "workloads/models"};

// At most `most` names that were perhaps meant: those a few letters away, the nearest first, then
// those that begin alike.
std::vector<std::string> names_like(std::string_view word, std::vector<std::string> names,
                                    std::size_t most) {
  constexpr std::ptrdiff_t kLeastPrefix = 3;
  std::vector<std::string> like;
  while (const std::optional<std::string> nearest = nearest_word(word, names)) {
    std::erase(names, *nearest);
    like.push_back(*nearest);
  }
  const auto prefix = [&](const std::string& name) {
    return std::ranges::mismatch(word, name).in1 - word.begin();
  };
  std::ranges::stable_sort(names, std::greater(), prefix);
  std::ranges::copy_if(names, std::back_inserter(like),
                       [&](const std::string& name) { return prefix(name) >= kLeastPrefix; });
  like.resize(std::min(like.size(), most));
  return like;
}

std::filesystem::path find_job_file(const JobFile& kind, const JobFile& other,
                                    std::string_view name_or_file) {
  const std::vector<std::string> own = yaml_names_in(configs_folder() / kind.folder);
  const std::filesystem::path file(name_or_file);
  std::error_code error;  // Ignored, as find_config() does.
  // A dot alone makes no file of a name such as qwen2.5-7b.
  const bool is_file =
      file.has_parent_path() || file.extension() == ".yaml" || std::filesystem::exists(file, error);
  if (name_or_file.empty() || is_file || std::ranges::find(own, name_or_file) != own.end()) {
    return find_config(kind.folder, name_or_file);
  }
  const std::vector<std::string> others = yaml_names_in(configs_folder() / other.folder);
  if (std::ranges::find(others, name_or_file) != others.end()) {
    throw ConfigError(fmt::format("--{0}: expected a {0}, found the {1} {2}; use --{1} {2}",
                                  kind.option, other.option, name_or_file));
  }
  constexpr std::size_t kShownOfOwn = 4;
  std::vector<std::string> near;
  for (const std::string& name : names_like(name_or_file, own, kShownOfOwn)) {
    near.push_back(in_quotes(name));
  }
  if (const auto nearest = nearest_word(name_or_file, others)) {
    near.push_back(fmt::format("--{} {}", other.option, *nearest));
  }
  throw ConfigError(
      fmt::format("--{}: expected a file or one of the {} names in configs/{}, found {}{}",
                  kind.option, own.size(), kind.folder, in_quotes(name_or_file),
                  near.empty() ? "" : fmt::format("; did you mean {}?", alternatives(near))));
}

// Returns the settings of a workload that has this model instead of its own. The default job has
// sequences that the model can take.
std::vector<std::string> model_settings(const std::string& name, bool is_default_job) {
  const std::filesystem::path file = find_model(name);
  std::vector<std::string> settings{"model=" + (file.stem() == name ? name : file.string())};
  if (is_default_job) {
    constexpr std::int64_t kSequence = 4096;  // As the file has it.
    const Model model = load_model(file);
    if (model.patches) {
      settings.push_back(fmt::format("batch.sequence={}", model.patches->tokens()));
    } else if (model.learned_positions > 0 && model.learned_positions < kSequence) {
      settings.push_back(fmt::format("batch.sequence={}", model.learned_positions));
    }
  }
  return settings;
}

}  // namespace

Option model_option() {
  return {"model",
          "NAME|FILE",
          "instead of the workload's model: a file, or a name in configs/workloads/models; without "
          "--workload, data parallel over all GPUs",
          {.role = Role::Input, .names = "workloads/models"}};
}

void require_job(const OptionReader& reader) {
  if (!reader.given("model")) {
    (void)reader.required_text("workload", "--workload or --model");
  }
}

std::filesystem::path find_workload(std::string_view name_or_file) {
  return find_job_file(kWorkloadFile, kModelFile, name_or_file);
}

std::filesystem::path find_model(std::string_view name_or_file) {
  return find_job_file(kModelFile, kWorkloadFile, name_or_file);
}

std::vector<std::string> InputNames::settings() const {
  std::vector<std::string> all = overrides.settings;
  all.insert(all.end(), workload_settings.begin(), workload_settings.end());
  return all;
}

InputNames read_input_names(const OptionReader& reader) {
  InputNames names{.cluster = reader.required_text("cluster"),
                   .overrides = cluster_overrides(reader),
                   .workload = reader.text("workload").value_or(""),
                   .profile = reader.text("profile"),
                   .gpu_rates = reader.text("gpu-rates"),
                   .lists_estimates = reader.given("estimates")};
  const std::optional<std::string> model = reader.text("model");
  if (model) {
    names.is_default_job = names.workload.empty();
    names.workload = names.is_default_job ? std::string(kDefaultJob) : names.workload;
    names.workload_settings = model_settings(*model, names.is_default_job);
  }
  if (!names.workload.empty()) {
    std::vector<std::string>& settings = names.overrides.settings;
    const auto others = std::stable_partition(settings.begin(), settings.end(), is_of_cluster);
    names.workload_settings.insert(names.workload_settings.end(), others, settings.end());
    settings.erase(others, settings.end());
    require_known_keys(settings);
  }
  return names;
}

Cluster load_cluster_inputs(const InputNames& names, spdlog::logger& log) {
  Cluster cluster = load_cluster(find_config("clusters", names.cluster), load_default_catalogue(),
                                 names.overrides);
  log_warnings(log, cluster.warnings);
  return cluster;
}

JobInputs load_job(const std::string& workload, const std::vector<std::string>& settings) {
  Workload read =
      load_workload(find_workload(workload), configs_folder() / "workloads" / "models", settings);
  SoftwareProfile software = load_software(read.software);
  return {.workload = std::move(read), .software = std::move(software)};
}

SoftwareProfile load_software(const std::string& name) {
  return SoftwareProfile::load(find_config("software", name), configs_folder() / "software");
}

nccl::Profile load_profile(const std::optional<std::string>& file) {
  return nccl::Profile::load(file ? std::filesystem::path(*file)
                                  : configs_folder() / "nccl" / "profile.yaml");
}

GpuRates load_gpu_rates(const std::optional<std::string>& file) {
  return GpuRates::load(file ? std::filesystem::path(*file)
                             : configs_folder() / "hardware" / "gpu-rates.yaml");
}

Inputs load_inputs(const InputNames& names, spdlog::logger& log) {
  Cluster cluster = load_cluster_inputs(names, log);
  JobInputs job = load_job(names.workload, names.workload_settings);
  return {.workload = std::move(job.workload),
          .machine = {.cluster = std::move(cluster),
                      .nccl = load_profile(names.profile),
                      .rates = load_gpu_rates(names.gpu_rates),
                      .software = std::move(job.software)}};
}

RunInputs run_inputs(const Cluster& cluster, std::vector<std::string> settings) {
  RunInputs inputs{.settings = std::move(settings)};
  const LinkResources links(cluster.topology);
  for (const Resource& resource : links.list()) {
    inputs.resources.emplace_back(resource.key, resource.value);
  }
  return inputs;
}

RunInputs inputs_of_run(const Cluster& cluster, const InputNames& names) {
  RunInputs inputs = run_inputs(cluster, names.settings());
  inputs.options = {{"nodes", std::to_string(cluster.nodes)},
                    {"gpus_per_node", std::to_string(cluster.gpus_per_node)}};
  if (const auto& pulls = names.overrides.pulls; !pulls.empty()) {
    inputs.options.emplace_back("pull", fmt::format("{}", fmt::join(pulls, " ")));
  }
  if (const auto& parts = names.overrides.parts; !parts.empty()) {
    inputs.options.emplace_back("parts", fmt::format("{}", fmt::join(parts, " ")));
  }
  return inputs;
}

void add_job_note(const InputNames& names, std::vector<std::string>& notes) {
  if (names.is_default_job) {
    notes.push_back(
        fmt::format("no workload was named: the job is {}, with ZeRO 3 over all GPUs and one "
                    "sequence of each, but for what --set changes (docs/models/step.md)",
                    kDefaultJob));
  }
}

void add_part_notes(const Cluster& cluster, const InputNames& names,
                    std::vector<std::string>& notes) {
  for (std::string& note : staging_notes(cluster)) {
    notes.push_back(std::move(note));
  }
  if (!cluster.own_parts.empty()) {
    notes.push_back(fmt::format("parts of your own: {}", fmt::join(cluster.own_parts, "; ")));
  }
  if (names.lists_estimates) {
    for (const std::string& estimate : cluster.estimates) {
      notes.push_back("estimate: " + estimate);
    }
  } else if (!cluster.estimates.empty()) {
    notes.push_back(fmt::format("{} of the cluster's parts, --estimates lists them",
                                counted(static_cast<int>(cluster.estimates.size()), "estimate")));
  }
}

}  // namespace trainyard
