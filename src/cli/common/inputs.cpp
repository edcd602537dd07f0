// SPDX-License-Identifier: Apache-2.0
#include "cli/common/inputs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/log.h"
#include "topology/lint/staging.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 9> kWorkloadKeys{"model",     "adapters", "software",
                                                        "precision", "plan",     "batch",
                                                        "overlap",   "routing",  "optimizer"};

bool is_of_cluster(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find_first_of(".="));
  return std::ranges::find(kWorkloadKeys, key) == kWorkloadKeys.end();
}

}  // namespace

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
  if (reader.given("workload")) {
    std::vector<std::string>& settings = names.overrides.settings;
    const auto others = std::stable_partition(settings.begin(), settings.end(), is_of_cluster);
    names.workload_settings.assign(others, settings.end());
    settings.erase(others, settings.end());
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
  Workload read = load_workload(find_config("workloads", workload),
                                configs_folder() / "workloads" / "models", settings);
  SoftwareProfile software = SoftwareProfile::load(find_config("software", read.software));
  return {.workload = std::move(read), .software = std::move(software)};
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
