// SPDX-License-Identifier: Apache-2.0
// Columns, header and summary of a collective's report.
#include "report/results/collective_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>

#include "calibration/measured/comparison.h"
#include "report/formats/json.h"
#include "report/formats/log_percent.h"
#include "report/results/volume_entries.h"
#include "sim/check.h"
#include "topology/cluster/cluster.h"

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
Cell word(const std::string& text) {
  Cell cell = text.empty() ? Cell::none() : Cell::of(text);
  std::replace(cell.text.begin(), cell.text.end(), ' ', '_');
  return cell;
}

Cell number(double value, int width) {
  return {nccl_number(value, width), value};
}

// Says which columns rows have beside size, time and way.
struct Layout {
  explicit Layout(const CollectiveReport& report)
      : has_nccl(!report.rows.empty() && report.rows.front().nccl),
        has_interval(!report.rows.empty() && report.rows.front().interval),
        has_several(has_several_per_size(report.rows)) {}

  bool has_nccl;
  bool has_interval;
  bool has_several;
};

Cell time_cell(const std::optional<SimTime>& time) {
  return time ? number(time->microseconds(), 7) : Cell::none();
}

void add_nccl(const NcclCall& call, std::vector<Field>& fields) {
  const auto add = [&](const char* key, Cell cell) {
    fields.push_back({{.name = key, .key = key, .shown = Shown::Programs}, std::move(cell)});
  };
  add("threads", call.threads ? Cell::count(*call.threads) : Cell::none());
  add("chunk_bytes", Cell::count(call.chunk.count()));
  add("device_us", time_cell(call.device));
  add("host_us", time_cell(call.host));
  add("nccl_estimate_us", call.estimate_us ? number(*call.estimate_us, 7) : Cell::none());
  add("reason", Cell::of(call.reason));
}

void add_measured(const CollectiveRow& row, std::vector<Field>& fields) {
  const std::optional<MeasuredRow>& measured = row.measured;
  const double error = measured ? (row.time / measured->time - 1.0) * 100.0 : 0.0;
  // One word each, and not "time" or "busbw": a reader would take those for in-place columns.
  fields.push_back({{.name = "measured_time", .key = "measured_time_us", .unit = "(us)"},
                    measured ? time_cell(measured->time) : Cell::none()});
  fields.push_back({{.name = "measured_busbw", .key = "measured_busbw_gb_per_s", .unit = "(GB/s)"},
                    measured ? number(measured->busbw_gbps, 6) : Cell::none()});
  fields.push_back({{.name = "error", .key = "error_percent", .unit = "(%)"},
                    measured ? Cell{fmt::format("{:+.1f}", error), error} : Cell::none()});
}

void add_bound(const CollectiveRow& row, std::vector<Field>& fields) {
  const bool is_known = row.bound && row.time > SimTime();
  fields.push_back({{.name = "bound", .key = "bound_us", .unit = "(us)"},
                    is_known ? time_cell(row.bound) : Cell::none()});
  fields.push_back({{.name = "efficiency", .key = "efficiency"},
                    is_known ? Cell::number(*row.bound / row.time, 3) : Cell::none()});
}

