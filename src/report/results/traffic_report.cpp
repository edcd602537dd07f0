// SPDX-License-Identifier: Apache-2.0
#include "report/results/traffic_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>

#include "sim/check.h"

namespace trainyard {
namespace {

Cell link_name(const Topology& topology, LinkId id) {
  const Link& link = topology.link(id);
  return Cell::of(
      fmt::format("{} -> {}", topology.node(link.source).name, topology.node(link.target).name));
}

// The six columns of a distribution.
void add_fields(const std::optional<Distribution>& values, const std::string& key,
                const std::string& key_unit, const char* unit, std::vector<Field>& fields) {
  const Distribution all = values.value_or(Distribution());
  const auto add = [&](const char* name, const char* name_in_key, double value) {
    fields.push_back({{.name = name, .key = key + "_" + name_in_key + key_unit, .unit = unit},
                      values ? Cell::number(value, 3) : Cell::none()});
  };
  add("mean", "mean", all.mean);
  add("p50", "p50", all.p50);
  add("p90", "p90", all.p90);
  add("p99", "p99", all.p99);
  add("p99.9", "p99_9", all.p999);
  add("max", "max", all.max);
}

// Times, then slowdowns and goodput, which people see as a table each: with `part` the columns of
// the other one are for programs.
enum class Part { Times, Shares };

Table stats_table(const TrafficSummary& summary, Part part) {
  std::vector<TrafficStats> groups = summary.groups;
  groups.push_back(summary.all);
  return table_of(groups, [&](const TrafficStats& stats) {
    std::vector<Field> fields{
        {column("group", "group", Align::Left), Cell::of(stats.name)},
        {column("flows", "flows"), Cell::count(stats.flows)},
        {column("unfinished", "unfinished"), Cell::count(stats.unfinished)},
        {column("size", "bytes", Align::Right, "(B)"), Cell::count(stats.bytes.count())}};
    const auto add = [&](const char* name, const char* key, const char* unit, double value) {
      fields.push_back({column(name, key, Align::Right, unit),
                        stats.fct_us ? Cell::number(value, 3) : Cell::none()});
    };
    add("makespan", "makespan_us", "(us)", stats.makespan.microseconds());
    add_fields(stats.fct_us, "fct", "_us", "(us)", fields);
    const std::size_t times = fields.size();
    add_fields(stats.slowdown, "slowdown", "", "", fields);
    add("least", "goodput_least_gbit_per_s", "(Gb/s)", stats.goodput_min_gbps);
    add("mean", "goodput_mean_gbit_per_s", "(Gb/s)", stats.goodput_mean_gbps);
    add("most", "goodput_most_gbit_per_s", "(Gb/s)", stats.goodput_max_gbps);
    fields.push_back({column("fairness", "jain_fairness"), Cell::number(stats.fairness, 4)});
    for (std::size_t index = 1; index < fields.size(); ++index) {
      if ((index < times) != (part == Part::Times)) {
        fields[index].column.shown = Shown::Programs;
      }
    }
    if (summary.all.unfinished == 0) {
      fields[2].column.shown = Shown::Programs;
    }
    return fields;
  });
}

Table size_table(const TrafficSummary& summary) {
  std::vector<std::pair<std::string, SizeBin>> bins;
  const auto add = [&](const TrafficStats& stats) {
    for (const SizeBin& bin : stats.bins) {
      bins.emplace_back(stats.name, bin);
    }
  };
  std::for_each(summary.groups.begin(), summary.groups.end(), add);
  if (summary.groups.size() > 1) {
    add(summary.all);
  }
  return table_of(bins, [](const std::pair<std::string, SizeBin>& each) {
    const auto& [group, bin] = each;
    std::vector<Field> fields{
        {column("group", "group", Align::Left), Cell::of(group)},
        {column("from", "from_bytes"), {to_string(bin.min), bin.min.count()}},
        {column("below", "below_bytes"),
         bin.below ? Cell{to_string(*bin.below), bin.below->count()} : Cell::none()},
        {column("flows", "flows"), Cell::count(bin.flows)}};
    add_fields(bin.slowdown, "slowdown", "", "", fields);
    return fields;
  });
}

Table link_table(const TrafficSummary& summary, const Topology& topology) {
  Table table({column("link", "link", Align::Left), column("kind", "kind", Align::Left),
               column("rate", "rate_gbit_per_s", Align::Right, "(Gb/s)"),
               column("size", "bytes", Align::Right, "(B)"), column("utilisation", "utilisation")});
  for (const LinkLoad& load : summary.links) {
    const LinkSpec& spec = topology.link(load.link).spec;
    table.add_row({link_name(topology, load.link), Cell::of(to_string(spec.kind)),
                   Cell::number(static_cast<double>(spec.bandwidth.bits_per_second()) / 1e9, 2),
                   Cell::of(load.bytes.count()), Cell::number(load.utilisation, 4)});
  }
  return table;
}

// The figures that the page shows large.
void add_cards(const TrafficSummary& summary, Document& document) {
  const TrafficStats& all = summary.all;
  document.add_card("flows", std::to_string(all.flows));
  document.add_card("from the first start to the last end", short_time(summary.makespan));
  if (all.unfinished > 0) {
    document.add_card("never complete", std::to_string(all.unfinished));
  }
  if (all.fct_us) {
    document.add_card("median completion time", fmt::format("{:.4g} us", all.fct_us->p50));
    document.add_card("p99 completion time", fmt::format("{:.4g} us", all.fct_us->p99));
  }
  if (all.slowdown) {
    document.add_card("median slowdown", fmt::format("{:.3g}", all.slowdown->p50));
    document.add_card("99 % slowdown", fmt::format("{:.3g}", all.slowdown->p99));
  }
  if (all.fairness) {
    document.add_card("Jain's fairness", fmt::format("{:.4f}", *all.fairness));
  }
}

std::vector<Column> flow_columns(bool has_counters) {
  std::vector<Column> columns =
      key_columns({"flow", "group", "source", "target", "label", "bytes", "start_us", "end_us",
                   "fct_us", "alone_us", "slowdown"});
  if (has_counters) {
    const auto more = key_columns({"packets", "retransmitted", "timeouts", "cnps"});
    columns.insert(columns.end(), more.begin(), more.end());
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
          Cell::of("queue"),
          Cell::of(topology.node(link.source).name),
          Cell::of(topology.node(link.target).name),
          Cell::none(),
          Cell::of(sample.bytes.count()),
          Cell::yes_no(sample.is_paused),
          Cell::none(),
          Cell::none()};
}

std::vector<Cell> rate_cells(const Topology& topology, const RateSample& sample) {
  const auto gigabits = [](Bandwidth rate) {
    return Cell::number(static_cast<double>(rate.bits_per_second()) / 1e9, 3);
  };
  return {Cell::number(sample.time.microseconds(), 6),
          Cell::of("rate"),
          Cell::of(topology.node(sample.source).name),
          Cell::of(topology.node(sample.target).name),
          Cell::count(sample.connection.value()),
          Cell::none(),
          Cell::none(),
          gigabits(sample.limit),
          gigabits(sample.sent)};
}

// The columns of samples that only some transports have, and the cells of a sample in them.
struct WindowColumns {
  explicit WindowColumns(std::span<const RateSample> rates)
      : has_windows(std::ranges::any_of(
            rates, [](const RateSample& rate) { return rate.window_packets.has_value(); })),
        has_times(std::ranges::any_of(
            rates, [](const RateSample& rate) { return rate.smoothed_rtt.has_value(); })) {}

