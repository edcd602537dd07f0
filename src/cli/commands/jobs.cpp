// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/mixed_options.h"
#include "cli/common/options.h"
#include "cli/common/packet_options.h"
#include "cli/common/runtime.h"
#include "parallelism/run/job_mix.h"
#include "report/formats/document.h"
#include "report/formats/output.h"

namespace trainyard {
namespace {

constexpr std::string_view kJobsExample = R"(
A job is a workload, a file or a name in configs/workloads, and the servers that it has: numbers
and ranges from 0, such as gpt@0-3,8. Each job repeats its step until all have done --steps; a
step beside the others is compared with one that has the fabric to itself. Traffic runs as plain
rings and direct messages; times are without what a step costs whatever its size.

Examples:
  trainyard jobs --cluster hgx-h100-clos --nodes 4 --set fabric.oversubscription=4 \
      --set fabric.nodes_per_leaf=2 --job llama-3-8b@0,2 --job llama-3-8b@1,3
)";

constexpr int kMaxSteps = 1000;
constexpr int kMaxShownLinks = 1000;

struct JobRequest {
  std::string text;
  std::string workload;
  std::vector<int> servers;
};

struct JobsRequest {
  InputNames inputs;
  std::vector<JobRequest> jobs = {};
  int steps = 3;
  Fidelity fidelity = Fidelity::Flow;  // Packet with mixed ones, too.
  PacketRequest packet = {};
  std::size_t links = 5;
  ResultTarget result = {};
};

JobRequest job_of(const std::string& text) {
  const std::size_t sign = text.rfind('@');
  if (sign != std::string::npos && sign > 0) {
    JobRequest job{.text = text,
                   .workload = text.substr(0, sign),
                   .servers = index_list(std::string_view(text).substr(sign + 1))};
    if (!job.servers.empty()) {
      return job;
    }
  }
  fail_option("job", "WORKLOAD@SERVERS with servers such as 0-3,8", text);
}

JobsRequest read_jobs_request(const OptionReader& reader) {
  JobsRequest request{
      .inputs = read_input_names(reader),
      .steps = reader.integer("steps", 1, kMaxSteps).value_or(3),
      .fidelity = *read_engine(reader),
      .packet = read_sending_options(reader),
      .links = static_cast<std::size_t>(reader.integer("links", 0, kMaxShownLinks).value_or(5)),
      .result = result_target(reader)};
  request.packet.options.threads = read_packet_threads(reader);
  (void)reader.required_text("job");
  for (const std::string& text : reader.texts("job")) {
    request.jobs.push_back(job_of(text));
  }
  return request;
}

// Chooses what the GPUs of a job send, by its text or its number from 0.
std::optional<ChosenConnections> traffic_of_job(const JobsRequest& request, const Cluster& cluster,
                                                const std::string& name) {
  const auto number = parse_number<std::size_t>(name);
  const auto job = number && *number < request.jobs.size()
                       ? request.jobs.begin() + static_cast<std::ptrdiff_t>(*number)
                       : std::ranges::find(request.jobs, name, &JobRequest::text);
  if (job == request.jobs.end()) {
    return std::nullopt;
  }
  std::vector<bool> chosen(cluster.topology.node_count());
  std::size_t rank = 0;
  for (std::size_t server = 0; server < cluster.server_gpus.size(); ++server) {
    const bool is_of_job =
        std::ranges::find(job->servers, static_cast<int>(server)) != job->servers.end();
    for (int gpu = 0; gpu < cluster.server_gpus[server]; ++gpu) {
      chosen[cluster.gpus[rank++].value()] = is_of_job;
    }
  }
  return [chosen = std::move(chosen)](const NewConnection& connection) {
    return chosen[connection.spec.source.value()];
  };
}

JobMix simulate(const OptionReader& reader, const JobsRequest& request, const Cluster& cluster) {
  const GpuRates rates = load_gpu_rates(std::nullopt);
  std::vector<JobInputs> loaded;
  for (const JobRequest& job : request.jobs) {
    loaded.push_back(load_job(job.workload));
  }
  std::vector<MixedJob> jobs;
  for (std::size_t index = 0; index < loaded.size(); ++index) {
    jobs.push_back({.name = "job " + request.jobs[index].text,
                    .workload = loaded[index].workload,
                    .software = loaded[index].software,
                    .servers = request.jobs[index].servers});
  }
  const OwnChoice own{
      .key = "job",
      .expected = "job=N with the text of a --job or its number",
      .find = [&](const std::string& name) { return traffic_of_job(request, cluster, name); }};
  return run_job_mix(cluster, jobs,
                     {.rates = rates,
                      .fidelity = request.fidelity,
                      .packets = request.packet.options,
                      .extras = read_network_extras(reader, own)},
                     request.steps);
}

Table table_of(const JobsRequest& request, const JobMix& mix) {
  Table table({{.name = "job", .key = "job", .align = Align::Left},
               {.name = "GPUs", .key = "gpus"},
               {.name = "alone", .key = "alone_s", .unit = "(s)"},
               {.name = "together", .key = "together_s", .unit = "(s)"},
               {.name = "longest", .key = "longest_s", .unit = "(s)"},
               {.name = "slowdown", .key = "slowdown"},
               {.name = "steps", .key = "steps"}});
  for (std::size_t index = 0; index < mix.jobs.size(); ++index) {
    const MixedJobTimes& job = mix.jobs[index];
    table.add_row({Cell::of(request.jobs[index].text), Cell::count(job.gpus),
                   Cell::number(job.alone.seconds(), 6), Cell::number(job.mean_seconds(), 6),
                   Cell::number(job.longest().seconds(), 6), Cell::number(job.slowdown(), 4),
                   Cell::count(job.together.size())});
  }
  return table;
}

// The fullest links of the fabric over the whole run.
Table links_of(const Cluster& cluster, const JobMix& mix, std::size_t max) {
  struct Load {
    LinkId link;
    double share = 0.0;
  };
  const Topology& topology = cluster.topology;
  std::vector<Load> loads;
  for (const LinkUse& use : mix.link_use) {
    const LinkSpec& spec = topology.link(use.link).spec;
    if (spec.kind == LinkKind::Network) {
      loads.push_back(
          {.link = use.link, .share = transfer_time(use.bytes, spec.bandwidth) / mix.time});
    }
  }
  std::stable_sort(loads.begin(), loads.end(),
                   [](const Load& a, const Load& b) { return a.share > b.share; });
  loads.resize(std::min(loads.size(), max));
  Table table({{.name = "from", .key = "from", .align = Align::Left},
               {.name = "to", .key = "to", .align = Align::Left},
               {.name = "busy", .key = "busy_share", .unit = "(%)"}});
  for (const Load& load : loads) {
    const Link& link = topology.link(load.link);
    table.add_row({Cell::of(topology.node(link.source).name),
                   Cell::of(topology.node(link.target).name),
                   {fmt::format("{:.1f}", 100.0 * load.share), load.share}});
  }
  return table;
}

Document document_of(const JobsRequest& request, const Cluster& cluster, const JobMix& mix) {
  const std::string fidelity(mix.extras.mixed ? "mixed" : to_string(request.fidelity));
  Document document{.title = fmt::format("{} jobs on {}", mix.jobs.size(), cluster.name),
                    .subtitle = fmt::format("Training jobs together, predicted by Trainyard: "
                                            "fidelity {}, {} together",
                                            fidelity, short_time(mix.time)),
                    .heading = {fmt::format(
                        "Simulated by Trainyard: cluster {}, fidelity {}, {} jobs together for "
                        "{:.4f} s",
                        cluster.name, fidelity, mix.jobs.size(), mix.time.seconds())}};
  document.add("cluster", cluster.name);
  document.add("fidelity", fidelity);
  document.add("time_s", mix.time.seconds());
  document.add(NamedTable{.key = "jobs", .table = table_of(request, mix)});
  Table links = links_of(cluster, mix, request.links);
  const Shown shown = links.rows().empty() ? Shown::Json : Shown::People | Shown::Json;
  document.add(NamedTable{.key = "links",
                          .table = std::move(links),
                          .title = "The fullest links of the fabric, all jobs together",
                          .shown = shown});
  for (std::string& note : extra_notes(mix.extras, mix.network.packets)) {
    document.notes.push_back(std::move(note));
  }
  if (request.fidelity == Fidelity::Packet) {
    document.notes.push_back("packets: " + describe(request.packet));
  }
  if (request.packet.options.fast_forward != FastForward::Off || mix.extras.mixed) {
    document.notes.push_back("packets: " + describe(mix.network.packets));
  }
  return document;
}

int run_jobs(const OptionReader& reader, std::ostream& out) {
  const JobsRequest request = read_jobs_request(reader);
  spdlog::logger log = make_logger(reader);
  const Cluster cluster = load_cluster_inputs(request.inputs, log);
  const JobMix mix = simulate(reader, request, cluster);
  const Document document = with_effects(reader, document_of(request, cluster, mix));
  write_result(request.result, document, out, [&] {
    HtmlReport page = html_page(document);
    page.links = html_links(cluster.topology, mix.link_use, mix.time);
    page.links.note =
        "Share of the time of all jobs in which links are busy at their full rate; the busiest of "
        "each pair and kind.";
    return page;
  });
  return 0;
}

}  // namespace