std::vector<Field> fields_of(const CollectiveReport& report, const Layout& layout,
                             const CollectiveRow& row) {
  // The widths up to busbw are nccl-tests'.
  std::vector<Field> fields{
      {{.name = "size", .key = "size_bytes", .unit = "(B)", .min_width = 12},
       Cell::count(row.size.count())},
      {{.name = "count", .key = "count_elements", .unit = "(elements)", .min_width = 12},
       Cell::count(element_count(report, row.size))},
      {{.name = "type", .key = "type", .min_width = 8}, Cell::of(kElementType)},
      {{.name = "redop", .key = "reduction", .min_width = 6},
       Cell::of(reduces(report.operation) ? "sum" : "none")},
      {{.name = "root", .key = "root", .min_width = 6}, Cell::count(root_column(report))},
      {{.name = "time", .key = "time_us", .unit = "(us)", .min_width = 7}, time_cell(row.time)},
      {{.name = "algbw", .key = "algbw_gb_per_s", .unit = "(GB/s)", .min_width = 6},
       number(row.algbw_gbps, 6)},
      {{.name = "busbw", .key = "busbw_gb_per_s", .unit = "(GB/s)", .min_width = 6},
       number(row.busbw_gbps, 6)},
      {column("algorithm", "algorithm"), word(row.algorithm)},
      {column("protocol", "protocol"), word(row.protocol)},
      {column("channels", "channels"), Cell::count(row.channels)}};
  if (!layout.has_nccl) {
    fields.push_back({column("transfers", "transfers"), Cell::count(row.transfers)});
  }
  if (layout.has_interval) {
    const TimeInterval interval = row.interval.value_or(TimeInterval());
    fields.push_back(
        {{.name = "low", .key = "time_low_us", .unit = "(us)"}, time_cell(interval.low)});
    fields.push_back(
        {{.name = "high", .key = "time_high_us", .unit = "(us)"}, time_cell(interval.high)});
  }
  if (layout.has_nccl) {
    add_nccl(row.nccl.value_or(NcclCall()), fields);
  }
  if (layout.has_several) {
    fields.push_back({column("best", "best"), {row.best ? "*" : "-", row.best}});
  }
  if (report.measured_name) {
    add_measured(row, fields);
  }
  if (report.show_bounds) {
    add_bound(row, fields);
  }
  fields.push_back(volumes_field(row.volumes));
  if (report.show_fingerprint) {
    fields.push_back(
        {column("fingerprint", "fingerprint"), Cell::of(fmt::format("{:016x}", row.fingerprint))});
  }
  return fields;
}

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
  return fmt::format("  {}: median {:.1f} %, 90th percentile {:.1f} % ({} rows)", name,
                     log_percent(error.median), log_percent(error.p90), error.rows);
}

