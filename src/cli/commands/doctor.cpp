// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "calibration/doctor/doctor.h"
#include "calibration/doctor/doctor_log.h"
#include "calibration/measured/bus_ratio.h"
#include "calibration/measured/osu_log.h"
#include "calibration/predict/validation.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/nccl_options.h"
#include "cli/common/options.h"
#include "cli/common/program_end.h"
#include "report/accuracy/doctor_report.h"
#include "sim/config_error.h"
#include "sim/printable.h"
#include "topology/exchange/import_parts.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxLogBytes = std::size_t{256} << 20;
constexpr std::size_t kMaxXmlBytes = std::size_t{4} << 20;

constexpr std::string_view kDoctorExample = R"(
LOG is the output of nccl-tests, with one run or several, or a table (docs/inputs/measurements.md).
Nodes and GPUs are those of the log where it says them. Exit status: 0 if the log is normal, 1 if
it is not (docs/commands/doctor.md).

Examples:
  trainyard doctor all_reduce.log --cluster dgx-h100
  trainyard doctor sweep.log --topo-file topo.xml --gpus-per-process 8
  trainyard doctor old.log --cluster dgx-a100 --nodes 2 --op all_gather --env NCCL_ALGO=Ring
  trainyard doctor --case validation/cases/nccl/h100-1x8-nvswitch-alltoall.yaml
)";

struct Patient {
  std::string log;
  std::optional<Cluster> cluster = {};  // Always there in the end.
  std::vector<DoctorRun> runs = {};
  std::vector<std::string> notes = {};
  std::vector<std::string> wrong_results = {};
};

std::optional<Operation> read_operation(const OptionReader& reader) {
  const std::optional<std::string> name = reader.text("op");
  if (!name) {
    return std::nullopt;
  }
  const std::optional<Operation> operation = parse_operation(*name);
  if (!operation) {
    fail_option("op", fmt::format("one of {}", operation_names()), *name);
  }
  return operation;
}

// Fills in a part of the shape that no option gives with what was found. Conflicts are errors.
void agree(std::optional<int>& option, const std::optional<int>& found, std::string_view name,
           const std::string& log) {
  if (option && found && *option != *found) {
    fail_option(name, fmt::format("{}, as in {}", *found, log), std::to_string(*option));
  }
  option = option ? option : found;
}

ConfigDocument machine_document(const OptionReader& reader, const Catalogue& catalogue,
                                std::vector<std::string>& notes) {
  const std::optional<std::string> xml = reader.text("topo-file");
  if (!xml && !reader.given("cluster")) {
    throw ConfigError(
        "doctor: expected --cluster NAME|FILE or --topo-file FILE, found neither; see trainyard "
        "doctor --help");
  }
  if (!xml) {
    return ConfigDocument::load(find_config("clusters", reader.required_text("cluster")));
  }
  const ImportedServer server = import_nccl_xml(read_nccl_xml(read_file(*xml, kMaxXmlBytes), *xml),
                                                catalogue, ImportOptions{}, *xml);
  for (const std::string& remark : server.remarks) {
    notes.push_back(fmt::format("{}: {}", *xml, remark));
  }
  return ConfigDocument::parse(to_cluster_yaml(server.tree, catalogue,
                                               {.name = std::filesystem::path(*xml).stem().string(),
                                                .source = fmt::format("Imported from {}.", *xml)}),
                               *xml + ", as a cluster");
}

Cluster build_machine(const OptionReader& reader, const Catalogue& catalogue,
                      const ClusterOverrides& overrides, std::vector<std::string>& notes) {
  if (reader.given("topo-file") && overrides.nodes.value_or(1) > 1) {
    throw ConfigError(fmt::format(
        "--topo-file: expected a log of one node, found {}: trainyard import makes a cluster file "
        "to which a fabric can be added",
        *overrides.nodes));
  }
  ConfigDocument document = machine_document(reader, catalogue, notes);
  return build_cluster(document, catalogue, overrides);
}

