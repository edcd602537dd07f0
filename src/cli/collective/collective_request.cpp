// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_request.h"

#include <spdlog/fmt/fmt.h>
#include <array>

#include <algorithm>
#include <string_view>

#include "cli/common/log.h"
#include "cli/common/plot.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

template <typename Values>
std::vector<std::string> names_of(const Values& values) {
  std::vector<std::string> names;
  for (const auto value : values) {
    names.emplace_back(to_string(value));
  }
  return names;
}

Operation read_operation(const OptionReader& reader) {
  const std::optional<std::string> name = reader.text("operation");
  if (!name) {
    throw ConfigError(
        fmt::format("collective: expected an operation, one of {}, found none; see trainyard "
                    "collective --help",
                    operation_names()));
  }
  const std::optional<Operation> operation = parse_operation(*name);
  if (!operation) {
    fail_value("collective", fmt::format("an operation, one of {}", operation_names()), *name,
               names_of(kOperations));
  }
  return *operation;
}

Algorithm read_algorithm(const std::string& name, Operation operation) {
  const std::optional<Algorithm> algorithm = parse_algorithm(name);
  if (!algorithm) {
    const std::vector<std::string> names = names_of(kAlgorithms);
    fail_option("algo", fmt::format("auto alone, or some of {}", fmt::join(names, ", ")), name,
                names);
  }
  if (!supports(*algorithm, operation)) {
    fail_option("algo",
                fmt::format("an algorithm that can do {} ({})", to_string(operation),
                            fmt::join(names_of(algorithms_for(operation)), ", ")),
                name);
  }
  return *algorithm;
}

void read_algorithms(const OptionReader& reader, CollectiveRequest& request) {
  request.algorithm_file = reader.text("algo-file");
  if (request.algorithm_file && !reader.given("algo")) {
    return;
  }
  const std::string list = reader.text("algo").value_or("auto");
  if (list == "auto") {
    request.auto_algorithms = true;
    request.algorithms = algorithms_for(request.operation);
    return;
  }
  for (const std::string& name : split_list(list)) {
    const Algorithm algorithm = read_algorithm(name, request.operation);
    if (std::ranges::find(request.algorithms, algorithm) != request.algorithms.end()) {
      fail_option("algo", "every algorithm once", list);
    }
    request.algorithms.push_back(algorithm);
  }
}

void read_runtime(const OptionReader& reader, CollectiveRequest& request) {
  if (reader.choice("runtime", {"plain", "nccl"}) == 1) {
    request.nccl = read_nccl_request(reader, request.operation);
  } else {
    read_algorithms(reader, request);
  }
}

// Sizes of what has none, or others.
void check_sizes(const OptionReader& reader, const CollectiveRequest& request) {
  const bool has_matrix = request.operation == Operation::AllToAllV;
  for (const char* option : {"minbytes", "maxbytes", "stepfactor", "against"}) {
    if (request.operation == Operation::Barrier && reader.given(option)) {
      throw ConfigError(
          fmt::format("--{}: expected an operation that has sizes, found barrier", option));
    }
    if (has_matrix && reader.given(option)) {
      throw ConfigError(fmt::format(
          "--{}: expected an operation that has sizes, found alltoallv, of which --matrix says all",
          option));
    }
  }
  if (has_matrix && !request.matrix) {
    throw ConfigError("alltoallv: expected --matrix FILE, found none");
  }
  if (!has_matrix && request.matrix) {
    throw ConfigError(
        fmt::format("--matrix: expected alltoallv, found {}", to_string(request.operation)));
  }
}

std::string_view algorithm_help() {
  static const std::string text = fmt::format(
      "plain: auto (all that can do OP on the cluster; the default), or some of {}; nccl: auto "
      "(NCCL's own choice), or some of ring,tree,nvls,nvlstree,pat,collnetdirect,"
      "collnetchain",
      fmt::join(names_of(kAlgorithms), ","));
  return text;
}

int read_root(const OptionReader& reader, Operation operation) {
  const std::optional<int> root = reader.integer("root", 0, 999'999);
  const std::vector<Operation> rooted{Operation::Broadcast, Operation::Reduce, Operation::Scatter,
                                      Operation::Gather};
  if (root && std::ranges::find(rooted, operation) == rooted.end()) {
    throw ConfigError(fmt::format("--root: expected an operation that has one ({}), found {}",
                                  alternatives(names_of(rooted)), to_string(operation)));
  }
  return root.value_or(0);
}

void check_files(const CollectiveRequest& request) {
  check_distinct_files(
      {{"output", request.output},
       {"trace", request.trace},
       {"plot", request.plot},
       {"report", request.report ? std::optional(request.report->file) : std::nullopt},
       {"counters", request.packet.counters_file},
       {"samples", request.packet.samples_file}});
}

}  // namespace

