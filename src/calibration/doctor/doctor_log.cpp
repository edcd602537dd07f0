// SPDX-License-Identifier: Apache-2.0
#include "calibration/doctor/doctor_log.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "calibration/measured/bus_ratio.h"
#include "calibration/measured/nccl_log.h"
#include "calibration/measured/osu_log.h"
#include "calibration/measured/pasted_output.h"
#include "calibration/predict/validation.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// The GPUs of one process: of a log that is damaged, nothing.
std::optional<int> gpus_per_process_of(const MeasuredTable& table) {
  constexpr int kMax = 1'024;
  const int threads = table.threads_per_process.value_or(kMax + 1);
  const int gpus = table.gpus_per_process.value_or(kMax + 1);
  return threads <= kMax && gpus <= kMax ? std::optional(std::max(1, threads * gpus))
                                         : std::nullopt;
}

void warn_of_order(const MeasuredTable& table, const std::string& name,
                   std::vector<std::string>& warnings) {
  for (std::size_t row = 1; row < table.rows.size(); ++row) {
    if (table.rows[row].size < table.rows[row - 1].size && table.rows[row].line > 0) {
      warnings.push_back(fmt::format(
          "{}:{}: {} B after {} B: rows are out of order and taken by their sizes", name,
          table.rows[row].line, table.rows[row].size.count(), table.rows[row - 1].size.count()));
      return;
    }
  }
}

// The one operation that has this ratio of busbw to algbw with as many ranks, if there is one.
std::optional<Operation> operation_by_ratio(const MeasuredTable& table) {
  std::optional<Operation> only;
  for (const Operation operation : kOperations) {
    const std::optional<RankRange> ranks =
        table.bus_ratio ? ranks_of(*table.bus_ratio, operation) : std::nullopt;
    if (!ranks || ranks->last < 2 || (table.ranks && *table.ranks < ranks->first) ||
        (table.ranks && *table.ranks > ranks->last)) {
      continue;
    }
    if (only) {
      return std::nullopt;
    }
    only = operation;
  }
  return only;
}

Operation operation_of(const MeasuredTable& table, std::optional<Operation> given,
                       const std::string& place, std::vector<std::string>& warnings) {
  if (!table.operation && !given) {
    if (const std::optional<Operation> found = operation_by_ratio(table)) {
      warnings.push_back(fmt::format("{}: {}, as busbw / algbw says", place, to_string(*found)));
      return *found;
    }
    throw ConfigError(
        fmt::format("{}: expected a log that says its operation, or --op, found neither", place));
  }
  if (table.operation && given && *table.operation != *given) {
    throw ConfigError(fmt::format("--op: expected {}, as in {}, found \"{}\"",
                                  to_string(*table.operation), place, to_string(*given)));
  }
  return table.operation ? *table.operation : *given;
}

void agree(std::optional<int>& known, const std::optional<int>& found, std::string_view what,
           const std::string& place) {
  if (known && found && *known != *found) {
    throw ConfigError(fmt::format("{}: expected a run of {} {}, as those before, found {}", place,
                                  *known, what, *found));
  }
  known = known ? known : found;
}

// Throws ConfigError where busbw / algbw contradicts the operation or the ranks, and fills in ranks
// that only it tells.
void check_ratio(MeasuredTable& table, Operation operation, const std::string& place,
                 std::vector<std::string>& warnings) {
  if (!table.bus_ratio) {
    return;
  }
  if (const auto other = ratio_says_otherwise(*table.bus_ratio, operation, table.ranks)) {
    throw ConfigError(
        fmt::format("{}: expected {}, found {}{}", place, *other, to_string(operation),
                    table.ranks ? fmt::format(" of {} ranks", *table.ranks) : std::string()));
  }
  const std::optional<RankRange> ranks = ranks_of(*table.bus_ratio, operation);
  if (!table.ranks && ranks && ranks->first == ranks->last) {
    table.ranks = ranks->first;
    warnings.push_back(fmt::format("{}: {} ranks, as busbw / algbw says", place, ranks->first));
  }
}

// Rates of links are compared by another command.
void refuse_links(const std::string& text, const std::string& name) {
  const std::optional<PastedTool> tool =
      is_osu_log(text) || is_measured_yaml(text) ? std::nullopt : pasted_tool(text);
  if (tool) {
    throw ConfigError(fmt::format(
        "{0}: expected a collective, found {1}, which measures links: trainyard calibrate {0} "
        "--cluster NAME holds it against the simulator",
        name, to_string(*tool)));
  }
}

void add_run(DoctorLog& log, MeasuredTable table, const std::string& name, std::size_t line,
             std::optional<Operation> operation) {
  const std::string place = line > 0 ? fmt::format("{}:{}", name, line) : name;
  const Operation of = operation_of(table, operation, place, log.warnings);
  check_ratio(table, of, place, log.warnings);
  agree(log.ranks, table.ranks, "ranks", place);
  agree(log.nodes, table.nodes, "nodes", place);
  agree(log.gpus_per_node, table.gpus_per_node, "GPUs in each node", place);
  for (const std::string& remark : table.remarks) {
    log.warnings.push_back(fmt::format("{}: {}", place, remark));
  }
  warn_of_order(table, name, log.warnings);
  const std::optional<int> process = gpus_per_process_of(table);
  log.runs.push_back({.table = std::move(table), .operation = of, .gpus_per_process = process});
}

}  // namespace

DoctorLog parse_doctor_log(const std::string& text, const std::string& name,
                           std::optional<Operation> operation) {
  DoctorLog log;
  if (!is_nccl_log(text)) {
    refuse_links(text, name);
    MeasuredTable table = parse_measurement(text, name);
    for (const WrongResult& wrong : table.wrong_results) {
      log.wrong_results.push_back(fmt::format("{}: {}", name, wrong.what));
    }
    add_run(log, std::move(table), name, 0, operation);
    return log;
  }
  if (const std::optional<std::string> why = why_separate(text, name)) {
    throw ConfigError(*why);
  }
  for (const LogRunText& run : split_runs(text)) {
    MeasuredTable table = parse_measurement(run.padded(), name);
    for (const WrongResult& wrong : table.wrong_results) {
      const std::size_t line = wrong.line > 0 ? wrong.line : run.header_line;
      log.wrong_results.push_back(fmt::format("{}:{}: {}", name, line, wrong.what));
    }
    add_run(log, std::move(table), name, run.header_line, operation);
  }
  return log;
}

std::vector<DoctorPoint> points_of(const MeasuredTable& table) {
  const LoadedCase loaded{.item = {}, .table = table};
  std::vector<DoctorPoint> points;
  for (const ValidationRow& row : validation_rows(loaded)) {
    points.push_back({.size = row.size, .time = row.measured});
  }
  std::ranges::sort(points, {}, &DoctorPoint::size);
  return points;
}

}  // namespace trainyard
