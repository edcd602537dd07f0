// SPDX-License-Identifier: Apache-2.0
#include "cli/collective.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <optional>
#include <string_view>
#include <vector>

#include "calibration/comparison.h"
#include "cli/common.h"
#include "cli/options.h"
#include "collectives/placement.h"
#include "collectives/run.h"
#include "report/collective_report.h"
#include "report/output.h"
#include "report/trace.h"
#include "sim/config.h"

namespace trainyard {
namespace {

namespace options = boost::program_options;

constexpr std::string_view kExample = R"(
OP is all_reduce, all_gather, reduce_scatter, alltoall, broadcast, reduce, sendrecv, scatter or
gather; sizes and columns are those of nccl-tests. With several algorithms, the fastest of each size
has a *.

Examples:
  trainyard collective all_reduce --cluster dgx-h100 -b 8 -e 8G --algo ring,tree,halving-doubling
  trainyard collective all_reduce --cluster dgx-h100 --nodes 4 --against my-nccl-tests.log
  trainyard collective alltoall --cluster hgx-h100-clos --nodes 16 --format csv --output a2a.csv
)";

struct Request {
  Operation operation = Operation::AllReduce;
  std::string cluster;
  ClusterOverrides overrides;
  std::optional<int> ranks;
  std::optional<Bytes> least_size;
  std::optional<Bytes> greatest_size;
  int factor = 2;
  std::vector<Algorithm> algorithms;
  std::optional<int> channels;
  std::optional<Bytes> piece;
  int root = 0;
  Fidelity fidelity = Fidelity::Flow;
  std::optional<std::string> against;
  bool against_other_ranks = false;
  std::optional<std::string> trace;
  std::optional<std::uint64_t> seed;
  unsigned threads = 0;
  bool fingerprint = false;
  Format format = Format::Table;
  std::optional<std::string> output;
};

options::options_description described_options() {
  options::options_description all("Options");
  const auto text = [](const char* name) {
    return options::value<std::string>()->value_name(name);
  };
  add_cluster_options(all);
  auto add = all.add_options();
  add("ranks", text("N"), "GPUs that take part: the first ones (default: all)");
  add("minbytes,b", text("SIZE"), "least message size (default 8, or those of --against)");
  add("maxbytes,e", text("SIZE"), "greatest message size (default 1G)");
  add("stepfactor,f", text("N"), "factor between sizes (default 2)");
  add("runtime", text("NAME"), "plain (the default): links and latencies only");
  add("algo", text("LIST"),
      "auto (all that can do OP; the default), or some of ring,tree,halving-doubling,pairwise,"
      "direct");
  add("channels", text("N"), "parallel rings or trees (default: what the cluster suggests)");
  add("chunk", text("SIZE"), "pipeline piece of trees and chains (default: by size and depth)");
  add("root", text("RANK"), "of broadcast, reduce, scatter and gather (default 0)");
  add("fidelity", text("NAME"), "flow (the default) or analytical (a lower bound)");
  add("against", text("FILE"),
      "an nccl-tests log or a measured YAML table: adds measured time and error to every row");
  add("against-other-ranks", "compare bus bandwidth with a table of another number of ranks");
  add("trace", text("FILE"), "a Chrome/Perfetto timeline: first algorithm, largest size");
  add("seed", text("N"), "of ECMP hashing (default 1)");
  add("threads", text("N"), "sizes simulated at once (default: all cores); never changes a result");
  add("fingerprint", "a column with a hash of every run");
  add_output_options(all);
  return all;
}

std::vector<Algorithm> algorithms_of(const std::string& list, Operation operation) {
  const std::vector<Algorithm> able = algorithms_for(operation);
  if (list == "auto") {
    return able;
  }
  std::vector<std::string> able_names;
  for (const Algorithm algorithm : able) {
    able_names.emplace_back(to_string(algorithm));
  }
  std::vector<Algorithm> chosen;
  for (const std::string& name : split_list(list)) {
    const std::optional<Algorithm> algorithm = parse_algorithm(name);
    if (!algorithm) {
      std::vector<std::string> names{"auto"};
      for (const Algorithm known : kAlgorithms) {
        names.emplace_back(to_string(known));
      }
      fail_option("algo", fmt::format("auto or some of {}", fmt::join(names, ", ")), name, names);
    }
    if (!supports(*algorithm, operation)) {
      fail_option("algo",
                  fmt::format("an algorithm that can do {} ({})", to_string(operation),
                              fmt::join(able_names, ", ")),
                  name);
    }
    if (std::ranges::find(chosen, *algorithm) != chosen.end()) {
      fail_option("algo", "every algorithm once", list);
    }
    chosen.push_back(*algorithm);
  }
  return chosen;
}

Request request_of(const options::variables_map& values) {
  Request request;
  if (values.count("operation") == 0) {
    throw ConfigError(
        fmt::format("collective: expected an operation, one of {}, found none; see "
                    "trainyard collective --help",
                    operation_names()));
  }
  const auto name = values["operation"].as<std::string>();
  const std::optional<Operation> operation = parse_operation(name);
  if (!operation) {
    std::vector<std::string> names;
    for (const Operation known : kOperations) {
      names.emplace_back(to_string(known));
    }
    fail_option("operation", fmt::format("one of {}", operation_names()), name, names);
  }
  request.operation = *operation;
  const OptionReader reader(values);
  request.cluster = reader.required_text("cluster");
  request.overrides = cluster_overrides(reader);
  request.ranks = reader.integer("ranks", 1, 1'000'000);
  request.least_size = reader.message_size("minbytes");
  request.greatest_size = reader.message_size("maxbytes");
  request.factor = reader.integer("stepfactor", 2, 1'024).value_or(2);
  (void)reader.choice("runtime", {"plain"});
  request.algorithms = algorithms_of(reader.text("algo").value_or("auto"), request.operation);
  request.channels = reader.integer("channels", 1, 64);
  request.piece = reader.message_size("chunk");
  request.root = reader.integer("root", 0, 999'999).value_or(0);
  request.fidelity = reader.choice("fidelity", {"flow", "analytical"}) == 1 ? Fidelity::Analytical
                                                                            : Fidelity::Flow;
  request.against = reader.text("against");
  request.against_other_ranks = values.count("against-other-ranks") > 0;
  request.trace = reader.text("trace");
  if (const auto seed = reader.integer("seed", 0, 2'147'483'647)) {
    request.seed = static_cast<std::uint64_t>(*seed);
  }
  request.threads = static_cast<unsigned>(reader.integer("threads", 1, 1'024).value_or(0));
  request.fingerprint = values.count("fingerprint") > 0;
  request.format = output_format(reader);
  request.output = reader.text("output");
  if (request.against_other_ranks && !request.against) {
    throw ConfigError("--against-other-ranks: expected --against FILE beside it, found none");
  }
  return request;
}

// --ranks in terms of nodes: whole nodes, or a part of one.
void apply_ranks(Request& request, const Cluster& whole) {
  if (!request.ranks) {
    return;
  }
  const int per_node = whole.gpus_per_node;
  if (*request.ranks <= per_node && request.overrides.nodes.value_or(1) == 1) {
    request.overrides.nodes = 1;
    request.overrides.gpus_per_node = *request.ranks;
    return;
  }
  if (*request.ranks % per_node != 0) {
    fail_option("ranks",
                fmt::format("at most {0} (one node) or a multiple of {0} (whole nodes)", per_node),
                std::to_string(*request.ranks));
  }
  const int nodes = *request.ranks / per_node;
  if (request.overrides.nodes && *request.overrides.nodes < nodes) {
    fail_option("ranks",
                fmt::format("at most {} ({} nodes of {} GPUs)", *request.overrides.nodes * per_node,
                            *request.overrides.nodes, per_node),
                std::to_string(*request.ranks));
  }
  request.overrides.nodes = nodes;
}

std::vector<Bytes> sizes_of(const Request& request, int ranks,
                            const std::optional<MeasuredTable>& measured,
                            std::vector<std::string>& notes) {
  std::vector<Bytes> wanted;
  if (measured && !request.least_size && !request.greatest_size) {
    for (const MeasuredRow& row : measured->rows) {
      wanted.push_back(row.size);
    }
  } else {
    const Bytes least = request.least_size.value_or(Bytes(8));
    const Bytes greatest = request.greatest_size.value_or(std::max(least, gib(1)));
    if (least > greatest) {
      fail_option("maxbytes", fmt::format("at least the least size, {}", to_string(least)),
                  to_string(greatest));
    }
    for (Bytes size = least; size <= greatest; size = size * request.factor) {
      wanted.push_back(size);
    }
  }
  std::vector<Bytes> sizes;
  std::size_t too_small = 0;
  for (const Bytes size : wanted) {
    // Sizes that were measured are taken as they are.
    const bool is_measured = measured && find_row(*measured, size) != nullptr;
    const Bytes aligned = is_measured ? size : aligned_size(request.operation, size, ranks);
    if (aligned == Bytes(0)) {
      ++too_small;
    } else if (sizes.empty() || sizes.back() != aligned) {
      sizes.push_back(aligned);
    }
  }
  if (too_small > 0) {
    notes.push_back(fmt::format("{} sizes left out: less than 16 bytes for each of {} ranks",
                                too_small, ranks));
  }
  if (sizes.empty()) {
    fail_option("maxbytes", fmt::format("at least {} bytes, 16 for each rank", 16 * ranks),
                to_string(wanted.back()));
  }
  return sizes;
}

std::optional<MeasuredTable> measured_table(const Request& request, int ranks,
                                            std::vector<std::string>& notes) {
  if (!request.against) {
    return std::nullopt;
  }
  MeasuredTable table = load_measurement(*request.against);
  if (table.operation && *table.operation != request.operation) {
    fail_option("against", fmt::format("a table of {}", to_string(request.operation)),
                fmt::format("{}, which is of {}", *request.against, to_string(*table.operation)));
  }
  if (table.ranks && *table.ranks != ranks) {
    if (!request.against_other_ranks) {
      throw ConfigError(
          fmt::format("--against: expected a table of {} ranks, found {} of {}; choose --nodes or "
                      "--ranks to match, or compare bus bandwidth with --against-other-ranks",
                      ranks, *request.against, *table.ranks));
    }
    notes.push_back(
        fmt::format("measured with {} ranks: only bus bandwidth is comparable; the measured times "
                    "are those that it would give for {} ranks",
                    *table.ranks, ranks));
    for (MeasuredRow& row : table.rows) {
      const double algbw = row.busbw_gbps / bus_factor(request.operation, ranks);
      row.algbw_gbps = algbw;
      row.time = transfer_time(row.size, Bandwidth(static_cast<std::int64_t>(algbw * 8e9)));
    }
  }
  for (const std::string& remark : table.remarks) {
    notes.push_back("measured table: " + remark);
  }
  return table;
}

CollectiveRow row_of(const Request& request, const CollectiveJob& job,
                     const CollectiveResult& result, int ranks,
                     const std::optional<MeasuredTable>& measured) {
  CollectiveRow row;
  row.size = job.size;
  row.algorithm = to_string(job.algorithm);
  row.channels = result.channels;
  row.protocol = "-";
  row.time = result.time;
  if (result.time > SimTime()) {
    row.algbw_gbps = static_cast<double>(job.size.count()) / result.time.seconds() / 1e9;
    row.busbw_gbps = row.algbw_gbps * bus_factor(request.operation, ranks);
  }
  row.transfers = result.network.messages;
  row.fingerprint = result.fingerprint;
  if (measured) {
    if (const MeasuredRow* found = find_row(*measured, job.size)) {
      row.measured = *found;
    }
  }
  return row;
}

void add_notes(const Request& request, const Cluster& cluster,
               const std::vector<CollectiveJob>& jobs, const std::vector<CollectiveResult>& results,
               std::vector<std::string>& notes) {
  notes.push_back(
      "plain runtime: links and latencies only; without launch, protocol and proxy costs small "
      "sizes come out faster than NCCL runs them, and there is no NVLS, which NCCL prefers on "
      "NVSwitch nodes from Hopper on");
  if (request.fidelity == Fidelity::Analytical) {
    notes.push_back("analytical: a lower bound; transfers do not see each other");
  }
  const Bytes largest = jobs.back().size;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].size != largest) {
      continue;
    }
    const Placement placement = place(cluster, jobs[i].algorithm, request.channels);
    for (const std::string& remark : placement.remarks) {
      notes.push_back(fmt::format("{}: {}", to_string(jobs[i].algorithm), remark));
    }
    if (const std::optional<Bottleneck>& busiest = results[i].bottleneck) {
      const Link& link = cluster.topology.link(busiest->link);
      notes.push_back(fmt::format(
          "{} at {}: busiest link {} -> {} ({}, {:.1f} GB/s) is in use {:.1f} % of the time",
          to_string(jobs[i].algorithm), to_string(largest), cluster.topology.node(link.source).name,
          cluster.topology.node(link.target).name, to_string(link.spec.kind),
          link.spec.bandwidth.gigabytes_per_second(), 100.0 * busiest->utilisation));
    }
  }
  if (request.seed && cluster.routing.policy == RoutingPolicy::Static) {
    notes.push_back("--seed did not influence the result: the cluster routes statically");
  }
  if (!cluster.estimates.empty()) {
    std::vector<std::string> values;
    for (const std::string& estimate : cluster.estimates) {
      values.push_back(estimate.substr(0, estimate.find(": ", estimate.find(": ") + 1)));
    }
    notes.push_back(
        fmt::format("estimates used (sources: trainyard topology): {}", fmt::join(values, "; ")));
  }
}

void write_trace(const Request& request, const Cluster& cluster, CollectiveJob job) {
  TraceRecorder recorder;
  job.trace = &recorder;
  (void)run_collective(cluster, job);
  write_file(*request.trace, chrome_trace(recorder));
}

}  // namespace

int run_collective_command(std::span<const std::string> arguments, std::ostream& out) {
  const options::variables_map values =
      parse_options("collective", arguments, described_options(), {"operation"});
  if (values.count("help") > 0) {
    out << "trainyard collective OP --cluster NAME|FILE [options]\n\n"
        << described_options() << kExample;
    return 0;
  }
  Request request = request_of(values);
  const Catalogue catalogue = load_default_catalogue();
  const std::filesystem::path file = find_config("clusters", request.cluster);
  Cluster cluster = load_cluster(file, catalogue, request.overrides);
  if (request.ranks) {
    apply_ranks(request, cluster);
    cluster = load_cluster(file, catalogue, request.overrides);
  }
  if (request.seed) {
    cluster.routing.seed = *request.seed;
  }
  const int ranks = cluster.nodes * cluster.gpus_per_node;
  if (request.root >= ranks) {
    fail_option("root", fmt::format("a rank from 0 to {}", ranks - 1),
                std::to_string(request.root));
  }

  CollectiveReport report;
  report.operation = request.operation;
  report.cluster = cluster.name;
  report.runtime = "plain";
  report.fidelity = to_string(request.fidelity);
  report.ranks = ranks;
  report.nodes = cluster.nodes;
  report.gpus_per_node = cluster.gpus_per_node;
  const std::optional<MeasuredTable> measured = measured_table(request, ranks, report.notes);
  std::vector<CollectiveJob> jobs;
  for (const Bytes size : sizes_of(request, ranks, measured, report.notes)) {
    for (const Algorithm algorithm : request.algorithms) {
      jobs.push_back({.operation = request.operation,
                      .algorithm = algorithm,
                      .size = size,
                      .root = RankId(static_cast<std::uint32_t>(request.root)),
                      .channels = request.channels,
                      .piece = request.piece,
                      .fidelity = request.fidelity});
    }
  }
  std::vector<CollectiveResult> results(jobs.size());
  run_tasks(jobs.size(), request.threads, "collective",
            [&](std::size_t index) { results[index] = run_collective(cluster, jobs[index]); });

  for (std::size_t index = 0; index < jobs.size(); ++index) {
    report.rows.push_back(row_of(request, jobs[index], results[index], ranks, measured));
  }
  mark_best(report.rows);
  add_notes(request, cluster, jobs, results, report.notes);
  if (measured) {
    report.measured_name = measured->name;
    report.measured_source = measured->source;
  }
  report.show_fingerprint = request.fingerprint;
  if (request.trace) {
    write_trace(request, cluster, jobs[jobs.size() - request.algorithms.size()]);
  }
  write_output(request.output, render(report, request.format), out);
  return 0;
}

}  // namespace trainyard
