// SPDX-License-Identifier: Apache-2.0
// Columns, header and summary of a collective's report.
#include "report/results/collective_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <span>

#include "calibration/measured/comparison.h"
#include "report/formats/json.h"
#include "report/formats/log_percent.h"
#include "sim/check.h"
#include "topology/server/server_runs.h"

namespace trainyard {
namespace {

// The element type of the report, as in nccl-tests' default.
constexpr std::string_view kElementType = "float";
constexpr std::int64_t kElementBytes = 4;

bool reduces(Operation operation) {
  return operation == Operation::AllReduce || operation == Operation::ReduceScatter ||
         operation == Operation::Reduce;
}

// -1, as in nccl-tests, where there is no root.
int root_column(const CollectiveReport& report) {
  return row_of(report.operation).has_root ? report.root : -1;
}

// nccl-tests' "count" is the argument of the NCCL call: for operations that split the buffer among
// the ranks it is one rank's part.
std::int64_t element_count(const CollectiveReport& report, Bytes size) {
  switch (report.operation) {
    case Operation::AllGather:
    case Operation::ReduceScatter:
    case Operation::AllToAll:
    case Operation::Scatter:
    case Operation::Gather:
      return size.count() / kElementBytes / report.ranks;
    case Operation::AllReduce:
    case Operation::Broadcast:
    case Operation::Reduce:
    case Operation::SendReceive:
    case Operation::AllToAllV:  // Bytes of the rank that has most.
    case Operation::Barrier:
      return size.count() / kElementBytes;
  }
  CHECK(false, "unknown operation");
}

bool has_several_per_size(const std::vector<CollectiveRow>& rows) {
  std::map<Bytes, int> counts;
  return std::any_of(rows.begin(), rows.end(),
                     [&](const CollectiveRow& row) { return ++counts[row.size] > 1; });
}

// A word of a line: never empty, no blanks.
Cell word(std::string text) {
  Cell cell = text.empty() ? Cell::none() : Cell::of(std::move(text));
  std::replace(cell.text.begin(), cell.text.end(), ' ', '_');
  return cell;
}

Cell number(double value, int width) {
  return {nccl_number(value, width), value};
}

class Layout {
 public:
  Layout(const CollectiveReport& report, Format format)
      : report_(report),
        nccl_(!report.rows.empty() && report.rows.front().nccl),
        nccl_details_(nccl_ && format != Format::Table),
        interval_(!report.rows.empty() && report.rows.front().interval),
        several_(has_several_per_size(report.rows)),
        measured_(report.measured_name.has_value()) {}

  [[nodiscard]] Table table() const {
    Table table(columns());
    for (const CollectiveRow& row : report_.rows) {
      table.add_row(cells(row));
    }
    return table;
  }

  [[nodiscard]] bool several() const { return several_; }