Command jobs_command() {
  constexpr std::string_view kOnPackets = "fidelity=packet|mixed";
  return {
      .name = "jobs",
      .form = "jobs",
      .summary = "what training jobs on one fabric take from each other",
      .usage = "jobs --cluster NAME|FILE --job WORKLOAD@SERVERS... [options]",
      .options = joined(
          {cluster_options(),
           Options{{"job",
                    "WORKLOAD@SERVERS",
                    "a job and its servers; given again for each job",
                    {.repeats = true, .role = Role::Input, .names = "workloads"}},
                   {"steps", "N", "that every job does at least (default: 3)"},
                   {"fidelity",
                    "NAME",
                    "flow (the default), packet, or mixed: packets for what --packets names",
                    {.choices = "flow|packet|mixed"}},
                   packets_option(
                       "of mixed: job=N (from 0), device=NAME, link=A,B (what crosses it) or "
                       "crowd=N (where so many share a link); names may be patterns; may be given "
                       "again"),
                   packet_threads_option(kOnPackets),
                   {"links", "N",
                    "how many of the fullest links of the fabric are shown (default: 5)"}},
           sending_options(kOnPackets), output_options(), log_options()}),
      .example = kJobsExample,
      .run = run_jobs,
      .is_swept = true};
}

}  // namespace trainyard
