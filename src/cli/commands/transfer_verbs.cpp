// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/transfer_verbs.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "report/formats/table.h"

namespace trainyard {
namespace {

struct VerbRow {
  Bytes size;
  VerbRate rate;
  SimTime latency;
  [[nodiscard]] double gigabytes_per_second() const {
    return rate.messages_per_second * static_cast<double>(size.count()) / 1e9;
  }
};

Table verb_table(const std::vector<VerbRow>& rows) {
  return trainyard::table_of(rows, [](const VerbRow& row) -> std::vector<Field> {
    const double rate = row.gigabytes_per_second();
    const double millions = row.rate.messages_per_second / 1e6;
    const double latency = row.latency.microseconds();
    return {{{.name = "size", .key = "size_bytes", .unit = "(B)"}, Cell::of(row.size.count())},
            {{.name = "rate", .key = "rate_gb_per_s", .unit = "(GB/s)"}, Cell::number(rate, 3)},
            {{.name = "messages", .key = "messages_million_per_s", .unit = "(Mpps)"},
             Cell::number(millions, 6)},
            {{.name = "latency", .key = "latency_us", .unit = "(us)"}, Cell::number(latency, 3)},
            {{.name = "limit", .key = "limit", .align = Align::Left}, Cell::of(row.rate.limit)}};
  });
}

std::string describe(const VerbSettings& settings) {
  return fmt::format(
      "{}, {} core{} with {} queue pair{}, {} request{} a doorbell, {}path MTU {}",
      kVerbs[static_cast<std::size_t>(settings.verb)], settings.cores,
      settings.cores == 1 ? "" : "s", settings.queue_pairs, settings.queue_pairs == 1 ? "" : "s",
      settings.batch, settings.batch == 1 ? "" : "s",
      settings.inline_limit ? fmt::format("up to {} inline, ", to_string(*settings.inline_limit))
                            : "",
      settings.mtu.count());
}

}  // namespace

Options verb_options() {
  return {{"verb",
           "NAME",
           "messages of RDMA between two host memories instead, as perftest: write, read, "
           "send",
           {.choices = "write|read|send", .excludes = "matrix both-ways all-at-once fidelity"}},
          {"qps", "N", "with --verb: queue pairs of each core (default: 1)", {.needs = "verb"}},
          {"cores",
           "N",
           "with --verb: cores that post requests; with --tcp: cores of either end (default: "
           "1)",
           {.needs = "verb|tcp"}},
          {"batch",
           "N",
           "with --verb: requests for each doorbell (default: 1)",
           {.needs = "verb", .synonyms = "post-list"}},
          {"inline",
           "BYTES",
           "with --verb: greatest payload inside a request, 0 to 220 (default: 0 for rates, "
           "220 for latencies)",
           {.needs = "verb"}}};
}

VerbSettings read_verb_settings(const OptionReader& reader, Bytes mtu) {
  constexpr int kMost = 16'384;  // Far beyond what adapters or programs have of any of these.
  const auto count = [&](std::string_view name) {
    return reader.integer(name, 1, kMost).value_or(1);
  };
  const std::optional<int> inlined =
      reader.integer("inline", 0, static_cast<int>(kGreatestInline.count()));
  return {.verb = static_cast<Verb>(reader.choice("verb")),
          .queue_pairs = count("qps"),
          .cores = count("cores"),
          .batch = count("batch"),
          .inline_limit = inlined ? std::optional(Bytes(*inlined)) : std::nullopt,
          .mtu = mtu};
}

Document verb_document(const Cluster& cluster, const Transfer& pair, const VerbSettings& settings,
                       std::span<const Bytes> sizes) {
  const VerbPath path = verb_path(cluster, pair.source, pair.target);
  std::vector<VerbRow> rows;
  for (const Bytes size : sizes) {
    rows.push_back({.size = size,
                    .rate = verb_rate(path, settings, size),
                    .latency = verb_latency(path, settings, size)});
  }
  const std::string& from = cluster.topology.node(pair.source).name;
  const std::string& to = cluster.topology.node(pair.target).name;
  Document document{.heading = {fmt::format("Simulated by Trainyard: cluster {}, {} to {}, {}",
                                            cluster.name, from, to, describe(settings))}};
  document.add("cluster", cluster.name);
  document.add("from", from);
  document.add("to", to);
  document.add("verb", std::string(kVerbs[static_cast<std::size_t>(settings.verb)]));
  document.add(NamedTable{.key = "rows", .table = verb_table(rows)});
  return document;
}

}  // namespace trainyard
