// SPDX-License-Identifier: Apache-2.0
#include "report/results/groups_report.h"

#include <spdlog/fmt/fmt.h>

namespace trainyard {
namespace {

Cell microseconds_cell(SimTime time) {
  return Cell::number(time.microseconds(), 2);
}

Table rows_table(const GroupsReport& report) {
  return table_of(report.rows, [](const GroupRow& row) {
    const double seconds = row.time().seconds();
    const double algbw =
        seconds > 0.0 ? static_cast<double>(row.size.count()) / seconds / 1e9 : 0.0;
    return std::vector<Field>{
        {column("group", "group", Align::Left), Cell::of(row.group)},
        {column("ranks", "ranks", Align::Left), Cell::of(row.ranks)},
        {column("of", "rank_count"), Cell::count(row.count)},
        {column("operation", "operation", Align::Left), Cell::of(to_string(row.operation))},
        {column("size", "size_bytes", Align::Right, "(B)"), Cell::of(row.size.count())},
        {column("algorithm", "algorithm", Align::Left), Cell::of(row.algorithm)},
        {column("protocol", "protocol", Align::Left), Cell::of(row.protocol)},
        {column("channels", "channels"), Cell::count(row.channels)},
        {column("start", "start_us", Align::Right, "(us)"), microseconds_cell(row.start)},
        {column("end", "end_us", Align::Right, "(us)"), microseconds_cell(row.end)},
        {column("time", "time_us", Align::Right, "(us)"), microseconds_cell(row.time())},
        {column("alone", "alone_us", Align::Right, "(us)"), microseconds_cell(row.alone)},
        {column("slowdown", "slowdown"),
         row.alone > SimTime() ? Cell::number(row.time() / row.alone, 3) : Cell::none()},
        {column("algbw", "algbw_gb_per_s", Align::Right, "(GB/s)"), Cell::number(algbw, 2)},
        {column("busbw", "busbw_gb_per_s", Align::Right, "(GB/s)"),
         Cell::number(algbw * bus_factor(row.operation, row.count), 2)}};
  });
}

Table runs_table(const GroupsReport& report) {
  return table_of(report.runs, [](const GroupsRun& run) {
    return std::vector<Field>{
        {column("size", "size_bytes", Align::Right, "(B)"),
         run.size ? Cell::of(run.size->count()) : Cell::none()},
        {column("makespan", "makespan_us", Align::Right, "(us)"), microseconds_cell(run.makespan)},
        {column("transfers", "transfers"),
         run.transfers ? Cell::count(*run.transfers) : Cell::none()},
        {column("fingerprint", "fingerprint"),
         run.fingerprint ? Cell::of(fmt::format("{:016x}", *run.fingerprint)) : Cell::none()}};
  });
}

}  // namespace

Document document_of(const GroupsReport& report) {
  const std::size_t groups = report.runs.empty() ? 0 : report.rows.size() / report.runs.size();
  Document document{
      .title = fmt::format("Communicators side by side on {}", report.cluster),
      .subtitle = fmt::format("Predicted by Trainyard: runtime {}, fidelity {}", report.runtime,
                              report.fidelity),
      .heading = {fmt::format("Simulated by Trainyard: cluster {}, runtime {}, fidelity {}",
                              report.cluster, report.runtime, report.fidelity),
                  fmt::format("communicators {}, on one network at once", groups), ""},
      .estimates = report.estimates,
      .notes = report.notes};
  document.add("cluster", report.cluster);
  document.add("runtime", report.runtime);
  document.add("fidelity", report.fidelity);
  document.add(NamedTable{.key = "rows", .table = rows_table(report)});
  document.add(NamedTable{.key = "runs", .table = runs_table(report), .is_apart = true});
  document.add(report.inputs);
  return document;
}

}  // namespace trainyard