 private:
  [[nodiscard]] std::vector<Column> columns() const {
    // The widths up to busbw are nccl-tests'.
    std::vector<Column> columns = {
        {.name = "size", .key = "size_bytes", .unit = "(B)", .min_width = 12},
        {.name = "count", .key = "count_elements", .unit = "(elements)", .min_width = 12},
        {.name = "type", .key = "type", .unit = "", .min_width = 8},
        {.name = "redop", .key = "reduction", .unit = "", .min_width = 6},
        {.name = "root", .key = "root", .unit = "", .min_width = 6},
        {.name = "time", .key = "time_us", .unit = "(us)", .min_width = 7},
        {.name = "algbw", .key = "algbw_gb_per_s", .unit = "(GB/s)", .min_width = 6},
        {.name = "busbw", .key = "busbw_gb_per_s", .unit = "(GB/s)", .min_width = 6},
        {.name = "algorithm", .key = "algorithm", .unit = ""},
        {.name = "protocol", .key = "protocol", .unit = ""},
        {.name = "channels", .key = "channels", .unit = ""}};
    if (!nccl_) {
      columns.push_back({.name = "transfers", .key = "transfers", .unit = ""});
    }
    if (interval_) {
      columns.push_back({.name = "low", .key = "time_low_us", .unit = "(us)"});
      columns.push_back({.name = "high", .key = "time_high_us", .unit = "(us)"});
    }
    if (nccl_details_) {
      columns.push_back({.name = "threads", .key = "threads", .unit = ""});
      columns.push_back({.name = "chunk", .key = "chunk_bytes", .unit = "(B)"});
      columns.push_back({.name = "device", .key = "device_us", .unit = "(us)"});
      columns.push_back({.name = "host", .key = "host_us", .unit = "(us)"});
      columns.push_back({.name = "estimate", .key = "nccl_estimate_us", .unit = "(us)"});
      columns.push_back({.name = "reason", .key = "reason", .unit = ""});
    }
    if (several_) {
      columns.push_back({.name = "best", .key = "best", .unit = ""});
    }
    if (measured_) {
      // One word each, and not "time" or "busbw": a reader would take those for in-place columns.
      columns.push_back({.name = "measured_time", .key = "measured_time_us", .unit = "(us)"});
      columns.push_back(
          {.name = "measured_busbw", .key = "measured_busbw_gb_per_s", .unit = "(GB/s)"});
      columns.push_back({.name = "error", .key = "error_percent", .unit = "(%)"});
    }
    if (report_.show_bounds) {
      columns.push_back({.name = "bound", .key = "bound_us", .unit = "(us)"});
      columns.push_back({.name = "efficiency", .key = "efficiency", .unit = ""});
    }
    if (report_.show_fingerprint) {
      columns.push_back({.name = "fingerprint", .key = "fingerprint", .unit = ""});
    }
    return columns;
  }

  [[nodiscard]] std::vector<Cell> cells(const CollectiveRow& row) const {
    std::vector<Cell> cells = {Cell::of(row.size.count()),
                               Cell::of(element_count(report_, row.size)),
                               Cell::of(std::string(kElementType)),
                               Cell::of(std::string(reduces(report_.operation) ? "sum" : "none")),
                               Cell::of(std::int64_t{root_column(report_)}),
                               number(row.time.microseconds(), 7),
                               number(row.algbw_gbps, 6),
                               number(row.busbw_gbps, 6),
                               word(row.algorithm),
                               word(row.protocol),
                               Cell::of(std::int64_t{row.channels})};
    if (!nccl_) {
      cells.push_back(Cell::of(static_cast<std::int64_t>(row.transfers)));
    }
    if (interval_) {
      cells.push_back(number(row.interval->low.microseconds(), 7));
      cells.push_back(number(row.interval->high.microseconds(), 7));
    }
    if (nccl_details_) {
      add_nccl(*row.nccl, cells);
    }
    if (several_) {
      cells.push_back({row.best ? "*" : "-", row.best});
    }
    if (measured_) {
      add_measured(row, cells);
    }
    if (report_.show_bounds) {
      add_bound(row, cells);
    }
    if (report_.show_fingerprint) {
      cells.push_back(Cell::of(fmt::format("{:016x}", row.fingerprint)));
    }
    return cells;
  }

  static void add_bound(const CollectiveRow& row, std::vector<Cell>& cells) {
    if (!row.bound || row.time <= SimTime()) {
      cells.insert(cells.end(), 2, Cell::none());
      return;
    }
    const double efficiency = *row.bound / row.time;
    cells.push_back(number(row.bound->microseconds(), 7));
    cells.push_back({fmt::format("{:.3f}", efficiency), efficiency});
  }

  static void add_nccl(const NcclCall& call, std::vector<Cell>& cells) {
    cells.push_back(call.threads ? Cell::of(std::int64_t{*call.threads}) : Cell::none());
    cells.push_back(Cell::of(call.chunk.count()));
    cells.push_back(number(call.device.microseconds(), 7));
    cells.push_back(number(call.host.microseconds(), 7));
    cells.push_back(call.estimate_us ? number(*call.estimate_us, 7) : Cell::none());
    cells.push_back(Cell::of(call.reason));
  }

