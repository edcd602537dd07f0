// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "calibration/fit/intervals.h"
#include "calibration/fit/ledger.h"
#include "calibration/fit/refit.h"
#include "calibration/predict/budgets.h"
#include "calibration/predict/nccl_prediction.h"
#include "calibration/predict/profile_constants.h"
#include "calibration/predict/validation.h"
#include "calibration/training/training_budgets.h"
#include "cli/common/common.h"
#include "cli/common/html_output.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "cli/validate/validate_hosts.h"
#include "cli/validate/validate_training.h"
#include "report/accuracy/ledger_report.h"
#include "report/accuracy/validation_report.h"
#include "report/formats/output.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample = R"(
A case is a YAML file that names a measured table, a cluster and how NCCL was run
(docs/commands/validate.md). Exit status 1: a recorded budget is exceeded.

Examples:
  trainyard validate
  trainyard validate --only h100-1x8 --format json --output h100.json
  trainyard validate --leave-one-out
  trainyard validate --cases my-cases
  trainyard validate --cases validation/cases/training
  trainyard validate --cases validation/cases/training --out-of-source
  trainyard validate --cases validation/hosts --mpi-profile mpi.yaml
)";

// The folder above configs, relative to the working folder: paths in reports stay short.
std::filesystem::path project_folder() {
  return std::filesystem::proximate(configs_folder().parent_path());
}

struct Request {
  std::filesystem::path cases;
  std::vector<std::string> only;
  std::optional<std::filesystem::path> budgets;  // None: nothing to hold the errors against.
  Budgets recorded = {};                         // Those of the file, if it is there.
  bool is_own = false;                           // Cases of the project, not of the user.
  bool record = false;
  bool refit = false;
  LeaveOneOut leave_one_out = LeaveOneOut::No;
  std::optional<std::string> ledger;
  bool record_intervals = false;
  unsigned threads = 0;
  ResultTarget result = {};
};

// Returns the line by which editors find the schema of a kind of file.
std::string schema_line(std::string_view kind, const std::filesystem::path& file) {
  const std::filesystem::path schema = configs_folder() / "schema" / fmt::format("{}.json", kind);
  return fmt::format("# yaml-language-server: $schema={}\n",
                     std::filesystem::relative(schema, file.parent_path()).string());
}

// Returns the budget file of a folder DIR: DIR-budgets.yaml beside it.
std::filesystem::path budgets_of(const std::filesystem::path& cases) {
  std::filesystem::path folder = std::filesystem::absolute(cases).lexically_normal();
  if (!folder.has_filename()) {
    folder = folder.parent_path();
  }
  return folder.parent_path() / (folder.filename().string() + "-budgets.yaml");
}

std::optional<std::filesystem::path> read_budgets_option(const OptionReader& reader,
                                                         const Request& request) {
  if (const std::optional<std::string> file = reader.text("budgets")) {
    return *file;
  }
  std::filesystem::path file = budgets_of(request.cases);
  std::error_code ignored;
  if (request.record || std::filesystem::exists(file, ignored)) {
    return file;
  }
  return std::nullopt;
}

Request read_request(const OptionReader& reader) {
  Request request;
  request.result = result_target(reader);
  request.only = reader.texts("only");
  request.record = reader.given("record-budgets");
  request.leave_one_out = reader.given("leave-one-out") ? LeaveOneOut::Yes : LeaveOneOut::No;
  request.refit = reader.given("refit") || request.leave_one_out == LeaveOneOut::Yes;
  request.ledger = output_file(reader, "ledger");
  check_distinct_files({{"output", request.result.output},
                        {"report", reader.text("report")},
                        {"ledger", request.ledger}});
  request.record_intervals = reader.given("record-intervals");
  request.threads = read_threads(reader);
  const std::optional<std::string> folder = reader.text("cases");
  if (folder && folder->empty()) {
    fail_option("cases", "a folder of validation cases", *folder);
  }
  request.is_own = !folder;
  request.cases = folder ? std::filesystem::path(*folder)
                         : (project_folder() / "validation/cases/nccl").lexically_normal();
  request.budgets = read_budgets_option(reader, request);
  // Not after minutes of work.
  std::error_code ignored;
  if (request.budgets && (!request.record || std::filesystem::exists(*request.budgets, ignored))) {
    request.recorded = load_budgets(*request.budgets);
  }
  if (request.record) {
    check_writable("record-budgets", *request.budgets);
  }
  if (request.record_intervals) {
    check_writable("record-intervals", intervals_file());
  }
  return request;
}