// As many nodes as the log has ranks for, if that is all it says.
Cluster machine_of(const OptionReader& reader, const Catalogue& catalogue, const DoctorLog& log,
                   const std::string& name, std::vector<std::string>& notes) {
  ClusterOverrides overrides = cluster_overrides(reader);
  agree(overrides.nodes, log.nodes, "nodes", name);
  agree(overrides.gpus_per_node, log.gpus_per_node, "gpus-per-node", name);
  if (!overrides.nodes && log.ranks) {
    ClusterOverrides one = overrides;
    one.nodes = 1;
    std::vector<std::string> ignored;
    const int gpus = build_machine(reader, catalogue, one, ignored).gpus_per_node;
    overrides.nodes = (*log.ranks + gpus - 1) / gpus;
    overrides.gpus_per_node = std::min(gpus, *log.ranks);
    notes.push_back(fmt::format("{} ranks are taken to be on {} of {} GPUs", *log.ranks,
                                counted(*overrides.nodes, "node"), *overrides.gpus_per_node));
  }
  Cluster cluster = build_machine(reader, catalogue, overrides, notes);
  const auto ranks = static_cast<int>(cluster.gpus.size());
  for (const LogRun& run : log.runs) {
    const auto other = run.table.bus_ratio
                           ? ratio_says_otherwise(*run.table.bus_ratio, run.operation, ranks)
                           : std::nullopt;
    if (other) {
      throw ConfigError(
          fmt::format("{}: expected {}, found a cluster of {} GPUs; choose --nodes "
                      "and --gpus-per-node to match",
                      name, *other, ranks));
    }
  }
  if (log.ranks && *log.ranks != ranks) {
    throw ConfigError(fmt::format(
        "{}: expected as many ranks as the cluster has GPUs, {}, found {}; choose --nodes and "
        "--gpus-per-node to match",
        name, ranks, *log.ranks));
  }
  if (!log.ranks) {
    notes.push_back(fmt::format("taken to be measured with {} ranks, those of the cluster", ranks));
  }
  if (ranks < 2) {
    throw ConfigError(fmt::format("{}: expected at least two ranks, found {}", name, ranks));
  }
  return cluster;
}

// Reads the run from the options, and checks it.
ValidationCase read_item(const OptionReader& reader, std::vector<std::string>& notes) {
  const NcclOptions read = read_nccl_options(reader, "--cluster or --topo-file");
  notes.insert(notes.end(), read.notes.begin(), read.notes.end());
  ValidationCase item;
  for (const std::string& assignment : reader.texts("env")) {
    const std::size_t equals = assignment.find('=');
    item.environment.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
  }
  item.nccl_version = reader.text("nccl-version");
  if (read.graph_file) {
    item.graph_file = *read.graph_file;
  }
  if (read.tuner_file) {
    item.tuner_csv = *read.tuner_file;
  }
  return item;
}

// "A100" of "NVIDIA A100 SXM4 80 GB": the first word with a digit.
std::string model_word(const std::string& title) {
  std::istringstream words(title);
  for (std::string word; words >> word;) {
    if (word.find_first_of("0123456789") != std::string::npos) {
      return word.substr(0, word.find(','));
    }
  }
  return title;
}

// A log names the GPUs of its machine.
void check_gpu(const DoctorLog& log, const Catalogue& catalogue, Patient& patient) {
  const Topology& topology = patient.cluster->topology;
  const std::string& part = topology.parts()[topology.node(patient.cluster->gpus.front()).part];
  const std::string& title = catalogue.gpus().at(part).title;
  for (const LogRun& run : log.runs) {
    const std::string& named = run.table.system;
    if (run.table.source.find("-tests log") != std::string::npos && !named.empty() &&
        named.find(model_word(title)) == std::string::npos) {
      patient.notes.push_back(fmt::format("{}: the log names {}, the cluster has {}", patient.log,
                                          in_quotes(named), title));
      return;
    }
  }
}

