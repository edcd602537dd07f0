// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "cli/commands/traffic_html.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/mixed_options.h"
#include "cli/common/options.h"
#include "cli/common/packet_options.h"
#include "cli/common/runtime.h"
#include "network/engines/make_network.h"
#include "network/traffic/traffic_flows.h"
#include "network/traffic/traffic_run.h"
#include "network/traffic/traffic_spec.h"
#include "network/traffic/traffic_summary.h"
#include "report/formats/output.h"
#include "report/results/traffic_report.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/printable.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

constexpr std::string_view kTrafficExample = R"(
FILE describes flows: permutation, incast, alltoall, uniform, poisson, a list, a trace; or is a name
in configs/traffic, or the flows of another simulator (.cm of htsim, .txt of HPCC, .csv). Their
completion times, slowdowns against running alone, the goodput of sources and the fullest links are
printed. The status is 1 if a flow was never complete.

Examples:
  trainyard traffic permutation --cluster fat-tree-k8-100g
  trainyard traffic web-search --cluster fat-tree-k8-100g --set-traffic groups.0.load=0.8
  trainyard traffic incast --cluster fat-tree-k8-100g --fidelity packet --report incast.html
  trainyard traffic my-flows.yaml --cluster my-cluster.yaml --format json
)";

constexpr std::size_t kMaxPromiseLines = 10;

struct TrafficRequest {
  InputNames inputs;
  std::filesystem::path traffic;
  std::vector<std::string> settings;  // Settings of the traffic file: "key.path=value".
  std::optional<std::uint64_t> seed;
  Fidelity fidelity = Fidelity::Flow;  // Packet with mixed ones, too.
  PacketRequest packet;
  std::size_t links = 5;
  ResultTarget result = {};
  std::optional<std::string> flows_file;
};

TrafficRequest read_traffic_request(const OptionReader& reader) {
  TrafficRequest request;
  request.inputs = read_input_names(reader);
  request.traffic = find_config("traffic", reader.required_text("file", "a file of flows"));
  request.settings = reader.texts("set-traffic");
  check_keys("set-traffic", request.settings);
  request.seed = read_seed(reader);
  request.fidelity = *read_engine(reader);
  request.packet = read_packet_options(reader);
  request.packet.options.seed = request.seed.value_or(request.packet.options.seed);
  read_failure_options(reader, request.packet);
  request.packet.options.threads = read_packet_threads(reader);
  request.links = static_cast<std::size_t>(reader.integer("links", 0, 1'000'000).value_or(5));
  request.result = result_target(reader);
  request.flows_file = output_file(reader, "flows-out");
  check_distinct_files({{"output", request.result.output},
                        {"report", reader.text("report")},
                        {"flows-out", request.flows_file},
                        {"counters", request.packet.counters_file},
                        {"samples", request.packet.samples_file}});
  return request;
}

// The flow file of another simulator is a traffic file with one group.
ConfigDocument load_traffic_document(const std::filesystem::path& file) {
  struct Kind {
    std::string_view extension;
    std::string_view format;
  };
  constexpr std::array<Kind, 3> kFlowFiles{{{".cm", "htsim"}, {".txt", "hpcc"}, {".csv", "csv"}}};
  const std::string extension = file.extension().string();
  for (const Kind& kind : kFlowFiles) {
    if (extension == kind.extension) {
      const std::string name = nlohmann::json(file.filename().string()).dump();
      return ConfigDocument::parse(
          fmt::format("name: {}\nsource: the flow file of another simulator\ngroups:\n"
                      "  - {{name: flows, kind: trace, format: {}, file: {}}}\n",
                      name, kind.format, name),
          file.string());
    }
  }
  return ConfigDocument::load(file);
}