void add_summary(const ComparisonSummary& summary, std::vector<std::string>& lines) {
  if (!summary.largest) {
    lines.emplace_back("Error: no size of the measured table was simulated");
    return;
  }
  lines.emplace_back("Error of the predicted time against the measured:");
  if (summary.small.rows > 0) {
    lines.push_back(regime_text("below 64 KiB", summary.small));
  }
  if (summary.large.rows > 0) {
    lines.push_back(regime_text("64 KiB and more", summary.large));
  }
  lines.push_back(fmt::format("  largest size, {}: {:+.1f} %", to_string(summary.largest->size),
                              summary.largest->relative_error() * 100.0));
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

Json regime_json(const RegimeError& error) {
  if (error.rows == 0) {
    return {{"rows", 0}, {"median_error_percent", nullptr}, {"p90_error_percent", nullptr}};
  }
  return {{"rows", error.rows},
          {"median_error_percent", log_percent(error.median)},
          {"p90_error_percent", log_percent(error.p90)}};
}

Json measured_json(const CollectiveReport& report, const ComparisonSummary& summary) {
  Json measured{{"name", *report.measured_name},
                {"source", report.measured_source ? Json(*report.measured_source) : Json(nullptr)},
                {"below_64_kib", regime_json(summary.small)},
                {"from_64_kib", regime_json(summary.large)},
                {"largest_size", nullptr}};
  if (summary.largest) {
    measured["largest_size"] = {{"size_bytes", summary.largest->size.count()},
                                {"error_percent", summary.largest->relative_error() * 100.0}};
  }
  return measured;
}

// One tier of one row.
struct RowVolume {
  Bytes size = {};
  std::string algorithm = {};
  std::string protocol = {};
  TierVolume volume = {};
};

Table volume_table(const std::vector<CollectiveRow>& rows) {
  std::vector<RowVolume> all;
  for (const CollectiveRow& row : rows) {
    for (const TierVolume& volume : row.volumes) {
      all.push_back({row.size, row.algorithm, row.protocol, volume});
    }
  }
  return table_of(all, [](const RowVolume& each) {
    std::vector<Field> fields{
        {column("size", "size_bytes"), {short_size(each.size), each.size.count()}},
        {column("algorithm", "algorithm", Align::Left), Cell::of(each.algorithm)},
        {column("protocol", "protocol", Align::Left), Cell::of(each.protocol)}};
    for (Field& field : tier_fields(each.volume)) {
      fields.push_back(std::move(field));
    }
    return fields;
  });
}

// The figures that the page shows large.
void add_cards(const CollectiveReport& report, Document& document) {
  document.add_card("ranks", std::to_string(report.ranks));
  document.add_card("nodes", std::to_string(report.node_gpus.size()));
  if (report.rows.empty()) {
    return;
  }
  const CollectiveRow& max = *std::max_element(
      report.rows.begin(), report.rows.end(),
      [](const CollectiveRow& a, const CollectiveRow& b) { return a.busbw_gbps < b.busbw_gbps; });
  const std::string band =
      max.interval
          ? fmt::format(" ({:.1f} to {:.1f})", max.busbw_gbps * (max.time / max.interval->high),
                        max.busbw_gbps * (max.time / max.interval->low))
          : "";
  document.add_card("most bus bandwidth", fmt::format("{:.1f} GB/s{}", max.busbw_gbps, band));
  document.add_card("at", fmt::format("{}, {}", to_string(max.size), max.algorithm));
  const CollectiveRow& last = report.rows.back();
  const std::string interval = last.interval
                                   ? fmt::format(" ({} to {})", short_time(last.interval->low),
                                                 short_time(last.interval->high))
                                   : "";
  document.add_card("time of " + to_string(last.size), short_time(last.time) + interval);
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

Document document_of(const CollectiveReport& report) {
  const std::string operation(to_string(report.operation));
  Document document{
      .title = fmt::format("{} on {}", operation, report.cluster),
      .subtitle = fmt::format("Predicted by Trainyard: {} ranks, runtime {}, fidelity {}",
                              report.ranks, report.runtime, report.fidelity),
      .heading = {fmt::format("Collective test starting: {}_perf", operation),
                  fmt::format("Simulated by Trainyard: cluster {}, runtime {}, fidelity {}",
                              report.cluster, report.runtime, report.fidelity),
                  fmt::format("ranks {} nodes {} gpus_per_node {}", report.ranks,
                              report.node_gpus.size(), server_runs_text(report.node_gpus))},
      .estimates = report.estimates,
      .notes = report.notes};
  if (report.measured_name) {
    document.heading.push_back(fmt::format("Measured: {} ({})", *report.measured_name,
                                           report.measured_source.value_or("source unknown")));
  }
  document.heading.emplace_back();
  document.add("operation", operation);
  document.add("cluster", report.cluster);
  document.add("runtime", report.runtime);
  document.add("fidelity", report.fidelity);
  document.add("ranks", std::int64_t{report.ranks});
  document.add("nodes", static_cast<std::int64_t>(report.node_gpus.size()));
  document.add_detail("gpus_per_node", node_gpus_json(report.node_gpus));
  const Layout layout(report);
  const std::vector<const CollectiveRow*> rows = answers(report, layout.has_several);
  double busbw = 0.0;
  for (const CollectiveRow* const row : rows) {
    busbw += row->busbw_gbps / static_cast<double>(rows.size());
  }
  document.add("average_busbw_gb_per_s", busbw);
  NamedTable table{
      .key = "rows",
      .table =
          table_of(report.rows, [&](const auto& row) { return fields_of(report, layout, row); }),
      .remarks = {fmt::format("Avg bus bandwidth    : {:g}", busbw)},
      .mark = HeaderMark::Hash};
  if (report.measured_name) {
    const ComparisonSummary summary = error_summary(rows);
    document.add_detail("measured", measured_json(report, summary));
    add_summary(summary, table.remarks);
  }
  if (layout.has_several) {
    Json list = Json::array();
    for (const Crossover& each : crossovers(report.rows)) {
      list.push_back({{"from_bytes", each.size.count()}, {"algorithm", each.algorithm}});
    }
    document.add_detail("crossovers", std::move(list));
  }
  if (!rows.empty() && !rows.back()->volumes.empty()) {
    table.remarks.push_back(fmt::format("Bytes on links, {} by {}: {}",
                                        to_string(rows.back()->size), rows.back()->algorithm,
                                        volumes_text(rows.back()->volumes)));
  }
  document.add(std::move(table));
  document.add_table("Bytes on links, by tier", volume_table(report.rows),
                     Shown::Json | Shown::Page, "volumes");
  document.add(report.inputs);
  add_cards(report, document);
  return document;
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
