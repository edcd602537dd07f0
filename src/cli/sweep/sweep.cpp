// SPDX-License-Identifier: Apache-2.0
#include "cli/sweep/sweep.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/commands.h"
#include "cli/common/common.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "cli/sweep/sweep_html.h"
#include "report/formats/csv.h"
#include "sim/config_error.h"
#include "sim/random.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample = R"(
FILE, a file or a name in configs/sweeps, says a command, the options that all runs share and those
that vary:

  title: oversubscription
  command: step
  options: {cluster: hgx-h100-clos, nodes: 8, workload: mixtral-8x7b}
  vary:
    set.fabric.oversubscription: [1, 2, 4]
    set.plan.tensor: [2, 4, 8]

Each point is a row, or as many as the command prints; one that fails has its error in the last
column, and the status is then 1. With --output, what is finished is kept in FILE.partial.

Examples:
  trainyard sweep oversubscription --format csv --output oversubscription.csv
  trainyard sweep my-sweep.yaml --format csv --output points.csv --resume --threads 8
  trainyard sweep all-reduce-crossovers --format csv --output points.csv --report points.html
)";

std::vector<Command> swept_commands() {
  std::vector<Command> commands = all_commands();
  std::erase_if(commands, [](const Command& command) { return !command.is_swept; });
  std::ranges::sort(commands, {}, &Command::name);
  return commands;
}

struct Request {
  std::string file = {};
  std::optional<std::string> output = {};
  Format format = Format::Csv;
  bool resumes = false;
  bool only_lists = false;
  unsigned threads = 0;
  std::optional<std::string> log_level = {};
  std::optional<HtmlTarget> report = {};
};

Command command_of(const SweepSpec& spec) {
  const std::vector<Command> commands = swept_commands();
  return *std::ranges::find(commands, spec.command, &Command::name);
}

// Checks that the command has all options of the sweep, none of which is a file of results.
void check_options(const std::filesystem::path& file, const SweepSpec& spec) {
  const Command command = command_of(spec);
  std::vector<std::string> known;
  for (const Option& option : joined({command.arguments, command.options})) {
    if (option.traits.role != Role::Result) {
      known.emplace_back(option.name);
    }
  }
  std::vector<std::string> used = spec.keys();
  for (const auto& [name, values] : spec.options) {
    used.push_back(name);
  }
  for (const std::string& key : used) {
    const std::string name = key.substr(0, key.find('.'));
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      fail_value(fmt::format("{}: {}", file.string(), key),
                 fmt::format("an option of trainyard {} that is no file of results", spec.command),
                 name, known);
    }
  }
}

// Hashes all that a result follows from, as far as the sweep names it: the points, and the text of
// files of clusters, workloads and traffic.
std::uint64_t fingerprint_of(const SweepSpec& spec) {
  std::uint64_t hash = 0;
  const auto add = [&](std::string_view text) {
    for (const char character : text) {
      hash = hash64(hash ^ static_cast<unsigned char>(character));
    }
    hash = hash64(hash);
  };
  add(spec.command);
  std::set<std::string> files;
  for (std::size_t point = 0; point < spec.points(); ++point) {
    for (const std::string& argument : spec.arguments_at(point)) {
      add(argument);
      files.insert(argument);
    }
  }
  for (const std::string& name : files) {
    std::error_code error;  // Ignored: arguments that are no names of files come here too.
    if (std::filesystem::is_regular_file(name, error)) {
      constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;
      add(read_file(name, kMaxBytes));
    }
  }
  return hash;
}

SweepResult run_point(const Request& request, const SweepSpec& spec, std::size_t point) {
  std::vector<std::string> arguments = spec.arguments_at(point);
  arguments.insert(arguments.end(), {"--format", "csv"});
  const auto has = [&](std::string_view option) {
    return std::find(arguments.begin(), arguments.end(), option) != arguments.end();
  };
  if (spec.command == "collective" && !has("--threads")) {
    arguments.insert(arguments.end(), {"--threads", "1"});  // Points have threads already.
  }
  if (request.log_level && !has("--log-level")) {
    arguments.insert(arguments.end(), {"--log-level", *request.log_level});
  }
  std::ostringstream out;
  try {
    const int status = run_command(command_of(spec), arguments, out);
    return status == 0 ? SweepResult{.csv = out.str(), .error = ""}
                       : SweepResult{.csv = "", .error = "the run did not end as it should"};
  } catch (const ConfigError& error) {
    return {.csv = "", .error = error.what()};
  }
}