TrafficSpec load_traffic(const TrafficRequest& request, const Cluster& cluster) {
  ConfigDocument document = load_traffic_document(request.traffic);
  for (const std::string& setting : request.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      fail_option("set-traffic", "key.path=value", setting);
    }
    const std::string key = setting.substr(0, equals);
    const std::string value = setting.substr(equals + 1);
    document.set(key, value, fmt::format("--set-traffic {}={}", shortened(key), shortened(value)));
  }
  TrafficSpec spec =
      read_traffic(document, cluster,
                   {.shipped_sizes = configs_folder() / "traffic" / "sizes", .seed = request.seed});
  document.finish();
  return spec;
}

TrafficRun simulate(const Cluster& cluster, const TrafficSpec& spec, Simulator& simulator,
                    Network& network) {
  std::int64_t flows = 0;
  for (const GroupPlan& plan : plan_traffic(cluster, spec)) {
    flows += plan.flows;
  }
  Routing alone(cluster.topology, cluster.routing);
  return run_traffic(simulator, network, alone, spec, flows);
}

bool has_priority(const TrafficGroup& group) {
  const auto* listed = std::get_if<ListedTraffic>(&group.pattern);
  return group.priority ||
         (listed != nullptr && std::ranges::any_of(listed->flows, [](const FlowStart& flow) {
            return flow.priority.has_value();
          }));
}

void add_notes(const TrafficRequest& request, const Cluster& cluster, const TrafficSpec& spec,
               const TrafficRun& run, std::vector<std::string>& notes) {
  if (request.fidelity == Fidelity::Analytical) {
    notes.emplace_back(
        "analytical: flows do not see each other, so each has slowdown 1; the makespan is a lower "
        "bound, from what each link carried");
  }
  if (request.fidelity == Fidelity::Packet) {
    add_packet_notes(request.packet, cluster.routing, notes);
    notes.push_back("packets: " + describe(run.network.packets));
  }
  for (const TrafficGroup& group : spec.groups) {
    if (has_priority(group) && !request.packet.has_classes(request.fidelity)) {
      notes.push_back(fmt::format(
          "the priority of group {} did not influence the result: {} has one class of flows",
          group.name, to_string(request.fidelity)));
    }
  }
}

void write_files(const TrafficRequest& request, const Topology& topology, const TrafficSpec& spec,
                 const TrafficRun& run, const Network& network) {
  if (request.flows_file) {
    std::vector<ConnectionCounters> counters;
    for (const FlowRecord& flow : run.flows) {
      if (const auto own = network.connection_counters(flow.connection)) {
        counters.push_back(*own);
      }
    }
    write_file(*request.flows_file, flows_csv(topology, spec, run.flows, counters));
  }
  write_packet_files(request.packet, topology, run.port_counters, network.samples());
}

// Chooses the flows of a group, which their ends and labels tell from others.
std::optional<ChosenConnections> flows_of_group(const TrafficSpec& spec, const std::string& name) {
  const auto group = std::ranges::find(spec.groups, name, &TrafficGroup::name);
  if (group == spec.groups.end()) {
    return std::nullopt;
  }
  using Key = std::tuple<NodeId, NodeId, std::uint32_t>;
  std::vector<Key> keys;
  FlowSource source(*group);
  for (auto flow = source.next(); flow; flow = source.next()) {
    keys.emplace_back(flow->source, flow->target, flow->label);
  }
  std::ranges::sort(keys);
  return [keys = std::move(keys)](const NewConnection& connection) {
    const ConnectionSpec& flow = connection.spec;
    return std::ranges::binary_search(keys, Key(flow.source, flow.target, flow.flow_label));
  };
}

// Returns the settings of the cluster and of the traffic.
RunInputs traffic_inputs(const TrafficRequest& request, const Cluster& cluster) {
  std::vector<std::string> settings = request.inputs.settings();
  for (const std::string& setting : request.settings) {
    settings.push_back(setting + " (traffic)");
  }
  return run_inputs(cluster, std::move(settings));
}

