// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/log.h"
#include "cli/common/long_run_display.h"
#include "cli/step/step_collectives.h"
#include "cli/step/step_noise.h"
#include "nccl/timing/profile.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 8> kWorkloadKeys{
    "model", "software", "precision", "plan", "batch", "overlap", "routing", "optimizer"};

bool is_of_workload(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find_first_of(".="));
  return std::find(kWorkloadKeys.begin(), kWorkloadKeys.end(), key) != kWorkloadKeys.end();
}

void read_method(const OptionReader& reader, std::optional<StepMethod> only, StepRequest& request) {
  constexpr std::array kMethods{StepMethod::ClosedForms, StepMethod::Graph};
  request.method = only ? *only : kMethods[reader.choice("method", {"closed-forms", "graph"})];
  check_distinct_files({{"output", request.output},
                        {"trace", request.trace},
                        {"memory", request.memory},
                        {"report", reader.text("report")}});
  if (request.method == StepMethod::ClosedForms) {
    for (const std::string_view name : {"trace", "slow-rank", "jitter", "traffic"}) {
      if (reader.given(name)) {
        throw ConfigError(fmt::format(
            "--{}: expected --method graph, as closed forms have no time line, found closed-forms",
            name));
      }
    }
  }
  request.shares_network = reader.choice("traffic", {"alone", "shared"}) == 1;
  if (request.shares_network && (request.is_nccl || request.fidelity == Fidelity::Analytical)) {
    throw ConfigError(fmt::format(
        "--traffic shared: expected --runtime plain with --fidelity flow or packet, found {}",
        request.is_nccl ? "nccl" : "analytical"));
  }
}

}  // namespace

std::vector<std::string> take_workload_settings(ClusterOverrides& overrides) {
  std::vector<std::string>& settings = overrides.settings;
  const auto first =
      std::stable_partition(settings.begin(), settings.end(),
                            [](const std::string& text) { return !is_of_workload(text); });
  std::vector<std::string> taken(first, settings.end());
  settings.erase(first, settings.end());
  return taken;
}

StepRequest read_step_request(const OptionReader& reader, std::optional<StepMethod> only) {
  StepCollectives collectives = read_step_collectives(reader);
  StepRequest request{.cluster = reader.required_text("cluster"),
                      .workload = reader.required_text("workload"),
                      .overrides = cluster_overrides(reader),
                      .workload_settings = {},
                      .is_nccl = collectives.is_nccl,
                      .nccl_version = collectives.version,
                      .nccl_notes = std::move(collectives.notes),
                      .format = output_format(reader),
                      .output = output_file(reader, "output"),
                      .profile = std::move(collectives.profile),
                      .gpu_rates = reader.text("gpu-rates"),
                      .slow_rank = read_slow_rank(reader),
                      .jitter = read_jitter(reader),
                      .trace = output_file(reader, "trace"),
                      .memory = output_file(reader, "memory"),
                      .report = html_target(reader),
                      .costs = read_cost_options(reader)};
  request.workload_settings = take_workload_settings(request.overrides);
  constexpr std::array kFidelities{Fidelity::Flow, Fidelity::Analytical, Fidelity::Packet};
  if (request.is_nccl) {
    const std::size_t chosen = reader.choice("fidelity", {"ports", "flow", "analytical", "packet"});
    if (chosen > 0) {
      request.fidelity = kFidelities[chosen - 1];
      request.has_engine = true;
    }
  } else {
    request.fidelity = kFidelities[reader.choice("fidelity", {"flow", "analytical", "packet"})];
  }
  read_method(reader, only, request);
  return request;
}

StepInputs load_step_inputs(const StepRequest& request, spdlog::logger& log) {
  Catalogue catalogue = load_default_catalogue();
  const std::filesystem::path configs = configs_folder();
  Cluster cluster =
      load_cluster(find_config("clusters", request.cluster), catalogue, request.overrides);
  log_warnings(log, cluster.warnings);
  Workload workload = load_workload(find_config("workloads", request.workload),
                                    configs / "workloads" / "models", request.workload_settings);
  SoftwareProfile software = SoftwareProfile::load(find_config("software", workload.software));
  return {.catalogue = std::move(catalogue),
          .workload = std::move(workload),
          .machine = {
              .cluster = std::move(cluster),
              .nccl = nccl::Profile::load(request.profile ? std::filesystem::path(*request.profile)
                                                          : configs / "nccl" / "profile.yaml"),
              .rates = GpuRates::load(request.gpu_rates ? std::filesystem::path(*request.gpu_rates)
                                                        : configs / "hardware" / "gpu-rates.yaml"),
              .software = std::move(software)}};
}

StepRun run_step_inputs(const StepRequest& request, const StepInputs& inputs) {
  return run_step_inputs(request, inputs.catalogue, inputs.workload, inputs.machine);
}

StepTables step_tables(const StepRequest& request, const Catalogue& catalogue,
                       const GpuRates& rates, const nccl::Profile& profile) {
  return {.catalogue = catalogue,
          .rates = rates,
          .nccl = request.is_nccl ? &profile : nullptr,
          .fidelity = request.fidelity,
          .engine = request.has_engine ? std::optional(request.fidelity) : std::nullopt,
          .nccl_version = request.nccl_version,
          .method = request.method,
          .slow_rank = request.slow_rank,
          .jitter = request.jitter,
          .shares_network = request.shares_network};
}

StepRun watched_run(const StepRequest& request, const StepInputs& inputs, spdlog::logger& log) {
  const LongRunDisplay display("step", &log);
  return run_step_inputs(request, inputs);
}

StepRun run_step_inputs(const StepRequest& request, const Catalogue& catalogue,
                        const Workload& workload, const MachineModel& machine) {
  return run_workload(machine.cluster, workload, machine.software,
                      step_tables(request, catalogue, machine.rates, machine.nccl));
}

RunInputs step_run_inputs(const StepRequest& request, const StepInputs& inputs) {
  std::vector<std::string> settings = request.overrides.settings;
  settings.insert(settings.end(), request.workload_settings.begin(),
                  request.workload_settings.end());
  const Cluster& cluster = inputs.machine.cluster;
  RunInputs made = run_inputs(cluster, std::move(settings));
  made.options = machine_options(cluster, request.overrides);
  if (request.is_nccl) {
    made.options.emplace_back("nccl_version", std::string(nccl::to_string(request.nccl_version)));
  }
  const GpuModel& gpu = gpu_of(cluster, inputs.catalogue);
  const auto peak = gpu.peak.find(std::string(row_of(inputs.workload.precision).peak));
  if (peak != gpu.peak.end()) {
    made.resources.emplace_back("flops",
                                fmt::format("{:.4g} TFLOP/s", peak->second.value.teraflops()));
  }
  made.resources.emplace_back(
      "gpu_memory", fmt::format("{:.4g} GB/s", gpu.memory_bandwidth.value.gigabytes_per_second()));
  // Constants of a machine of the user's own are of it as well.
  if (request.profile) {
    made.resources.emplace_back("profile", *request.profile);
  }
  if (request.gpu_rates) {
    made.resources.emplace_back("gpu_rates", *request.gpu_rates);
  }
  return made;
}

}  // namespace trainyard
