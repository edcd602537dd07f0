// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <iterator>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/hosts/host_calibration.h"
#include "calibration/machine/measurement_file.h"
#include "calibration/machine/profile_calibration.h"
#include "calibration/machine/rate_calibration.h"
#include "calibration/measured/link_comparison.h"
#include "calibration/measured/measured_rows.h"
#include "calibration/predict/profile_constants.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "cli/common/runtime.h"
#include "collectives/mpi/mpi_rules.h"
#include "nccl/types/environment.h"
#include "parallelism/run/gpu_kinds.h"
#include "parallelism/run/step_run.h"
#include "report/accuracy/calibration_report.h"
#include "report/formats/output.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

constexpr std::string_view kCalibrateExample = R"(
MEASUREMENT is the output of nccl-tests or rccl-tests (text or JSON, one run or several), a YAML
table of it, a collective of the OSU Micro-Benchmarks, a measurement set of the harness
trainyard-calibrate, or the output of nvbandwidth, p2pBandwidthLatencyTest, perftest or OSU's tests
of two ranks, of which the last four are only held against the simulator; what a file is, is seen
from what it holds. The constants of configs/nccl/profile.yaml that the rows determine are fitted to
them, all others stay as they are, and the report says which and why. A part of the rows is kept out
of the fit, to show what the profile is worth. Kernels of a measurement set (gpu.*) give the rates
of a training step in the same way, for step --gpu-rates. What trainyard-calibrate-hosts measured on
a host gives the costs of MPI's messages, and its collectives are predicted with them.

Examples:
  trainyard calibrate all_reduce.log all_gather.log --cluster dgx-h100 --profile-out mine.yaml
  trainyard collective all_reduce --cluster dgx-h100 --runtime nccl --profile mine.yaml
  trainyard calibrate host.yaml --cluster dgx-h100 --mpi-profile-out mpi.yaml
)";

constexpr std::size_t kMaxCalibrateBytes = std::size_t{64} << 20;

std::vector<std::pair<std::string, std::string>> read_environment(const OptionReader& reader) {
  const std::vector<std::string> assignments = reader.texts("env");
  static_cast<void>(nccl::Environment::parse(assignments));  // Refuses what is wrong.
  std::vector<std::pair<std::string, std::string>> variables;
  for (const std::string& assignment : assignments) {
    const std::size_t sign = assignment.find('=');
    variables.emplace_back(assignment.substr(0, sign), assignment.substr(sign + 1));
  }
  return variables;
}