Patient read_log(const OptionReader& reader, const Catalogue& catalogue) {
  Patient patient{.log = reader.required_text("file")};
  const ValidationCase item = read_item(reader, patient.notes);
  const std::optional<int> process = reader.integer("gpus-per-process", 1, 1'024);
  DoctorLog log =
      parse_doctor_log(read_file(patient.log, kMaxLogBytes), patient.log, read_operation(reader));
  std::ranges::transform(log.warnings, std::back_inserter(patient.notes), one_line);
  patient.cluster = machine_of(reader, catalogue, log, patient.log, patient.notes);
  patient.wrong_results = log.wrong_results;
  check_gpu(log, catalogue, patient);
  if (process) {
    check_gpus_per_process(*process, *patient.cluster);
  }
  for (LogRun& run : log.runs) {
    take_whole_sizes(run.table, static_cast<int>(patient.cluster->gpus.size()));
    std::optional<int> of_process = process;
    agree(of_process, run.gpus_per_process, "gpus-per-process", patient.log);
    DoctorRun made{.item = item, .operation = run.operation, .points = points_of(run.table)};
    made.item.gpus_per_process = std::min(of_process.value_or(1), patient.cluster->gpus_per_node);
    made.item.cuda_graph = reader.given("cuda-graph") || run.table.cuda_graph;
    patient.runs.push_back(std::move(made));
  }
  return patient;
}

Patient read_case(const OptionReader& reader, const Catalogue& catalogue) {
  const std::filesystem::path file = *reader.text("case");
  const LoadedCase loaded =
      load_validation_case(file, std::filesystem::proximate(configs_folder().parent_path()));
  if (loaded.item.not_covered) {
    throw ConfigError(fmt::format("{}: {}", file.string(), *loaded.item.not_covered));
  }
  Patient patient{.log = file.string(),
                  .cluster = cluster_of(loaded.item, catalogue),
                  .notes = loaded.table.remarks};
  DoctorRun run{.item = loaded.item, .operation = loaded.operation, .points = {}};
  for (const ValidationRow& row : validation_rows(loaded)) {
    if (row.excluded.empty()) {
      run.points.push_back({.size = row.size, .time = row.measured});
    }
  }
  if (run.points.empty()) {
    throw ConfigError(fmt::format("{}: expected rows that count, found none", file.string()));
  }
  patient.runs.push_back(std::move(run));
  return patient;
}

void check_operations(const std::vector<DoctorRun>& runs, const std::string& log) {
  for (const DoctorRun& run : runs) {
    if (run.operation == Operation::AllToAllV || run.operation == Operation::Barrier) {
      throw ConfigError(fmt::format("{}: expected an operation that is predicted, found {}", log,
                                    to_string(run.operation)));
    }
  }
}

int run_doctor(const OptionReader& reader, std::ostream& out) {
  const ResultTarget target = result_target(reader);
  const auto threads = read_threads(reader);
  if (!reader.given("file") && !reader.given("case")) {
    throw ConfigError("doctor: expected a log to read, found none; see trainyard doctor --help");
  }
  spdlog::logger log = make_logger(reader);
  const Catalogue& catalogue = load_default_catalogue();
  Patient patient =
      reader.given("case") ? read_case(reader, catalogue) : read_log(reader, catalogue);
  check_operations(patient.runs, patient.log);
  log_warnings(log, patient.cluster->warnings);
  const nccl::Profile profile = load_profile(std::nullopt);
  Hypotheses hypotheses = predict_hypotheses({*patient.cluster, profile, patient.runs},
                                             task_runner(threads, "what-ifs"));
  DoctorReport report{
      .log = patient.log,
      .cluster = patient.cluster->name,
      .ranks = static_cast<int>(patient.cluster->gpus.size()),
      .nodes = patient.cluster->nodes,
      .result = examine(std::move(hypotheses), patient.runs, Intervals::load(intervals_file())),
      .notes = std::move(patient.notes)};
  report.result.wrong_results = std::move(patient.wrong_results);
  for (const DoctorRun& run : patient.runs) {
    report.operations.push_back(run.operation);
  }
  if (!report.result.is_known_kind) {
    report.notes.push_back(fmt::format("no measured table shows {}: ranges are wide",
                                       to_string(report.result.hypotheses.machine)));
  }
  write_result(target, with_effects(reader, document_of(report)), out);
  return report.result.is_normal() ? 0 : 1;
}

}  // namespace

Command doctor_command() {
  return {
      .name = "doctor",
      .form = "doctor LOG",
      .summary = "whether a log of nccl-tests is normal for its machine, and why not",
      .usage = "doctor LOG --cluster NAME|FILE [options]",
      .arguments = {{.name = "file", .traits = kInput}},
      .options = joined(
          {cluster_options(),
           Options{
               {"topo-file",
                "FILE.xml",
                "instead of --cluster: NCCL's topology file (NCCL_TOPO_FILE) of a single node",
                {.role = Role::Input, .excludes = "cluster", .synonyms = kTopologyWords}},
               {"case",
                "FILE",
                "instead of LOG and --cluster: a validation case, which says how the log was made",
                {.role = Role::Input,
                 .excludes = "file cluster topo-file op nodes gpus-per-node set pull env "
                             "nccl-version graph-file tuner-csv gpus-per-process cuda-graph"}},
               {"op", "NAME", "the operation, where the log does not say it"}},
           nccl_options(),
           Options{{"gpus-per-process", "N",
                    "GPUs that one process drives, where the log does not say it (default: 1)"},
                   {"cuda-graph", "",
                    "calls were replayed from CUDA graphs (default: as the log says)"},
                   threads_option()},
           output_options(), log_options()}),
      .example = kDoctorExample,
      .run = run_doctor};
}

}  // namespace trainyard
