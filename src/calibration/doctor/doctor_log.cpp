// SPDX-License-Identifier: Apache-2.0
#include "calibration/doctor/doctor_log.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "calibration/measured/nccl_log.h"
#include "calibration/predict/validation.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

struct Segment {
  std::size_t first_line = 1;
  std::size_t header_line = 0;  // Line that begins its table; 0 without one.
  std::string_view text;
};

// A run begins with these lines, older releases with the second of them.
bool begins_run(std::string_view line) {
  return line.find("Collective test starting") != std::string_view::npos ||
         line.find("# nThread") != std::string_view::npos;
}

bool ends_run(std::string_view line) {
  return line.find("Avg bus bandwidth") != std::string_view::npos;
}

// Each with one header at most: cut behind the end of a run, and where another one begins.
std::vector<Segment> split_runs(std::string_view text) {
  std::vector<Segment> segments{{.text = text}};
  std::size_t number = 1;
  std::size_t begin = 0;  // Begin of the last segment.
  const auto cut = [&](std::size_t at, std::size_t line) {
    segments.back().text = text.substr(begin, at - begin);
    segments.push_back({.first_line = line, .text = text.substr(at)});
    begin = at;
  };
  for (std::size_t at = 0; at < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string_view line = text.substr(at, end - at);
    const bool is_header = is_nccl_log(line);
    if (segments.back().header_line > 0 && (is_header || begins_run(line))) {
      cut(at, number);
    }
    if (is_header) {
      segments.back().header_line = number;
    }
    if (segments.back().header_line > 0 && ends_run(line)) {
      cut(end, number + 1);
    }
    at = end;
  }
  std::erase_if(segments, [](const Segment& one) { return one.header_line == 0; });
  return segments;
}

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

Operation operation_of(const MeasuredTable& table, std::optional<Operation> given,
                       const std::string& place) {
  if (!table.operation && !given) {
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

void add_run(DoctorLog& log, MeasuredTable table, const std::string& name, std::size_t line,
             std::optional<Operation> operation) {
  const std::string place = line > 0 ? fmt::format("{}:{}", name, line) : name;
  const Operation of = operation_of(table, operation, place);
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
    add_run(log, parse_measurement(text, name), name, 0, operation);
    return log;
  }
  for (const Segment& segment : split_runs(text)) {
    // Empty lines in front, so that errors name lines of the whole file.
    std::string padded(segment.first_line - 1, '\n');
    padded += segment.text;
    MeasuredTable table = parse_measurement(padded, name);
    for (const WrongResult& wrong : table.wrong_results) {
      const std::size_t line = wrong.line > 0 ? wrong.line : segment.header_line;
      log.wrong_results.push_back(fmt::format("{}:{}: {}", name, line, wrong.what));
    }
    add_run(log, std::move(table), name, segment.header_line, operation);
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