bool is_wanted(const Request& request, const ValidationCase& item) {
  return request.only.empty() || std::ranges::any_of(request.only, [&](const std::string& text) {
           return item.system_class == text || item.name.find(text) != std::string::npos;
         });
}

std::vector<LoadedCase> load_cases(const Request& request) {
  std::vector<LoadedCase> cases;
  for (const std::filesystem::path& file : validation_case_files(request.cases)) {
    cases.push_back(load_validation_case(file, project_folder()));
  }
  const bool any = std::ranges::any_of(
      cases, [&](const LoadedCase& one) { return is_wanted(request, one.item); });
  if (!any) {
    fail_option("only",
                fmt::format("a class, or part of the name of a case in {}", request.cases.string()),
                request.only.front());
  }
  return cases;
}

std::filesystem::path profile_file() {
  return configs_folder() / "nccl" / "profile.yaml";
}

// The largest first, so that none is left for the end; results stay in the order of the cases.
std::vector<CaseResult> run_cases(const std::vector<LoadedCase>& cases, const Catalogue& catalogue,
                                  unsigned threads) {
  const nccl::Profile profile = nccl::Profile::load(profile_file());
  std::vector<std::size_t> order(cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t one, std::size_t other) {
    return cases[one].item.ranks > cases[other].item.ranks;
  });
  std::vector<CaseResult> results(cases.size());
  run_tasks(cases.size(), threads, "validate", [&](std::size_t turn) {
    const std::size_t index = order[turn];
    results[index] = run_case(cases[index], catalogue, nccl_predictor(profile));
  });
  return results;
}

Refit refit_cases(const Request& request, const std::vector<LoadedCase>& cases,
                  const Catalogue& catalogue) {
  const ProfileConstants constants(profile_file(),
                                   configs_folder() / "nccl" / "profile-priors.yaml");
  return refit({.fitted = cases,
                .shown = [&](const ValidationCase& item) { return is_wanted(request, item); },
                .leave_one_out = request.leave_one_out},
               constants, catalogue, task_runner(request.threads, "validate"));
}

// Nine rows in ten should lie in the intervals that users are shown. A user's own tables may not.
void hold_against_intervals(const Request& request, const Coverage& coverage,
                            ValidationReport& report) {
  constexpr double kMin = 0.85;
  const double share = coverage.share();
  report.notes.push_back(
      fmt::format("{:.1f} % of the rows lie in their intervals of 90 %", 100.0 * share));
  if (request.is_own && share < kMin) {
    report.exceeded.push_back(
        fmt::format("all: rows in their intervals: expected at least {:.0f} %, found {:.1f} %",
                    100.0 * kMin, 100.0 * share));
  }
}

// Compares what was seen with the budgets of the cases, and records it where that is asked for.
template <typename Report>
void hold_against_budgets(const Request& request, const Budgets& seen, Report& report) {
  if (!request.budgets || !request.only.empty()) {
    report.notes.push_back(request.budgets ? "budgets are for all cases: not compared with --only"
                                           : "no budgets are recorded for these cases");
    return;
  }
  report.exceeded = exceeded_budgets(seen, request.recorded);
  if (request.record) {
    write_file(*request.budgets,
               schema_line("budgets", *request.budgets) + to_yaml(lowered(seen, request.recorded)));
  }
}

void write_ledger(const Request& request, ValidationReport& report) {
  if (request.leave_one_out == LeaveOneOut::No || !request.only.empty()) {
    return;
  }
  std::vector<LedgerRow> ledger = ledger_of(report.validation, *report.refit);
  if (!gives_intervals(ledger)) {
    if (request.ledger || request.record_intervals) {
      throw ConfigError(
          fmt::format("--{}: expected tables of two systems at least below 64 KiB, "
                      "below 16 MiB and above, found fewer",
                      request.ledger ? "ledger" : "record-intervals"));
    }
    return;
  }
  report.ledger = std::move(ledger);
  if (request.ledger) {
    write_file(*request.ledger, ledger_csv(report.ledger));
  }
  if (request.record_intervals) {
    write_file(intervals_file(), schema_line("intervals", intervals_file()) +
                                     Intervals::of(report.ledger, "").to_yaml());
  }
}

