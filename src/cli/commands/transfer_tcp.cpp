// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/transfer_tcp.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/transfer_pair.h"
#include "report/formats/table.h"

namespace trainyard {
namespace {

// In the order of ZeroCopy.
constexpr std::array<std::string_view, 3> kZeroCopies{"off", "on", "huge-pages"};

struct TcpRow {
  Bytes size;
  TcpRate rate;
  SimTime latency;
  TcpCpu cpu;
};

Table tcp_table(const std::vector<TcpRow>& rows, Bytes payload) {
  const double packet = static_cast<double>(payload.count());
  return trainyard::table_of(rows, [&](const TcpRow& row) -> std::vector<Field> {
    return {{{.name = "size", .key = "size_bytes", .unit = "(B)"}, Cell::of(row.size.count())},
            {{.name = "rate", .key = "rate_gb_per_s", .unit = "(GB/s)"},
             Cell::number(row.rate.bytes_per_second / 1e9, 3)},
            {{.name = "latency", .key = "latency_us", .unit = "(us)"},
             Cell::number(row.latency.microseconds(), 3)},
            {{.name = "sender", .key = "sender_ns_per_byte", .unit = "(ns/B)"},
             Cell::number(row.cpu.sender, 4)},
            {{.name = "receiver", .key = "receiver_ns_per_byte", .unit = "(ns/B)"},
             Cell::number(row.cpu.receiver(), 4)},
            {{.name = "sender", .key = "sender_ns_per_packet", .unit = "(ns/packet)"},
             Cell::number(row.cpu.sender * packet, 0)},
            {{.name = "receiver", .key = "receiver_ns_per_packet", .unit = "(ns/packet)"},
             Cell::number(row.cpu.receiver() * packet, 0)},
            {{.name = "limit", .key = "limit", .align = Align::Left}, Cell::of(row.rate.limit)}};
  });
}

std::string_view word_of(ZeroCopy zero_copy) {
  return kZeroCopies[static_cast<std::size_t>(zero_copy)];
}

std::string describe(const SocketSettings& settings) {
  return fmt::format("TCP, {} socket{} and {} core{} at either end, MTU {}, TSO {}, GRO {}{}",
                     settings.sockets, settings.sockets == 1 ? "" : "s", settings.cores,
                     settings.cores == 1 ? "" : "s", settings.mtu.count(),
                     settings.tso ? "on" : "off", settings.gro ? "on" : "off",
                     settings.zero_copy == ZeroCopy::Off
                         ? ""
                         : fmt::format(", zero copy {}", word_of(settings.zero_copy)));
}

}  // namespace

Options tcp_options() {
  return {
      {"tcp",
       "",
       "messages over sockets of the kernel between two host memories instead, as iperf3 and "
       "netperf",
       {.excludes = "matrix both-ways all-at-once fidelity verb"}},
      {"sockets", "N", "with --tcp: sockets, each with a thread (default: 1)", {.needs = "tcp"}},
      {"tso",
       "on|off",
       "with --tcp: segments are cut by the adapter (the default) or by the kernel",
       {.choices = "on|off", .needs = "tcp"}},
      {"gro",
       "on|off",
       "with --tcp: packets are joined to segments (the default) or not",
       {.choices = "on|off", .needs = "tcp"}},
      {"zero-copy",
       "KIND",
       "with --tcp: the sender copies (off, the default), or pins its pages: on, of 4 KiB; "
       "huge-pages, of 2 MiB",
       {.choices = "off|on|huge-pages", .needs = "tcp"}}};
}

SocketSettings read_tcp_settings(const OptionReader& reader) {
  constexpr int kMost = 16'384;  // Far beyond what hosts have.
  return {.sockets = reader.integer("sockets", 1, kMost).value_or(1),
          .cores = reader.integer("cores", 1, kMost).value_or(1),
          .mtu = Bytes(reader
                           .integer("mtu", static_cast<int>(kLeastTcpMtu.count()),
                                    static_cast<int>(kGreatestTcpMtu.count()))
                           .value_or(1500)),  // Ethernet's (IEEE 802.3).
          .tso = reader.word("tso") == "on",
          .gro = reader.word("gro") == "on",
          .zero_copy = static_cast<ZeroCopy>(reader.choice("zero-copy"))};
}

Document tcp_document(const Cluster& cluster, const Transfer& pair, const SocketSettings& settings,
                      std::span<const Bytes> sizes) {
  const VerbPath path = verb_path(cluster, pair.source, pair.target, "--tcp");
  std::vector<TcpRow> rows;
  for (const Bytes size : sizes) {
    rows.push_back({.size = size,
                    .rate = tcp_rate(path, settings, size),
                    .latency = tcp_latency(path, settings, size),
                    .cpu = tcp_cpu(settings, size)});
  }
  Document document = pair_document(cluster, pair, describe(settings));
  document.add("tcp", describe(settings));
  document.add(NamedTable{.key = "rows", .table = tcp_table(rows, tcp_payload(settings))});
  return document;
}

}  // namespace trainyard