  static void add_measured(const CollectiveRow& row, std::vector<Cell>& cells) {
    if (!row.measured) {
      cells.insert(cells.end(), 3, Cell::none());
      return;
    }
    const double error_percent = (row.time / row.measured->time - 1.0) * 100.0;
    cells.push_back(number(row.measured->time.microseconds(), 7));
    cells.push_back(number(row.measured->busbw_gbps, 6));
    cells.push_back({fmt::format("{:+.1f}", error_percent), error_percent});
  }

  const CollectiveReport& report_;
  bool nccl_;
  bool nccl_details_;
  bool interval_;  // Rows have intervals.
  bool several_;
  bool measured_;
};

// The rows that answer "how long does it take": the best of each size.
std::vector<const CollectiveRow*> answers(const CollectiveReport& report, bool several) {
  std::vector<const CollectiveRow*> rows;
  for (const CollectiveRow& row : report.rows) {
    if (row.best || !several) {
      rows.push_back(&row);
    }
  }
  return rows;
}

ComparisonSummary error_summary(const std::vector<const CollectiveRow*>& rows) {
  std::vector<RowComparison> comparisons;
  for (const CollectiveRow* const row : rows) {
    if (row->measured) {
      comparisons.push_back(
          {.size = row->size, .predicted = row->time, .measured = row->measured->time});
    }
  }
  return summarise(comparisons);
}

std::string regime_text(std::string_view name, const RegimeError& error) {
  return fmt::format("#   {}: median {:.1f} %, 90th percentile {:.1f} % ({} rows)\n", name,
                     log_percent(error.median), log_percent(error.p90), error.rows);
}

std::string summary_text(const ComparisonSummary& summary) {
  if (!summary.largest) {
    return "# Error: no size of the measured table was simulated\n";
  }
  std::string text = "# Error of the predicted time against the measured:\n";
  if (summary.small.rows > 0) {
    text += regime_text("below 64 KiB", summary.small);
  }
  if (summary.large.rows > 0) {
    text += regime_text("64 KiB and more", summary.large);
  }
  return text + fmt::format("#   largest size, {}: {:+.1f} %\n", to_string(summary.largest->size),
                            summary.largest->relative_error() * 100.0);
}

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

Json node_gpus_json(const std::vector<int>& node_gpus) {
  const std::vector<ServerRun> runs = server_runs(node_gpus);
  if (runs.size() == 1) {
    return runs.front().gpus;
  }
  Json list = Json::array();
  for (const ServerRun& run : runs) {
    list.push_back({{"nodes", run.servers}, {"gpus_per_node", run.gpus}});
  }
  return list;
}

std::string render_report_text(const CollectiveReport& report) {
  const Layout layout(report, Format::Table);
  std::string text =
      fmt::format("# Collective test starting: {}_perf\n", to_string(report.operation));
  text += fmt::format("# Simulated by Trainyard: cluster {}, runtime {}, fidelity {}\n",
                      one_line(report.cluster), report.runtime, report.fidelity);
  text += fmt::format("# ranks {} nodes {} gpus_per_node {}\n", report.ranks,
                      report.node_gpus.size(), server_runs_text(report.node_gpus));
  if (report.measured_name) {
    text += fmt::format("# Measured: {} ({})\n", one_line(*report.measured_name),
                        one_line(report.measured_source.value_or("source unknown")));
  }
  text += "#\n" + render_text(layout.table(), HeaderMark::Hash);

  const std::vector<const CollectiveRow*> rows = answers(report, layout.several());
  double busbw = 0.0;
  for (const CollectiveRow* const row : rows) {
    busbw += row->busbw_gbps / static_cast<double>(rows.size());
  }
  text += fmt::format("# Avg bus bandwidth    : {:g}\n", busbw);
  if (report.measured_name) {
    text += summary_text(error_summary(rows));
  }
  for (const std::string& note : report.notes) {
    text += fmt::format("# Note: {}\n", one_line(note));
  }
  return text;
}

Json regime_json(const RegimeError& error) {
  if (error.rows == 0) {
    return {{"rows", 0}, {"median_error_percent", nullptr}, {"p90_error_percent", nullptr}};
  }
  return {{"rows", error.rows},
          {"median_error_percent", log_percent(error.median)},
          {"p90_error_percent", log_percent(error.p90)}};
}

std::string render_report_json(const CollectiveReport& report) {
  const Layout layout(report, Format::Json);
  Json json;
  json["operation"] = to_string(report.operation);
  json["cluster"] = report.cluster;
  json["runtime"] = report.runtime;
  json["fidelity"] = report.fidelity;
  json["ranks"] = report.ranks;
  json["nodes"] = report.node_gpus.size();
  json["gpus_per_node"] = node_gpus_json(report.node_gpus);
  json["settings"] = report.inputs.settings;
  for (const auto& [option, value] : report.inputs.options) {
    json["options"][option] = value;
  }
  for (const auto& [resource, value] : report.inputs.resources) {
    json["resources"][resource] = value;
  }
  json["rows"] = to_json(layout.table());
  if (report.measured_name) {
    const ComparisonSummary summary = error_summary(answers(report, layout.several()));
    Json& measured = json["measured"];
    measured["name"] = *report.measured_name;
    measured["source"] = report.measured_source ? Json(*report.measured_source) : Json(nullptr);
    measured["below_64_kib"] = regime_json(summary.small);
    measured["from_64_kib"] = regime_json(summary.large);
    Json& largest = measured["largest_size"];
    if (summary.largest) {
      largest = {{"size_bytes", summary.largest->size.count()},
                 {"error_percent", summary.largest->relative_error() * 100.0}};
    }
  }
  if (layout.several()) {
    json["crossovers"] = Json::array();
    for (const Crossover& each : crossovers(report.rows)) {
      json["crossovers"].push_back(
          {{"from_bytes", each.size.count()}, {"algorithm", each.algorithm}});
    }
  }
  json["notes"] = report.notes;
  return to_text(json);
}

}  // namespace

void mark_best(std::vector<CollectiveRow>& rows) {
  std::map<Bytes, CollectiveRow*> best;
  for (CollectiveRow& row : rows) {
    row.best = false;
    const auto [entry, is_new] = best.try_emplace(row.size, &row);
    if (!is_new && row.time < entry->second->time) {
      entry->second = &row;
    }
  }
  for (const auto& [size, row] : best) {
    row->best = true;
  }
}

std::vector<Crossover> crossovers(const std::vector<CollectiveRow>& rows) {
  std::map<Bytes, std::string> best;
  for (const CollectiveRow& row : rows) {
    if (row.best) {
      best.emplace(row.size, row.algorithm);
    }
  }
  std::vector<Crossover> found;
  for (const auto& [size, algorithm] : best) {
    if (found.empty() || found.back().algorithm != algorithm) {
      found.push_back({.size = size, .algorithm = algorithm});
    }
  }
  return found;
}

std::string render(const CollectiveReport& report, Format format) {
  switch (format) {
    case Format::Table:
      return render_report_text(report);
    case Format::Csv:
      return render_csv(Layout(report, Format::Csv).table());
    case Format::Json:
      return render_report_json(report);
  }
  CHECK(false, "unknown format");
}

// Formats as nccl-tests since 2.13 does: by the number of digits before the point.
std::string nccl_number(double value, int width) {
  int digits = 0;
  for (double power = 1.0; value >= power && digits < width; power *= 10.0) {
    ++digits;
  }
  const int decimals = digits < width - 2 ? 2 : digits < width - 1 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace trainyard