// Runs the share of this process of the missing points.
SweepResults run_points(const Request& request, const SweepSpec& spec, const SweepTeam& team,
                        const SweepResults& finished, SweepJournal* journal) {
  std::vector<std::size_t> own;
  std::size_t missing = 0;
  for (std::size_t point = 0; point < spec.points(); ++point) {
    if (!finished.contains(point) && missing++ % team.size() == team.rank()) {
      own.push_back(point);
    }
  }
  std::vector<SweepResult> results(own.size());
  run_tasks(own.size(), request.threads, "points", [&](std::size_t index) {
    results[index] = run_point(request, spec, own[index]);
    if (journal != nullptr) {
      journal->add(own[index], results[index]);
    }
  });
  SweepResults by_point;
  for (std::size_t index = 0; index < own.size(); ++index) {
    by_point[own[index]] = std::move(results[index]);
  }
  return by_point;
}

// Returns the cluster of the first point, if it can be had.
std::optional<Cluster> first_cluster(const SweepSpec& spec) {
  try {
    const OptionReader reader = parse_options(command_of(spec), spec.arguments_at(0));
    const InputNames inputs = read_input_names(reader);
    return load_cluster(find_config("clusters", inputs.cluster), load_default_catalogue(),
                        inputs.overrides);
  } catch (const ConfigError&) {
    return std::nullopt;  // The point has failed and says why.
  }
}

// One line on standard error: whoever reads the exit status alone shall know why it is 1.
bool warn_of_failures(const SweepResults& results, std::size_t points, spdlog::logger& log) {
  std::size_t failed = 0;
  const std::string* first = nullptr;
  for (const auto& [point, result] : results) {
    if (!result.error.empty()) {
      first = failed++ == 0 ? &result.error : first;
    }
  }
  if (failed > 0) {
    log.warn("{} of {} points failed, the first with: {}", failed, points, *first);
  }
  return failed > 0;
}

// Lists the points as shell commands that give the same results.
std::string list_points(const SweepSpec& spec) {
  std::string text;
  for (std::size_t point = 0; point < spec.points(); ++point) {
    text +=
        fmt::format("trainyard {} {}\n", spec.command, fmt::join(spec.arguments_at(point), " "));
  }
  return text;
}

Request read_request(const OptionReader& reader) {
  Request request{.file = reader.required_text("file", "a file of a sweep"),
                  .output = output_file(reader, "output"),
                  .format = output_format(reader),
                  .resumes = reader.given("resume"),
                  .only_lists = reader.given("list"),
                  .threads = read_threads(reader),
                  .log_level = reader.text("log-level"),
                  .report = html_target(reader)};
  check_distinct_files({{"output", request.output}, {"report", reader.text("report")}});
  return request;
}

// Refuses outputs that would overwrite files that points read.
void check_outputs(const Request& request, const SweepSpec& spec) {
  const Command command = command_of(spec);
  const auto check = [&](const std::string& key, const std::vector<std::string>& values) {
    const std::string option = key.substr(0, key.find('.'));
    for (const std::string& value : values) {
      check_not_read({"output", request.output}, command, option, value);
      if (request.report) {
        check_not_read({"report", request.report->file}, command, option, value);
      }
    }
  };
  for (const auto& [key, values] : spec.options) {
    check(key, values);
  }
  for (const std::vector<SweepAxis>& group : spec.groups) {
    for (const SweepAxis& axis : group) {
      check(axis.key, axis.values);
    }
  }
}

// All that is read before anything runs.
struct SweepPlan {
  bool wants_help = false;
  Request request = {};
  SweepSpec spec = {};
  std::uint64_t fingerprint = 0;
  SweepResults finished = {};
  std::optional<spdlog::logger> log = {};
};

SweepPlan plan_of(const OptionReader& reader) {
  if (reader.given("help")) {
    return {.wants_help = true};
  }
  SweepPlan plan{.request = read_request(reader), .log = make_logger(reader)};
  const std::filesystem::path file = find_config("sweeps", plan.request.file);
  ConfigDocument document = ConfigDocument::load(file);
  plan.spec = read_sweep(document, swept_commands());
  check_options(file, plan.spec);
  check_outputs(plan.request, plan.spec);
  plan.fingerprint = fingerprint_of(plan.spec);
  if (plan.request.output && !plan.request.only_lists) {
    plan.finished = read_journals(*plan.request.output, plan.fingerprint, plan.request.resumes);
  }
  return plan;
}