int run_traffic_command(const OptionReader& reader, std::ostream& out) {
  TrafficRequest request = read_traffic_request(reader);
  spdlog::logger log = make_logger(reader);
  const Cluster cluster = load_cluster_inputs(request.inputs, log);
  find_failures(request.packet, cluster.topology);
  const TrafficSpec spec = load_traffic(request, cluster);
  if (!spec.slow_receivers.empty() && request.fidelity != Fidelity::Packet) {
    throw ConfigError(
        fmt::format("{}: slow_receivers: expected --fidelity packet beside them, found {}",
                    spec.file, to_string(request.fidelity)));
  }
  request.packet.options.slow_hosts = spec.slow_receivers;

  Simulator simulator;
  Routing routing(cluster.topology, cluster.routing);
  const std::unique_ptr<Network> network = make_network(
      request.fidelity, simulator, routing, request.packet.options,
      read_network_extras(
          reader, {.key = "group",
                   .expected = "group=NAME of a group of the file",
                   .find = [&](const std::string& name) { return flows_of_group(spec, name); }}));
  const TrafficRun run = simulate(cluster, spec, simulator, *network);
  log.debug("{} flows, {} events, {} path classes, {} solves", run.flows.size(), run.events,
            run.network.path_classes, run.network.solves);

  TrafficReport report{.traffic = spec.name,
                       .cluster = cluster.name,
                       .fidelity = reader.word("fidelity"),
                       .routing = std::string(to_string(cluster.routing.policy)),
                       .seed_of_routing = cluster.routing.seed,
                       .fingerprint = run.fingerprint,
                       .summary = summarise(cluster.topology, spec, run, request.links),
                       .inputs = traffic_inputs(request, cluster),
                       .estimates = cluster.estimates};
  add_notes(request, cluster, spec, run, report.notes);
  for (std::string& note : extra_notes(extra_results(*network), run.network.packets)) {
    report.notes.push_back(std::move(note));
  }
  add_part_notes(cluster, request.inputs, report.notes);
  write_files(request, cluster.topology, spec, run, *network);
  std::optional<RunCounts> counts;
  if (request.fidelity != Fidelity::Packet) {
    counts = RunCounts{.gpus = cluster.gpus.size(), .events = run.events};
  }
  const Document document = with_effects(reader, document_of(report, cluster.topology), counts);
  write_result(request.result, document, out, [&] {
    return traffic_html(document, report, cluster, spec, run, network->samples());
  });
  std::vector<std::string> broken = broken_promises(cluster.topology, spec, run, kMaxPromiseLines);
  if (const auto complaint = network->complaint()) {
    broken.push_back(*complaint);
  }
  for (const std::string& line : broken) {
    log.error("{}", line);
  }
  return broken.empty() ? 0 : 1;
}

}  // namespace

Command traffic_command() {
  return {
      .name = "traffic",
      .form = "traffic FILE",
      .summary = "flow completion times of permutations, incast, Poisson traffic, traces",
      .usage = "traffic FILE --cluster NAME|FILE [options]",
      .arguments = {{.name = "file", .traits = {.role = Role::Input, .names = "traffic"}}},
      .options = joined(
          {cluster_options(),
           Options{estimates_option(),
                   {"fidelity",
                    "NAME",
                    "flow (the default), analytical (a lower bound), packet, or mixed: packets for "
                    "what --packets names, flows for all others",
                    {.choices = "flow|analytical|packet|mixed"}},
                   packets_option(
                       "of mixed: group=NAME of FILE, device=NAME, link=A,B (what crosses it) or "
                       "crowd=N (where so many share a link); names may be patterns; may be given "
                       "again"),
                   {"set-traffic",
                    "KEY=VALUE",
                    "change a value of FILE, such as groups.0.load=0.8; may be given again",
                    {.repeats = true, .names = "traffic-keys"}},
                   seed_option("of all random choices (default: those of FILE)"),
                   {"links", "N", "how many of the fullest links are shown (default: 5)"},
                   {"flows-out", "FILE", "write one line for each flow there, as CSV", kResult},
                   packet_threads_option("fidelity=packet|mixed")},
           packet_options(HasMixed::Yes), failure_options(), output_options(), log_options()}),
      .example = kTrafficExample,
      .run = run_traffic_command,
      .is_swept = true};
}

}  // namespace trainyard