  void add_names(std::vector<Column>& columns) const {
    if (has_windows) {
      columns.push_back(column("window_packets", "window_packets"));
    }
    if (has_times) {
      columns.push_back(column("smoothed_rtt_us", "smoothed_rtt_us"));
    }
  }
  void add_cells(std::vector<Cell>& cells, const RateSample& rate) const {
    if (has_windows) {
      cells.push_back(Cell::number(rate.window_packets, 3));
    }
    if (has_times) {
      cells.push_back(rate.smoothed_rtt ? Cell::number(rate.smoothed_rtt->microseconds(), 3)
                                        : Cell::none());
    }
  }

  bool has_windows;
  bool has_times;
};

}  // namespace

Document document_of(const TrafficReport& report, const Topology& topology) {
  const TrafficSummary& summary = report.summary;
  Document document{
      .title = fmt::format("{} on {}", report.traffic, report.cluster),
      .subtitle = fmt::format("Flows, predicted by Trainyard: fidelity {}, routing {}",
                              report.fidelity, report.routing),
      .heading = {fmt::format("Simulated by Trainyard: traffic {}; cluster {}, fidelity {}",
                              report.traffic, report.cluster, report.fidelity),
                  fmt::format("{} flows, {} bytes, makespan {:.3f} us", summary.all.flows,
                              summary.all.bytes.count(), summary.makespan.microseconds()),
                  ""},
      .estimates = report.estimates,
      .notes = report.notes};
  document.add("traffic", report.traffic);
  document.add("cluster", report.cluster);
  document.add("fidelity", report.fidelity);
  document.add("routing", report.routing);
  document.add_detail("routing_seed", report.seed_of_routing);
  document.add("makespan_us", summary.makespan.microseconds());
  add_cards(summary, document);
  document.add(NamedTable{.key = "groups",
                          .table = stats_table(summary, Part::Times),
                          .title = "Flow completion times"});
  document.add_table("Slowdown against running alone; goodput of a source; fairness of equal flows",
                     stats_table(summary, Part::Shares));
  document.add_table("Slowdown by size of flows", size_table(summary),
                     summary.all.bins.size() > 1 ? Shown::All : Shown::Programs, "sizes");
  document.add_table("Fullest links", link_table(summary, topology), Shown::All, "links");
  document.add(report.inputs);
  document.add("fingerprint", fmt::format("{:016x}", report.fingerprint));
  return document;
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
  std::vector<Column> columns =
      key_columns({"time_us", "kind", "from", "to", "connection", "queue_bytes", "paused",
                   "limit_gbit_per_s", "sent_gbit_per_s"});
  const WindowColumns windows(samples.rates);
  windows.add_names(columns);
  LongCsv csv(std::move(columns));
  auto rate = samples.rates.begin();
  const auto add_row = [&](std::vector<Cell> cells, const RateSample& of) {
    windows.add_cells(cells, of);
    csv.add_row(std::move(cells));
  };
  const auto add_rates = [&](SimTime time) {
    for (; rate != samples.rates.end() && rate->time <= time; ++rate) {
      add_row(rate_cells(topology, *rate), *rate);
    }
  };
  for (const QueueSample& queue : samples.queues) {
    add_rates(queue.time - picoseconds(1));
    add_row(queue_cells(topology, queue), RateSample{});
  }
  add_rates(SimTime::max());
  return csv.take();
}

std::string counters_csv(const Topology& topology, std::span<const PortCounters> counters) {
  Table table(key_columns({"port", "to", "packets", "wire_bytes", "ecn_marked", "dropped",
                           "dropped_no_room", "dropped_bit_errors", "dropped_link_down",
                           "dropped_in_storms", "pause_frames_sent", "pause_frames_received",
                           "pause_storms", "paused_us", "starved_us", "queue_max_bytes",
                           "queue_p50_bytes", "queue_p99_bytes"}));
  for (const PortCounters& port : counters) {
    const Link& link = topology.link(port.link);
    table.add_row(
        {Cell::of(topology.node(link.source).name), Cell::of(topology.node(link.target).name),
         Cell::count(port.packets), Cell::of(port.bytes.count()), Cell::count(port.ecn_marked),
         Cell::count(port.dropped), Cell::count(port.no_room), Cell::count(port.bit_errors),
         Cell::count(port.link_down), Cell::count(port.in_storms),
         Cell::count(port.pause_frames_sent), Cell::count(port.pause_frames_received),
         Cell::count(port.storms), Cell::number(port.paused.microseconds(), 6),
         Cell::number(port.starved.microseconds(), 6), Cell::of(port.queue_max.count()),
         bytes_if(port.queue_p50), bytes_if(port.queue_p99)});
  }
  return render_csv(table);
}

}  // namespace trainyard