// `read` gives the options of this process, or throws.
int run_with(SweepTeam& team, const std::function<OptionReader()>& read, std::ostream& out,
             KeptResult* kept = nullptr) {
  std::optional<SweepPlan> plan;
  std::optional<std::string> complaint;
  try {
    plan = plan_of(read());
  } catch (const ConfigError& error) {
    complaint = error.what();
  }
  // Nobody writes before all have read.
  complaint = team.agree(complaint);
  if (complaint) {
    throw ConfigError(*complaint);
  }
  const Request& request = plan->request;
  if (plan->wants_help || request.only_lists) {
    if (team.rank() == 0) {
      write_output(request.output,
                   plan->wants_help ? help_of(sweep_command()) : list_points(plan->spec), out);
    }
    return 0;
  }
  const SweepSpec& spec = plan->spec;
  std::optional<SweepJournal> journal;
  if (request.output) {
    journal.emplace(*request.output, team.rank(), plan->fingerprint);
  }
  SweepResults results = std::move(plan->finished);
  results.merge(
      team.gather(run_points(request, spec, team, results, journal ? &*journal : nullptr)));
  if (team.rank() != 0) {
    return 0;
  }
  const Table table = sweep_table(spec, results);
  if (request.report) {
    write_html(*request.report, sweep_html(spec, table, first_cluster(spec)));
  }
  if (kept != nullptr) {
    kept->rendered = [table](Format format) { return render(table, format); };
  }
  write_output(request.output, render(table, request.format), out);
  if (request.output) {
    remove_journals(*request.output);
  }
  for (const std::string& axis : idle_axes(spec, results)) {
    plan->log->warn("{}: no value changed any row", axis);
  }
  return warn_of_failures(results, spec.points(), *plan->log) ? 1 : 0;
}

int run_alone(const OptionReader& reader, std::ostream& out) {
  LoneTeam team;
  return run_with(
      team, [&] { return reader; }, out, reader.kept());
}

}  // namespace

Table sweep_table(const SweepSpec& spec, const SweepResults& results) {
  std::vector<std::string> header;
  std::map<std::size_t, std::vector<std::vector<std::string>>> records;
  for (const auto& [point, result] : results) {
    records[point] = parse_csv(result.csv);
    if (header.empty() && !records[point].empty()) {
      header = records[point].front();
    }
  }
  const std::vector<std::string> keys = spec.keys();
  std::vector<Column> columns;
  for (const std::string& key : keys) {
    columns.push_back({.name = key, .key = key});
  }
  for (const std::string& name : header) {
    const bool is_taken = std::find(keys.begin(), keys.end(), name) != keys.end();
    const std::string unique = is_taken ? "result_" + name : name;
    columns.push_back({.name = unique, .key = unique});
  }
  columns.push_back({.name = "error", .key = "error", .align = Align::Left});
  Table table(std::move(columns));
  for (const auto& [point, result] : results) {
    std::vector<Cell> varied;
    for (const std::string& value : spec.values_at(point)) {
      varied.push_back(typed_cell(value));
    }
    const std::vector<std::vector<std::string>>& rows = records[point];
    std::string error = result.error;
    if (error.empty() && (rows.empty() || rows.front() != header)) {
      error = "other columns than those of the first point";
    }
    if (!error.empty()) {
      varied.resize(keys.size() + header.size(), Cell::none());
      varied.push_back(Cell::of(error));
      table.add_row(std::move(varied));
      continue;
    }
    for (std::size_t row = 1; row < rows.size(); ++row) {
      std::vector<Cell> cells = varied;
      for (const std::string& field : rows[row]) {
        cells.push_back(typed_cell(field));
      }
      cells.push_back(Cell::none());
      table.add_row(std::move(cells));
    }
  }
  return table;
}

std::vector<std::string> idle_axes(const SweepSpec& spec, const SweepResults& results) {
  std::vector<std::string> idle;
  std::size_t stride = spec.points();
  for (const std::vector<SweepAxis>& group : spec.groups) {
    const std::size_t values = group.front().values.size();
    stride /= values;  // The last group changes first.
    const bool is_idle =
        values > 1 && std::ranges::all_of(results, [&](const auto& entry) {
          const auto& [point, result] = entry;
          const SweepResult& first = results.at(point - point / stride % values * stride);
          return result.error.empty() && first.error.empty() && result.csv == first.csv;
        });
    if (is_idle) {
      std::vector<std::string> keys;
      std::ranges::transform(group, std::back_inserter(keys), &SweepAxis::key);
      idle.push_back(fmt::format("{}", fmt::join(keys, ", ")));
    }
  }
  return idle;
}

int run_sweep_in(SweepTeam& team, std::span<const std::string> arguments, std::ostream& out) {
  return run_with(
      team, [&] { return parse_options(sweep_command(), arguments); }, out);
}

Command sweep_command() {
  return {
      .name = "sweep",
      .form = "sweep FILE",
      .summary = "a command over lists and ranges of its options, one row a point",
      .usage = "sweep FILE [options]",
      .arguments = {{.name = "file", .traits = {.role = Role::Input, .names = "sweeps"}}},
      .options = joined(
          {Options{
               threads_option(),
               {"resume", "", "go on with what FILE.partial of --output has", {.needs = "output"}},
               {"list", "", "print the command of every point, and run none"},
           },
           without("effects", output_options()), log_options()}),
      .example = kExample,
      .run = run_alone};
}

}  // namespace trainyard
