// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/transfer_verbs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/transfer_pair.h"
#include "report/formats/table.h"

namespace trainyard {
namespace {

struct VerbRow {
  Bytes size;
  VerbRate rate;
  SimTime latency;
  SimTime registration;
  [[nodiscard]] double gigabytes_per_second() const {
    return rate.messages_per_second * static_cast<double>(size.count()) / 1e9;
  }
};

Table verb_table(const std::vector<VerbRow>& rows, bool registers) {
  return trainyard::table_of(rows, [&](const VerbRow& row) -> std::vector<Field> {
    const double rate = row.gigabytes_per_second();
    const double millions = row.rate.messages_per_second / 1e6;
    const double latency = row.latency.microseconds();
    std::vector<Field> fields{
        {{.name = "size", .key = "size_bytes", .unit = "(B)"}, Cell::of(row.size.count())},
        {{.name = "rate", .key = "rate_gb_per_s", .unit = "(GB/s)"}, Cell::number(rate, 3)},
        {{.name = "messages", .key = "messages_million_per_s", .unit = "(Mpps)"},
         Cell::number(millions, 6)},
        {{.name = "latency", .key = "latency_us", .unit = "(us)"}, Cell::number(latency, 3)},
        {{.name = "limit", .key = "limit", .align = Align::Left}, Cell::of(row.rate.limit)}};
    if (registers) {
      fields.push_back({{.name = "registration", .key = "registration_us", .unit = "(us)"},
                        Cell::number(row.registration.microseconds(), 3)});
    }
    return fields;
  });
}

std::string describe(const VerbSettings& settings) {
  const std::string_view connection = kConnections[static_cast<std::size_t>(settings.connection)];
  return fmt::format(
      "{}{}, {} core{} with {} queue pair{}, {} request{} a doorbell, {}{}path MTU {}",
      kVerbs[static_cast<std::size_t>(settings.verb)],
      settings.connection == Connection::Reliable ? "" : fmt::format(" on {}", connection),
      settings.cores, settings.cores == 1 ? "" : "s", settings.queue_pairs,
      settings.queue_pairs == 1 ? "" : "s", settings.batch, settings.batch == 1 ? "" : "s",
      settings.inline_limit ? fmt::format("up to {} inline, ", to_string(*settings.inline_limit))
                            : "",
      settings.events ? "events, " : "", settings.mtu.count());
}

}  // namespace

Options verb_options() {
  return {{"verb",
           "NAME",
           "messages of RDMA between two host memories instead, as perftest: write, read, "
           "send, or an atomic",
           {.choices = "write|read|send|fetch-and-add|compare-and-swap",
            .excludes = "matrix both-ways all-at-once fidelity"}},
          {"connection",
           "KIND",
           "with --verb: rc, reliable (the default); uc, unreliable, for write and send; ud, "
           "datagrams, for send",
           {.choices = "rc|uc|ud", .needs = "verb"}},
          {"events",
           "",
           "with --verb: cores sleep until an interrupt tells of a completion, instead of polling",
           {.needs = "verb"}},
          {"register",
           "",
           "with --verb: what it takes to register the buffer of a message before its first use",
           {.needs = "verb"}},
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
           "with --verb: greatest payload inside a request, 0 to 220, or 188 with ud (default: 0 "
           "for rates, all of that for latencies)",
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
          .mtu = mtu,
          .connection = static_cast<Connection>(reader.choice("connection")),
          .events = reader.given("events"),
          .registers = reader.given("register")};
}

std::string default_sizes(const VerbSettings& settings) {
  const Bytes last = std::min(greatest_message(settings), Bytes(8'388'608));
  return last == kAtomicBytes ? "8" : fmt::format("2..{}", last.count());
}

Document verb_document(const Cluster& cluster, const Transfer& pair, const VerbSettings& settings,
                       std::span<const Bytes> sizes) {
  check_verb(settings, sizes);
  const VerbPath path = verb_path(cluster, pair.source, pair.target);
  std::vector<VerbRow> rows;
  for (const Bytes size : sizes) {
    rows.push_back({.size = size,
                    .rate = verb_rate(path, settings, size),
                    .latency = verb_latency(path, settings, size),
                    .registration = registration_time(size)});
  }
  Document document = pair_document(cluster, pair, describe(settings));
  document.add("verb", std::string(kVerbs[static_cast<std::size_t>(settings.verb)]));
  document.add(NamedTable{.key = "rows", .table = verb_table(rows, settings.registers)});
  return document;
}

}  // namespace trainyard