// Holds all steps, and each kind of them and generation of GPUs with enough rows.
void hold_steps(const Request& request, const std::map<std::string, Coverage>& coverage,
                TrainingReport& report) {
  constexpr double kMinOfAll = 0.88;
  constexpr double kMinOfClass = 0.85;
  constexpr std::size_t kEnough = 20;
  for (const auto& [name, one] : coverage) {
    const bool is_class = name.starts_with("kind: ") || name.starts_with("GPUs: ");
    const double least = name == "all" ? kMinOfAll : kMinOfClass;
    if (request.is_own && (name == "all" || (is_class && one.rows >= kEnough)) &&
        one.share() < least) {
      report.exceeded.push_back(
          fmt::format("{}: rows in their intervals: expected at least {:.0f} %, found {:.1f} %",
                      name, 100.0 * least, 100.0 * one.share()));
    }
  }
}

int run_training(const OptionReader& reader, const Request& request,
                 const std::vector<std::filesystem::path>& files, std::ostream& out) {
  if (reader.given("ledger")) {
    throw ConfigError("--ledger: expected cases of collectives, found training steps");
  }
  constexpr std::array kMethods{StepMethod::ClosedForms, StepMethod::Graph};
  const StepMethod method = kMethods[reader.choice("method")];
  const StepFitting fitting = reader.given("out-of-source")   ? StepFitting::OutOfSource
                              : reader.given("leave-one-out") ? StepFitting::LeaveOneOut
                              : request.refit                 ? StepFitting::All
                                                              : StepFitting::None;
  if (fitting != StepFitting::None && request.record) {
    throw ConfigError("--record-budgets: expected the constants of the files, found a fit");
  }
  if (method == StepMethod::Graph && (fitting != StepFitting::None || request.record)) {
    throw ConfigError(
        "--method: expected closed-forms, to which constants are fitted and of which budgets are "
        "recorded, found graph");
  }
  const Catalogue& catalogue = load_default_catalogue();
  const StepConstants constants(configs_folder(), catalogue);
  TrainingReport report =
      validate_steps({.files = files,
                      .root = project_folder(),
                      .only = request.only,
                      .threads = request.threads,
                      .method = method},
                     constants, fitting, configs_folder() / "hardware" / "gpu-rates-priors.yaml");
  if (method == StepMethod::Graph) {
    report.notes.emplace_back("predicted by the graph: budgets are of the closed forms");
  } else if (fitting == StepFitting::None) {
    hold_against_budgets(request, seen_budgets(report.score), report);
    const StepIntervals intervals = StepIntervals::load(step_intervals_file());
    report.coverage.emplace_back(
        "around what is predicted with the constants of the files",
        coverage_of(
            report.score.sources,
            [&](const SourceScore&) -> const StepIntervals& { return intervals; }, true));
    if (request.budgets && request.only.empty()) {
      hold_steps(request, report.coverage.back().second, report);
    }
  }
  if (request.record_intervals) {
    write_file(step_intervals_file(), schema_line("step-intervals", step_intervals_file()) +
                                          report.intervals.value().to_yaml());
  }
  write_result(request.result, document_of(report), out);
  return report.exceeded.empty() ? 0 : 1;
}

int run_hosts(const OptionReader& reader, const Request& request,
              const std::vector<std::filesystem::path>& files, std::ostream& out) {
  for (const char* const name : {"budgets", "refit", "leave-one-out", "ledger", "record-intervals",
                                 "out-of-source", "method", "record-budgets"}) {
    if (reader.given(name)) {
      throw ConfigError(fmt::format(
          "--{}: expected cases of collectives or training steps, found measurements of hosts",
          name));
    }
  }
  const std::optional<std::string> profile = reader.text("mpi-profile");
  const HostValidationReport report = validate_hosts(
      {.files = files,
       .configs = configs_folder(),
       .only = request.only,
       .profile = profile ? std::filesystem::path(*profile)
                          : (project_folder() / "configs/mpi/profile.yaml").lexically_normal(),
       .threads = request.threads});
  write_result(request.result, document_of(report), out);
  return 0;
}

