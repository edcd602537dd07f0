// SPDX-License-Identifier: Apache-2.0
#include "report/results/traffic_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "report/formats/json.h"
#include "sim/check.h"

namespace trainyard {
namespace {

enum class Part { Times, Shares, Everything };

Column column(const char* name, const char* key, const char* unit, Align align = Align::Right) {
  return {.name = name, .key = key, .align = align, .unit = unit, .min_width = 0};
}

Cell link_name(const Topology& topology, LinkId id) {
  const Link& link = topology.link(id);
  return Cell::of(
      fmt::format("{} -> {}", topology.node(link.source).name, topology.node(link.target).name));
}

// The six columns of a distribution.
void add_columns(std::vector<Column>& columns, const std::string& key, const std::string& key_unit,
                 const char* unit) {
  constexpr std::array<std::array<const char*, 2>, 6> kNames{{{"mean", "mean"},
                                                              {"p50", "p50"},
                                                              {"p90", "p90"},
                                                              {"p99", "p99"},
                                                              {"p99.9", "p99_9"},
                                                              {"max", "max"}}};
  for (const auto& [name, name_in_key] : kNames) {
    columns.push_back(column(name, "", unit));
    columns.back().key = fmt::format("{}_{}{}", key, name_in_key, key_unit);
  }
}

void add_cells(std::vector<Cell>& cells, const std::optional<Distribution>& values, int decimals) {
  if (!values) {
    cells.insert(cells.end(), 6, Cell::none());
    return;
  }
  for (const double value :
       {values->mean, values->p50, values->p90, values->p99, values->p999, values->most}) {
    cells.push_back(Cell::number(value, decimals));
  }
}

Table stats_table(const TrafficSummary& summary, Part part) {
  const bool has_times = part != Part::Shares;
  const bool has_shares = part != Part::Times;
  const bool has_unfinished = part == Part::Everything || summary.all.unfinished > 0;
  std::vector<Column> columns{column("group", "group", "", Align::Left)};
  if (has_times) {
    columns.push_back(column("flows", "flows", ""));
    if (has_unfinished) {
      columns.push_back(column("unfinished", "unfinished", ""));
    }
    columns.push_back(column("size", "bytes", "(B)"));
    columns.push_back(column("makespan", "makespan_us", "(us)"));
    add_columns(columns, "fct", "_us", "(us)");
  }
  if (has_shares) {
    add_columns(columns, "slowdown", "", "");
    columns.push_back(column("least", "goodput_least_gbit_per_s", "(Gb/s)"));
    columns.push_back(column("mean", "goodput_mean_gbit_per_s", "(Gb/s)"));
    columns.push_back(column("most", "goodput_most_gbit_per_s", "(Gb/s)"));
    columns.push_back(column("fairness", "jain_fairness", ""));
  }
  Table table(std::move(columns));
  const auto add = [&](const TrafficStats& stats) {
    std::vector<Cell> cells{Cell::of(stats.name)};
    if (has_times) {
      cells.push_back(Cell::count(stats.flows));
      if (has_unfinished) {
        cells.push_back(Cell::count(stats.unfinished));
      }
      cells.push_back(Cell::of(stats.bytes.count()));
      cells.push_back(stats.fct_us ? Cell::number(stats.makespan.microseconds(), 3) : Cell::none());
      add_cells(cells, stats.fct_us, 3);
    }
    if (has_shares) {
      add_cells(cells, stats.slowdown, 3);
      for (const double rate :
           {stats.goodput_least_gbps, stats.goodput_mean_gbps, stats.goodput_most_gbps}) {
        cells.push_back(stats.fct_us ? Cell::number(rate, 3) : Cell::none());
      }
      cells.push_back(stats.fairness ? Cell::number(*stats.fairness, 4) : Cell::none());
    }
    table.add_row(std::move(cells));
  };
  for (const TrafficStats& group : summary.groups) {
    add(group);
  }
  // The forms for programs always have it, so that they find it without counting groups.
  if (summary.groups.size() > 1 || part == Part::Everything) {
    add(summary.all);
  }
  return table;
}

Table size_table(const TrafficSummary& summary) {
  std::vector<Column> columns{column("group", "group", "", Align::Left),
                              column("from", "from_bytes", ""), column("below", "below_bytes", ""),
                              column("flows", "flows", "")};
  add_columns(columns, "slowdown", "", "");
  Table table(std::move(columns));
  const auto add = [&](const TrafficStats& stats) {
    for (const SizeBin& bin : stats.bins) {
      std::vector<Cell> cells{
          Cell::of(stats.name),
          {to_string(bin.least), bin.least.count()},
          bin.below ? Cell{to_string(*bin.below), bin.below->count()} : Cell::none(),
          Cell::count(bin.flows)};
      add_cells(cells, bin.slowdown, 3);
      table.add_row(std::move(cells));
    }
  };
  for (const TrafficStats& group : summary.groups) {
    add(group);
  }
  if (summary.groups.size() > 1) {
    add(summary.all);
  }
  return table;
}

Table link_table(const TrafficSummary& summary, const Topology& topology) {
  Table table({column("link", "link", "", Align::Left), column("kind", "kind", "", Align::Left),
               column("rate", "rate_gbit_per_s", "(Gb/s)"), column("size", "bytes", "(B)"),
               column("utilisation", "utilisation", "")});
  for (const LinkLoad& load : summary.links) {
    const LinkSpec& spec = topology.link(load.link).spec;
    table.add_row({link_name(topology, load.link), Cell::of(std::string(to_string(spec.kind))),
                   Cell::number(static_cast<double>(spec.bandwidth.bits_per_second()) / 1e9, 2),
                   Cell::of(load.bytes.count()), Cell::number(load.utilisation, 4)});
  }
  return table;
}

bool has_several_sizes(const TrafficSummary& summary) {
  return summary.all.bins.size() > 1;
}

std::string render_json(const TrafficReport& report, const Topology& topology) {
  Json root;
  root["traffic"] = report.traffic;
  root["cluster"] = report.cluster;
  root["fidelity"] = report.fidelity;
  root["routing"] = report.routing;
  root["routing_seed"] = report.seed_of_routing;
  root["makespan_us"] = report.summary.makespan.microseconds();
  root["groups"] = to_json(stats_table(report.summary, Part::Everything));
  root["sizes"] = to_json(size_table(report.summary));
  root["links"] = to_json(link_table(report.summary, topology));
  root["notes"] = report.notes;
  root["fingerprint"] = fmt::format("{:016x}", report.fingerprint);
  return to_text(root);
}

std::string render_tables(const TrafficReport& report, const Topology& topology) {
  const TrafficSummary& summary = report.summary;
  std::string text = fmt::format(
      "# Simulated by Trainyard: traffic {}; cluster {}, fidelity {}\n"
      "# {} flows, {} bytes, makespan {:.3f} us\n#\n# Flow completion times\n",
      report.traffic, report.cluster, report.fidelity, summary.all.flows, summary.all.bytes.count(),
      summary.makespan.microseconds());
  text += render_text(stats_table(summary, Part::Times));
  text += "#\n# Slowdown against running alone; goodput of a source; fairness of equal flows\n";
  text += render_text(stats_table(summary, Part::Shares));
  if (has_several_sizes(summary)) {
    text += "#\n# Slowdown by size of flows\n";
    text += render_text(size_table(summary));
  }
  if (!summary.links.empty()) {
    text += "#\n# Fullest links\n";
    text += render_text(link_table(summary, topology));
  }
  for (const std::string& note : report.notes) {
    text += fmt::format("# Note: {}\n", note);
  }
  return text;
}

std::vector<Column> flow_columns(bool has_counters) {
  std::vector<Column> columns;
  for (const char* key : {"flow", "group", "source", "target", "label", "bytes", "start_us",
                          "end_us", "fct_us", "alone_us", "slowdown"}) {
    columns.push_back(column(key, key, ""));
  }
  if (has_counters) {
    for (const char* key : {"packets", "retransmitted", "timeouts", "cnps"}) {
      columns.push_back(column(key, key, ""));
    }
  }
  return columns;
}

std::vector<Cell> flow_cells(const Topology& topology, const TrafficSpec& spec,
                             const FlowRecord& flow, std::size_t index) {
  const auto time = [](SimTime value) { return Cell{"", value.microseconds()}; };
  std::vector<Cell> cells{Cell::count(index),
                          Cell::of(spec.groups[flow.group].name),
                          Cell::of(topology.node(flow.source).name),
                          Cell::of(topology.node(flow.target).name),
                          Cell::count(flow.label),
                          Cell::of(flow.size.count()),
                          time(flow.start)};
  if (flow.end) {
    const SimTime fct = *flow.end - flow.start;
    cells.insert(cells.end(), {time(*flow.end), time(fct), time(flow.alone)});
    cells.push_back(flow.alone > SimTime() ? Cell::number(fct / flow.alone, 6) : Cell::none());
  } else {
    cells.insert(cells.end(), {Cell::none(), Cell::none(), time(flow.alone), Cell::none()});
  }
  return cells;
}

void add_counters(std::vector<Cell>& cells, const ConnectionCounters& counters) {
  for (const std::uint64_t value : {counters.packets, counters.retransmitted, counters.timeouts,
                                    counters.congestion_notifications}) {
    cells.push_back(Cell::count(value));
  }
}

Cell bytes_if(const std::optional<Bytes>& bytes) {
  return bytes ? Cell::of(bytes->count()) : Cell::none();
}

// Lines of CSV: the cells of a million at once would take a gigabyte.
class LongCsv {
 public:
  explicit LongCsv(std::vector<Column> columns)
      : columns_(std::move(columns)),
        text_(render_csv(Table(columns_))),
        header_(text_.size()),
        rows_(columns_) {}