CalibrationRequest read_calibrate_request(const OptionReader& reader) {
  CalibrationRequest request;
  request.cluster_name = reader.required_text("cluster");
  request.cluster = find_config("clusters", request.cluster_name);
  request.settings = reader.texts("set");
  check_keys("set", request.settings);
  request.nodes = reader.integer("nodes", 1, 1'000'000);
  request.gpus_per_process = reader.integer("gpus-per-process", 1, 1'024);
  request.environment = read_environment(reader);
  request.nccl_version = reader.text("nccl-version");
  std::vector<std::string> notes;
  (void)read_nccl_version(reader, notes);  // Refuses what is none.
  if (const std::optional<std::string> name = reader.text("op")) {
    request.operation = parse_operation(*name);
    if (!request.operation) {
      fail_option("op", operation_names(), *name);
    }
  }
  if (const std::optional<std::string> text = reader.text("widest")) {
    const std::optional<PrintedNumber> number = parse_printed(*text);
    if (!number || number->value < 1.01 || number->value > 100.0) {
      fail_option("widest", "a number from 1.01 to 100", *text);
    }
    request.fit.widest = number->value;
  }
  request.fit.all_rows = reader.given("all-rows");
  return request;
}

// Refuses an option that contradicts the output.
void check_process(const CalibrationRequest& request, const CalibrationTable& table) {
  const std::optional<int>& given = request.gpus_per_process;
  const std::optional<int>& found = table.table.gpus_per_process;
  if (given && found && *given != *found) {
    fail_option("gpus-per-process", fmt::format("{}, as in {}", *found, table.file),
                std::to_string(*given));
  }
}

std::vector<MeasurementFile> read_files(const std::vector<std::string>& names) {
  std::vector<MeasurementFile> files;
  for (const std::string& name : names) {
    files.push_back(read_measurements(read_file(name, kMaxCalibrateBytes), name));
  }
  drop_copies(files);
  return files;
}

std::vector<LinkComparison> compare_files(const std::vector<MeasurementFile>& files,
                                          const CalibrationRequest& request,
                                          const Catalogue& catalogue) {
  std::vector<LinkComparison> all;
  const auto cluster_with = [&](int nodes) {
    return load_cluster(request.cluster, catalogue, {.nodes = nodes, .settings = request.settings});
  };
  for (const MeasurementFile& file : files) {
    if (!file.links) {
      continue;
    }
    const Cluster one = cluster_with(1);
    std::optional<Cluster> two;
    const bool is_osu_of_two = file.links->tool == PastedTool::Osu && request.nodes.value_or(2) > 1;
    if (file.links->tool == PastedTool::Perftest || is_osu_of_two) {
      two.emplace(cluster_with(2));
    }
    std::vector<LinkComparison> some =
        compare_links(*file.links, file.name, one, two ? &*two : nullptr);
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  return all;
}

// Fits to the first file that has kernels: rates of two GPUs are not mixed.
std::optional<RateCalibration> fit_rates(const std::vector<MeasurementFile>& files,
                                         const CalibrationRequest& request,
                                         const Catalogue& catalogue, const TaskRunner& tasks,
                                         spdlog::logger& log) {
  const MeasurementFile* used = nullptr;
  for (const MeasurementFile& file : files) {
    if (file.rates.empty()) {
      continue;
    }
    if (used != nullptr) {
      log.warn("{}: kernels of a GPU: left out, as those of {} are fitted to", file.name,
               used->name);
      continue;
    }
    used = &file;
  }
  if (used == nullptr) {
    return std::nullopt;
  }
  const Cluster cluster =
      load_cluster(request.cluster, catalogue, {.nodes = 1, .settings = request.settings});
  const GpuModel& gpu = gpu_of(cluster, "calibrate");
  return calibrate_rates(used->rates, gpu, configs_folder() / "hardware" / "gpu-rates.yaml",
                         fmt::format("{}, {} as {}", used->name, used->gpu, gpu.name), request.fit,
                         tasks);
}

// Fits to the one file of a host that there may be.
std::optional<HostCalibration> fit_host(const std::vector<MeasurementFile>& files,
                                        const CalibrationRequest& request,
                                        const Catalogue& catalogue, const TaskRunner& tasks) {
  const MeasurementFile* used = nullptr;
  for (const MeasurementFile& file : files) {
    if (file.host && used != nullptr) {
      throw ConfigError(fmt::format("{}: expected measurements of one host, found {} as well",
                                    file.name, used->name));
    }
    used = file.host ? &file : used;
  }
  if (used == nullptr) {
    return std::nullopt;
  }
  const Cluster cluster = load_cluster(
      request.cluster, catalogue, {.nodes = used->host->hosts(), .settings = request.settings});
  const std::filesystem::path folder = configs_folder() / "mpi";
  return calibrate_host(*used->host, cluster, MpiRules::load(folder / "open-mpi-4.1.yaml"),
                        folder / "profile.yaml", request.fit, tasks);
}

int run_calibrate(const OptionReader& reader, std::ostream& out) {
  const std::vector<std::string> names = reader.texts("file");
  if (names.empty()) {
    throw ConfigError("calibrate: expected a file of measurements, found none");
  }
  CalibrationRequest request = read_calibrate_request(reader);
  const ResultTarget target = result_target(reader);
  const std::optional<std::string>& output = target.output;
  const std::optional<std::string> profile = output_file(reader, "profile-out");
  if (output && output->ends_with(".yaml")) {  // As -o wrote the profile once.
    fail_option("output", "a file for the report (--profile-out FILE writes the profile)", *output);
  }
  const std::optional<std::string> gpu_rates = output_file(reader, "gpu-rates-out");
  const std::optional<std::string> mpi_profile = output_file(reader, "mpi-profile-out");
  check_distinct_files({{"profile-out", profile},
                        {"gpu-rates-out", gpu_rates},
                        {"mpi-profile-out", mpi_profile},
                        {"report", reader.text("report")},
                        {"output", output}});
  const auto threads = read_threads(reader);
  spdlog::logger log = make_logger(reader);
  const std::vector<MeasurementFile> files = read_files(names);
  for (const MeasurementFile& file : files) {
    log_warnings(log, file.warnings);
    for (const CalibrationTable& table : file.tables) {
      check_process(request, table);
    }
    request.tables.insert(request.tables.end(), file.tables.begin(), file.tables.end());
  }
  const ProfileConstants constants(configs_folder() / "nccl" / "profile.yaml",
                                   configs_folder() / "nccl" / "profile-priors.yaml");
  const Catalogue& catalogue = load_default_catalogue();
  CalibrationReport report{.cluster = request.cluster_name,
                           .links = compare_files(files, request, catalogue)};
  const TaskRunner tasks = task_runner(threads, "calibrate");
  if (!request.tables.empty()) {
    report.calibration = calibrate_profile(request, constants, catalogue, tasks);
    log_warnings(log, report.calibration->warnings);
  }
  report.rates = fit_rates(files, request, catalogue, tasks, log);
  report.host = fit_host(files, request, catalogue, tasks);
  if (profile) {
    if (!report.calibration) {
      throw ConfigError("--profile-out: expected a table of a collective to fit to, found none");
    }
    write_file(*profile, report.calibration->profile);
  }
  if (gpu_rates) {
    if (!report.rates) {
      throw ConfigError(
          "--gpu-rates-out: expected a measurement set with kernels of a GPU (gpu.*), found none");
    }
    write_file(*gpu_rates, report.rates->document);
  }
  if (mpi_profile) {
    if (!report.host) {
      throw ConfigError(
          "--mpi-profile-out: expected a file of trainyard-calibrate-hosts, found none");
    }
    write_file(*mpi_profile, report.host->profile);
  }
  write_result(target, with_effects(reader, document_of(report)), out);
  return 0;
}

}  // namespace

Command calibrate_command() {
  return {
      .name = "calibrate",
      .form = "calibrate FILE...",
      .summary = "a profile of NCCL fitted to measurements of one machine",
      .usage = "calibrate MEASUREMENT... --cluster NAME|FILE [--profile-out FILE] [options]",
      .arguments = {{.name = "file", .traits = kRepeatedInput}},
      .options = joined(
          {Options{{"cluster",
                    "NAME|FILE",
                    "the machine that was measured",
                    {.role = Role::Input, .names = "clusters"}},
                   {"profile-out",
                    "FILE",
                    "write the profile there, whole or not at all",
                    {.role = Role::Result, .synonyms = "profile"}},
                   {"gpu-rates-out",
                    "FILE",
                    "write the rates of kernels there, whole or not at all",
                    {.role = Role::Result, .synonyms = "gpu-rates"}},
                   {"mpi-profile-out",
                    "FILE",
                    "write the costs of MPI's messages there, whole or not at all",
                    {.role = Role::Result, .synonyms = "mpi-profile"}},
                   {"set",
                    "KEY=VALUE",
                    "a value of the cluster file; may be given again",
                    {.repeats = true, .role = Role::Input, .names = "cluster-keys"}},
                   {"nodes", "N", "servers of runs whose output does not say it"},
                   {"op", "OP", "operation of runs whose output does not say it"},
                   {"gpus-per-process", "N",
                    "GPUs of a process of runs whose output does not say it (default: 1)"},
                   nccl_version_option(),
                   {"env",
                    "NAME=VALUE",
                    "a variable of NCCL that was set; may be given again",
                    {.repeats = true, .role = Role::Input, .names = "nccl-variables"}},
                   {"widest", "RATIO",
                    "widest interval of 90 %, greatest over least, of a constant that is fitted, "
                    "with those that are not as shipped (default: 2)"},
                   {"all-rows", "", "keep no rows out of the fit"},
                   threads_option()},
           output_options(), log_options()}),
      .example = kCalibrateExample,
      .run = run_calibrate};
}

}  // namespace trainyard