int run_validate(const OptionReader& reader, std::ostream& out) {
  const Request request = read_request(reader);
  spdlog::logger log = make_logger(reader);
  const std::vector<std::filesystem::path> files = validation_case_files(request.cases);
  if (is_host_file(files.front())) {
    return run_hosts(reader, request, files, out);
  }
  if (reader.given("mpi-profile")) {
    throw ConfigError("--mpi-profile: expected measurements of hosts, found cases");
  }
  if (is_training_case(files.front(), project_folder())) {
    return run_training(reader, request, files, out);
  }
  if (reader.given("out-of-source")) {
    throw ConfigError(
        "--out-of-source: expected cases of training steps, found collectives: --leave-one-out");
  }
  if (reader.given("method")) {
    throw ConfigError("--method: expected cases of training steps, found collectives");
  }
  const std::vector<LoadedCase> cases = load_cases(request);
  const Catalogue& catalogue = load_default_catalogue();
  std::vector<LoadedCase> wanted;
  std::ranges::copy_if(cases, std::back_inserter(wanted),
                       [&](const LoadedCase& one) { return is_wanted(request, one.item); });
  ValidationReport report;
  report.runtime = "nccl";
  report.validation = validation_of(run_cases(wanted, catalogue, request.threads));
  if (request.refit) {
    report.refit = refit_cases(request, cases, catalogue);
  }
  write_ledger(request, report);
  hold_against_budgets(request, seen_budgets(report.validation), report);
  if (request.budgets && request.only.empty()) {
    const Intervals intervals = Intervals::load(intervals_file());
    hold_against_intervals(request, coverage_of(report.validation, intervals), report);
  }
  write_result(request.result, document_of(report), out);
  for (const std::string& line : report.exceeded) {
    log.warn("budget exceeded: {}", line);
  }
  return report.exceeded.empty() ? 0 : 1;
}

}  // namespace

Command validate_command() {
  return {
      .name = "validate",
      .form = "validate",
      .summary = "how far predictions are from measured tables",
      .usage = "validate [options]",
      .options = joined(
          {Options{
               {"cases", "DIR", "folder of cases (default: validation/cases/nccl)", kInput},
               {"only", "TEXT",
                "only cases of the class TEXT or with TEXT in their names; may be repeated",
                kRepeated},
               {"budgets", "FILE",
                "errors not to exceed (default: DIR-budgets.yaml beside DIR, if it is there)",
                kInput},
               {"refit", "",
                "fit the constants of the model to all cases, and show them and the errors "
                "with them"},
               {"leave-one-out", "",
                "predict each system also with constants fitted to all others, or each "
                "generation of GPUs with the rates of the others (minutes)"},
               {"ledger",
                "FILE",
                "write every row with its times, measured and predicted, as CSV; with "
                "--leave-one-out",
                {.role = Role::Result, .needs = "leave-one-out", .excludes = "only"}},
               {"record-intervals",
                "",
                "write the intervals that follow to configs/nccl/intervals.yaml or, of "
                "training steps, configs/hardware/step-intervals.yaml; with --leave-one-out",
                {.needs = "leave-one-out", .excludes = "only"}},
               {"out-of-source", "",
                "predict training steps with constants fitted on the other half of the sources "
                "(minutes)"},
               {"method",
                "NAME",
                "of training steps: closed-forms (the default), or graph (minutes)",
                {.choices = "closed-forms|graph"}},
               {"mpi-profile", "FILE",
                "of hosts: costs of MPI's messages (default: configs/mpi/profile.yaml)", kInput},
               {"record-budgets",
                "",
                "lower the budgets to what is seen, where that is less",
                {.excludes = "only"}},
               threads_option()},
           without("effects", output_options()), log_options()}),
      .example = kExample,
      .run = run_validate};
}

}  // namespace trainyard