Options collective_options() {
  return joined(
      {cluster_options(),
       Options{
           {"ranks", "N", "GPUs that take part: the first ones (default: all)"},
           {"minbytes",
            "SIZE",
            "least message size (default 8, or that of --against)",
            {.letter = 'b'}},
           {"maxbytes",
            "SIZE",
            "greatest message size (default 1G, or that of --against)",
            {.letter = 'e'}},
           {"stepfactor",
            "N",
            "factor between sizes (default 2); without -b, -e and -f, --against gives the sizes",
            {.letter = 'f'}},
           {"matrix", "FILE",
            "of alltoallv: a line for each source, a number of bytes for each target", kInput},
           {"runtime",
            "NAME",
            "plain (the default): links and latencies only; nccl: as NCCL chooses and runs it",
            {.choices = "plain|nccl"}},
           {"algo", "LIST", algorithm_help()},
           {"algo-file", "FILE",
            "an algorithm as MSCCL's XML, proved before it runs; beside it those of --algo, if "
            "given",
            kInput},
           {"channels", "N", "parallel rings or trees (default: what the cluster suggests)"},
           {"chunk", "SIZE", "pipeline piece (default: by size and depth)"},
           {"root", "RANK", "of broadcast, reduce, scatter and gather (default 0)"},
           {"fidelity",
            "NAME",
            "plain: flow (the default), analytical (a lower bound) or packet; nccl: ports (the "
            "default), or one of these between nodes",
            {.choices = "flow|analytical|packet",
             .other_if = "runtime=nccl",
             .other_choices = "ports|flow|analytical|packet"}},
           {"against", "FILE",
            "an nccl-tests log or a measured YAML table: adds measured time and error to every row",
            kInput},
           {"against-other-ranks",
            "",
            "compare bus bandwidth with a table of another number of ranks",
            {.needs = "against"}},
           {"trace", "FILE", "a Chrome/Perfetto timeline: first algorithm, largest size", kResult},
           {"plot", "FILE",
            "a picture (.svg, .png, .pdf) of bus bandwidth over size; needs python3-matplotlib",
            kResult},
           {"seed", "N", "of ECMP hashing (default: fabric.routing_seed of the cluster)"},
           {"threads", "N", "sizes simulated at once (default: all cores); never changes a result"},
           {"compare", "",
            "columns with the lower bound of any algorithm and how close each comes; which is "
            "fastest from which size"},
           {"fingerprint",
            "",
            "a column with a hash of every run",
            {.needs = "fidelity=flow|analytical|packet"}}},
       report_options(), nccl_run_options(), packet_options(), output_options(), log_options()});
}

CollectiveRequest read_collective_request(const OptionReader& reader) {
  CollectiveRequest request;
  request.operation = read_operation(reader);
  request.cluster = reader.required_text("cluster");
  request.overrides = cluster_overrides(reader);
  request.ranks = reader.integer("ranks", 1, 1'000'000);
  request.matrix = reader.text("matrix");
  check_sizes(reader, request);
  request.least_size = reader.message_size("minbytes");
  request.greatest_size = reader.message_size("maxbytes");
  request.factor = reader.integer("stepfactor", 2, 1'024);
  read_runtime(reader, request);
  request.channels = reader.integer("channels", 1, 64);
  request.piece = reader.message_size("chunk");
  request.root = read_root(reader, request.operation);
  if (request.nccl) {
    request.fidelity = request.nccl->fidelity.value_or(Fidelity::Flow);
  } else {
    constexpr std::array kFidelities{Fidelity::Flow, Fidelity::Analytical, Fidelity::Packet};
    request.fidelity = kFidelities[reader.choice("fidelity", {"flow", "analytical", "packet"})];
  }
  request.packet = read_packet_options(reader);
  request.against = reader.text("against");
  request.against_other_ranks = reader.given("against-other-ranks");
  request.trace = output_file(reader, "trace");
  request.plot = output_file(reader, "plot");
  if (request.plot) {
    check_plot(*request.plot);
  }
  request.report = html_target(reader);
  if (const auto seed = reader.integer("seed", 0, 2'147'483'647)) {
    request.seed = static_cast<std::uint64_t>(*seed);
  }
  request.threads = static_cast<unsigned>(reader.integer("threads", 1, 1'024).value_or(0));
  request.fingerprint = reader.given("fingerprint");
  request.compare = reader.given("compare");
  request.format = output_format(reader);
  request.output = output_file(reader, "output");
  check_files(request);
  return request;
}

}  // namespace trainyard