  void add_row(std::vector<Cell> cells) {
    constexpr std::size_t kRowsAtOnce = 4096;
    rows_.add_row(std::move(cells));
    if (rows_.rows().size() == kRowsAtOnce) {
      flush();
    }
  }
  [[nodiscard]] std::string take() {
    flush();
    return std::move(text_);
  }

 private:
  void flush() {
    text_ += render_csv(rows_).substr(header_);
    rows_ = Table(columns_);
  }

  std::vector<Column> columns_;
  std::string text_;
  std::size_t header_;
  Table rows_;
};

std::vector<Cell> queue_cells(const Topology& topology, const QueueSample& sample) {
  const Link& link = topology.link(sample.link);
  return {Cell::number(sample.time.microseconds(), 6),
          Cell::of(std::string("queue")),
          Cell::of(topology.node(link.source).name),
          Cell::of(topology.node(link.target).name),
          Cell::none(),
          Cell::of(sample.bytes.count()),
          {sample.is_paused ? "yes" : "no", sample.is_paused},
          Cell::none(),
          Cell::none()};
}

std::vector<Cell> rate_cells(const Topology& topology, const RateSample& sample) {
  const auto gigabits = [](Bandwidth rate) {
    return Cell::number(static_cast<double>(rate.bits_per_second()) / 1e9, 3);
  };
  return {Cell::number(sample.time.microseconds(), 6),
          Cell::of(std::string("rate")),
          Cell::of(topology.node(sample.source).name),
          Cell::of(topology.node(sample.target).name),
          Cell::count(sample.connection.value()),
          Cell::none(),
          Cell::none(),
          gigabits(sample.limit),
          gigabits(sample.sent)};
}

}  // namespace

std::string render(const TrafficReport& report, const Topology& topology, Format format) {
  switch (format) {
    case Format::Csv:
      return render_csv(stats_table(report.summary, Part::Everything));
    case Format::Json:
      return render_json(report, topology);
    case Format::Table:
      return render_tables(report, topology);
  }
  CHECK(false, "unknown format");
}

std::vector<std::pair<std::string, Table>> traffic_tables(const TrafficReport& report,
                                                          const Topology& topology) {
  const TrafficSummary& summary = report.summary;
  std::vector<std::pair<std::string, Table>> tables{
      {"Times by group", stats_table(summary, Part::Times)},
      {"Slowdown and goodput by group", stats_table(summary, Part::Shares)}};
  if (has_several_sizes(summary)) {
    tables.emplace_back("Slowdown by group and size", size_table(summary));
  }
  if (!summary.links.empty()) {
    tables.emplace_back("Fullest links", link_table(summary, topology));
  }
  return tables;
}

std::string flows_csv(const Topology& topology, const TrafficSpec& spec,
                      std::span<const FlowRecord> flows,
                      std::span<const ConnectionCounters> counters) {
  CHECK(counters.empty() || counters.size() == flows.size(), "counters of other flows");
  LongCsv csv(flow_columns(!counters.empty()));
  for (std::size_t index = 0; index < flows.size(); ++index) {
    std::vector<Cell> cells = flow_cells(topology, spec, flows[index], index);
    if (!counters.empty()) {
      add_counters(cells, counters[index]);
    }
    csv.add_row(std::move(cells));
  }
  return csv.take();
}

std::string samples_csv(const Topology& topology, const PacketSamples& samples) {
  std::vector<Column> columns;
  for (const char* key : {"time_us", "kind", "from", "to", "connection", "queue_bytes", "paused",
                          "limit_gbit_per_s", "sent_gbit_per_s"}) {
    columns.push_back(column(key, key, ""));
  }
  LongCsv csv(std::move(columns));
  auto rate = samples.rates.begin();
  const auto add_rates = [&](SimTime time) {
    for (; rate != samples.rates.end() && rate->time <= time; ++rate) {
      csv.add_row(rate_cells(topology, *rate));
    }
  };
  for (const QueueSample& queue : samples.queues) {
    add_rates(queue.time - picoseconds(1));
    csv.add_row(queue_cells(topology, queue));
  }
  add_rates(SimTime::max());
  return csv.take();
}

std::string counters_csv(const Topology& topology, std::span<const PortCounters> counters) {
  std::vector<Column> columns;
  for (const char* key :
       {"port", "to", "packets", "wire_bytes", "ecn_marked", "dropped", "dropped_no_room",
        "dropped_bit_errors", "dropped_link_down", "dropped_in_storms", "pause_frames_sent",
        "pause_frames_received", "pause_storms", "paused_us", "starved_us", "queue_max_bytes",
        "queue_p50_bytes", "queue_p99_bytes"}) {
    columns.push_back(column(key, key, ""));
  }
  Table table(std::move(columns));
  for (const PortCounters& port : counters) {
    const Link& link = topology.link(port.link);
    table.add_row(
        {Cell::of(topology.node(link.source).name), Cell::of(topology.node(link.target).name),
         Cell::count(port.packets), Cell::of(port.bytes.count()), Cell::count(port.ecn_marked),
         Cell::count(port.dropped), Cell::count(port.no_room), Cell::count(port.bit_errors),
         Cell::count(port.link_down), Cell::count(port.in_storms),
         Cell::count(port.pause_frames_sent), Cell::count(port.pause_frames_received),
         Cell::count(port.storms), Cell::number(port.paused.microseconds(), 6),
         Cell::number(port.starved.microseconds(), 6), Cell::of(port.queue_most.count()),
         bytes_if(port.queue_p50), bytes_if(port.queue_p99)});
  }
  return render_csv(table);
}

}  // namespace trainyard
