// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/transfer_tcp.h"
#include "cli/commands/transfer_verbs.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "cli/common/packet_options.h"
#include "cli/common/runtime.h"
#include "network/traffic/transfers.h"
#include "report/formats/document.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster.h"
#include "topology/graph/path.h"

namespace trainyard {
namespace {
using namespace literals;

constexpr std::string_view kTransferExample = R"(
Devices have the names that trainyard topology --format json prints: server0/gpu0, server0/memory1,
server1/nic2. A rate is that of one transfer of --size, or of both with --both-ways; a latency is
the time of 8 bytes one way. Neither has what a driver or library adds. The status is 1 if a
transfer never was complete, such as for lost packets. With --verb rows are those of ib_write_bw,
ib_read_bw and ib_send_bw, with the latencies of ib_write_lat and its like beside them, and what
limits the rate. With --tcp they are those of iperf3 or netperf over sockets of the kernel: rate,
half a round trip, the CPU time of both ends for a byte and a packet, and the limit.

Examples:
  trainyard transfer --cluster rtx4090-pcie --from server0/gpu0 --to server0/gpu7 --both-ways
  trainyard transfer --cluster dgx-h100 --nodes 1 --matrix h2d --all-at-once
  trainyard transfer --cluster dgx-a100 --from server0/memory0 --to server1/memory0 --format json
  trainyard transfer --cluster azure-nd-a100-v4 --from server0/memory0 --to server1/memory0 \
      --verb write --size 8..8M --batch 16
  trainyard transfer --cluster azure-nd-a100-v4 --from server0/memory0 --to server1/memory0 \
      --tcp --mtu 9000 --sockets 4 --cores 8
)";

constexpr Bytes kLatencySize{8};

struct TransferRequest {
  Bytes size;
  bool both_ways = false;
  bool all_at_once = false;
  Fidelity fidelity = Fidelity::Flow;
  PacketRequest packet;
};

struct Row {
  Transfer transfer;
  std::string_view way;
  double gigabytes_per_second = 0.0;
  SimTime latency;
};

struct Result {
  std::vector<Row> rows;  // The transfers that were complete.
  std::optional<double> total_gigabytes_per_second;
  std::vector<std::string> complaints;
  TransferTimes last;  // Run, but for latencies.
};

NodeId device(const OptionReader& reader, const Topology& topology, std::string_view option) {
  const std::string name = reader.required_text(option);
  const auto node = topology.find(name);
  if (!node) {
    std::vector<std::string> names;
    for (std::uint32_t index = 0; index < topology.node_count(); ++index) {
      names.push_back(topology.node(NodeId(index)).name);
    }
    fail_option(option, "the name of a device, such as server0/gpu0", name, names);
  }
  return *node;
}

std::vector<Transfer> transfers_of(const OptionReader& reader, const Cluster& cluster,
                                   bool both_ways) {
  if (!reader.given("matrix")) {
    const Transfer one{.source = device(reader, cluster.topology, "from"),
                       .target = device(reader, cluster.topology, "to")};
    if (one.source == one.target) {
      fail_option("to", "another device than --from", reader.required_text("to"));
    }
    return {one};
  }
  const std::string kind = reader.word("matrix");
  if (kind == "p2p") {
    return peer_transfers(cluster, both_ways ? Pairs::Unordered : Pairs::Ordered);
  }
  return host_transfers(cluster, kind == "h2d" ? HostDirection::ToGpu : HostDirection::FromGpu);
}

std::string_view way_of(const Cluster& cluster, Routing& routing, const Transfer& transfer) {
  std::vector<LinkId> path;
  if (!routing.route(transfer.source, transfer.target, 0, path)) {
    return "none";  // Running it says so.
  }
  if (is_staged(cluster.topology, path)) {
    return "staged";
  }
  const bool in_fabric = std::ranges::any_of(path, [&](LinkId link) {
    return cluster.topology.link(link).spec.kind == LinkKind::Network;
  });
  return in_fabric ? "network" : "direct";
}

std::vector<Transfer> flows_of(std::span<const Transfer> transfers, bool both_ways) {
  return both_ways ? with_opposites(transfers)
                   : std::vector<Transfer>(transfers.begin(), transfers.end());
}

// Runs of one command, one after the other.
Result run_all(const Cluster& cluster, const std::vector<Transfer>& transfers,
               const TransferRequest& request) {
  Result result;
  const auto time = [&](const std::vector<Transfer>& some, Bytes size) {
    TransferTimes run = time_transfers(
        cluster, some,
        {.size = size, .fidelity = request.fidelity, .packet = request.packet.options});
    if (run.complaint) {
      result.complaints.push_back(*run.complaint);
    }
    return run;
  };
  if (request.all_at_once) {
    result.last = time(flows_of(transfers, request.both_ways), request.size);
    if (!result.last.complaint && transfers.size() > 1) {
      result.total_gigabytes_per_second =
          total_gigabytes_per_second(result.last.times, request.size);
    }
  }
  Routing routing(cluster.topology, cluster.routing);
  const std::size_t ways = request.both_ways ? 2 : 1;
  for (std::size_t index = 0; index < transfers.size(); ++index) {
    if (!request.all_at_once) {
      result.last =
          time(flows_of(std::span(&transfers[index], 1), request.both_ways), request.size);
    }
    const TransferTimes latency = time({transfers[index]}, kLatencySize);
    if (result.last.complaint || latency.complaint) {
      continue;
    }
    const auto own =
        std::span(result.last.times).subspan(request.all_at_once ? index * ways : 0, ways);
    result.rows.push_back({.transfer = transfers[index],
                           .way = way_of(cluster, routing, transfers[index]),
                           .gigabytes_per_second = total_gigabytes_per_second(own, request.size),
                           .latency = latency.times.front()});
  }
  return result;
}

Table table_of(const Cluster& cluster, const Result& result) {
  Table table({{.name = "from", .key = "from", .align = Align::Left},
               {.name = "to", .key = "to", .align = Align::Left},
               {.name = "way", .key = "way", .align = Align::Left},
               {.name = "rate", .key = "rate_gb_per_s", .unit = "(GB/s)"},
               {.name = "latency", .key = "latency_us", .unit = "(us)"}});
  for (const Row& row : result.rows) {
    table.add_row(
        {Cell::of(cluster.topology.node(row.transfer.source).name),
         Cell::of(cluster.topology.node(row.transfer.target).name),
         Cell::of(std::string(row.way)),
         {fmt::format("{:.2f}", row.gigabytes_per_second), row.gigabytes_per_second},
         {fmt::format("{:.3f}", row.latency.microseconds()), row.latency.microseconds()}});
  }
  return table;
}

Document document_of(const Cluster& cluster, const TransferRequest& request, const Result& result) {
  Document document{
      .heading = {fmt::format("Simulated by Trainyard: cluster {}, {} each{}{}{}", cluster.name,
                              to_string(request.size), request.both_ways ? ", both ways" : "",
                              request.all_at_once ? ", all at once" : "",
                              request.fidelity == Fidelity::Packet
                                  ? ", fidelity packet; " + describe(request.packet)
                                  : "")}};
  document.add("cluster", cluster.name);
  document.add("fidelity", std::string(to_string(request.fidelity)));
  document.add("size_bytes", request.size.count());
  document.add("both_ways", request.both_ways);
  document.add("all_at_once", request.all_at_once);
  NamedTable rows{.key = "rows", .table = table_of(cluster, result)};
  const std::optional<double>& total = result.total_gigabytes_per_second;
  if (total) {
    rows.remarks.push_back(fmt::format("Total, until the last is complete: {:.2f} GB/s", *total));
  }
  document.add(std::move(rows));
  if (total) {
    document.add("total_gb_per_s", *total);
  }
  return document;
}

// Messages of verbs and of sockets.

// A size, or a range of powers of two such as 8..8M.
std::vector<Bytes> sizes_of_messages(const OptionReader& reader, const VerbSettings& settings) {
  const std::string text = reader.text("size").value_or(default_sizes(settings));
  const std::size_t dots = text.find("..");
  try {
    const Bytes first = parse_message_size(text.substr(0, dots));
    const Bytes last =
        dots == std::string::npos ? first : parse_message_size(text.substr(dots + 2));
    if (first >= Bytes(1) && last >= first && last <= kGreatestMessage) {
      std::vector<Bytes> sizes;
      for (Bytes size = first; size <= last; size = size * 2) {
        sizes.push_back(size);
      }
      return sizes;
    }
  } catch (const UnitError&) {
    // Falls through to the same error.
  }
  fail_option("size", "a size from 1 to 2G, or the least and the greatest such as 8..8M", text);
}

TransferRequest read_transfer_request(const OptionReader& reader) {
  TransferRequest request{.size = reader.message_size("size").value_or(256_MiB),
                          .both_ways = reader.given("both-ways"),
                          .all_at_once = reader.given("all-at-once"),
                          .fidelity = *read_engine(reader),
                          .packet = read_packet_options(reader)};
  if (reader.given("mtu") && request.fidelity != Fidelity::Packet) {
    throw ConfigError("--mtu: expected --verb, --tcp or --fidelity packet beside it, found flow");
  }
  if (request.packet.has_files() && reader.given("matrix") && !request.all_at_once) {
    throw ConfigError(
        fmt::format("--{}: expected one run: --all-at-once beside --matrix, found many",
                    request.packet.counters_file ? "counters" : "samples"));
  }
  return request;
}

// --mtu goes with --verb and --tcp as well.
Options mtu_of_messages(Options rows) {
  for (Option& row : rows) {
    if (row.name == "mtu") {
      row.help =
          "with packets or --verb: payload of a full packet, 256 to 4096 (the default); with "
          "--tcp: "
          "of IP, 576 to 65535 (default: 1500)";
      row.traits.needs = "verb|tcp|fidelity";
    }
  }
  return rows;
}

int run_messages(const OptionReader& reader, const InputNames& inputs, std::ostream& out) {
  const bool is_tcp = reader.given("tcp");
  const SocketSettings tcp = is_tcp ? read_tcp_settings(reader) : SocketSettings{};
  const VerbSettings verb =
      is_tcp ? VerbSettings{} : read_verb_settings(reader, read_packet_options(reader).options.mtu);
  const ResultTarget target = result_target(reader);
  spdlog::logger log = make_logger(reader);
  const Cluster cluster = load_cluster_inputs(inputs, log);
  const Transfer pair = transfers_of(reader, cluster, false).front();
  const std::vector<Bytes> sizes = sizes_of_messages(reader, verb);
  Document document =
      is_tcp ? tcp_document(cluster, pair, tcp, sizes) : verb_document(cluster, pair, verb, sizes);
  document = with_effects(reader, std::move(document),
                          RunCounts{.gpus = cluster.gpus.size(), .events = 100});
  write_result(target, document, out);
  return 0;
}

int run_transfer(const OptionReader& reader, std::ostream& out) {
  const InputNames inputs = read_input_names(reader);
  if (reader.given("verb") || reader.given("tcp")) {
    return run_messages(reader, inputs, out);
  }
  const TransferRequest request = read_transfer_request(reader);
  const ResultTarget target = result_target(reader);
  check_distinct_files({{"output", target.output},
                        {"report", reader.text("report")},
                        {"counters", request.packet.counters_file},
                        {"samples", request.packet.samples_file}});
  spdlog::logger log = make_logger(reader);
  const Cluster cluster = load_cluster_inputs(inputs, log);
  const std::vector<Transfer> transfers = transfers_of(reader, cluster, request.both_ways);
  const Result result = run_all(cluster, transfers, request);
  write_packet_files(request.packet, cluster.topology, result.last.port_counters,
                     result.last.samples);
  std::optional<RunCounts> counts;
  if (request.fidelity != Fidelity::Packet) {
    constexpr std::size_t kEventsOfPair = 200;  // An estimate: two runs and their routes.
    counts = RunCounts{.gpus = cluster.gpus.size(), .events = kEventsOfPair * transfers.size()};
  }
  const Document document = with_effects(reader, document_of(cluster, request, result), counts);
  write_result(target, document, out);
  for (const std::string& complaint : result.complaints) {
    log.error("{}", complaint);
  }
  return result.complaints.empty() ? 0 : 1;
}

}  // namespace

Command transfer_command() {
  return {
      .name = "transfer",
      .form = "transfer",
      .summary = "bandwidth and latency between devices, as copy and RDMA tests print them",
      .usage = "transfer --cluster NAME|FILE --from DEVICE --to DEVICE [options]",
      .options = joined(
          {cluster_options(),
           Options{
               {"from", "DEVICE", "where data comes from"},
               {"to", "DEVICE", "where it goes"},
               {"matrix",
                "KIND",
                "instead of --from and --to: p2p, every pair of GPUs; h2d, to each GPU from the "
                "host memory nearest to it; d2h, back",
                {.choices = "p2p|h2d|d2h", .excludes = "from to"}},
               {"size", "SIZE",
                "of a transfer (default: 256M); with --verb or --tcp also 8..8M, by twos"},
               {"both-ways", "", "each pair in both directions at once"},
               {"all-at-once", "", "all pairs at once instead of one after the other"},
               {"fidelity", "NAME", "flow (the default) or packet", {.choices = "flow|packet"}}},
           verb_options(), tcp_options(), mtu_of_messages(packet_options()), output_options(),
           log_options()}),
      .example = kTransferExample,
      .run = run_transfer,
      .is_swept = true};
}

}  // namespace trainyard
