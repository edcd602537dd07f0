// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_request.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "cli/collective/groups_file.h"
#include "cli/common/common.h"
#include "cli/common/log.h"
#include "cli/common/mixed_options.h"
#include "cli/common/plot.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Operations whose sizes are asked for: a barrier has none, and of alltoallv --matrix says all.
constexpr std::string_view kSized =
    "operation=all_reduce|all_gather|reduce_scatter|alltoall|broadcast|reduce|sendrecv|scatter|"
    "gather";

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

void read_ranks(const OptionReader& reader, CollectiveRequest& request) {
  const std::string text = reader.text("ranks").value_or("");
  if (text.find_first_of(",-:") == std::string::npos || text.starts_with('-')) {
    request.ranks = reader.integer("ranks", 1, 1'000'000);
    return;
  }
  request.rank_list = rising_ranks(text);
  if (request.rank_list.empty()) {
    fail_option("ranks",
                "a number, or ranks that rise, such as 0,8,16, 0-7 or 0-63:8, as ranks are placed "
                "in the order of GPUs (--root chooses where one starts)",
                text);
  }
}

std::string_view algorithm_help() {
  static const std::string text = fmt::format(
      "plain: auto (all that can do OP on the cluster; the default), or some of {}; nccl: auto "
      "(NCCL's own choice), or some of ring,tree,nvls,nvlstree,pat,collnetdirect,"
      "collnetchain; mpi, gloo: auto (the library's own choice), or some of its names for OP",
      fmt::join(names_of(kAlgorithms), ","));
  return text;
}

// NCCL has neither barriers nor exchanges of any matrix, so that these are plain.
Options collective_runtime() {
  Options rows = runtime_options(HasMixed::Yes);
  rows.front().help =
      "of collectives: nccl (the default), as NCCL chooses and runs them; rccl (that of AMD's "
      "GPUs), hccl (of Huawei's Ascend 910 and 910B), mpi and gloo (Open MPI or MPICH, and Gloo, "
      "between host memories), as these do; plain, links and latencies only";
  rows.front().traits.choices = "nccl|rccl|plain|hccl|mpi|gloo";
  rows[1].traits.other_if = "runtime=plain|hccl|mpi|gloo";
  rows.front().traits.other_if = "operation=barrier|alltoallv";
  rows.front().traits.other_choices = "plain";
  return rows;
}

// Returns the options that the runtimes between host memories have alone.
Options host_options() {
  return {{"mpi-rules",
           "NAME",
           "mpi: whose choices and algorithms",
           {.choices = "open-mpi-4.1|mpich-4.1", .needs = "runtime=mpi"}},
          {"mpi-profile",
           "FILE",
           "mpi: costs of messages, as trainyard calibrate writes them",
           {.role = Role::Input, .needs = "runtime=mpi"}},
          {"buffers",
           "WHERE",
           "gloo: where tensors are; those of GPUs are copied to host memory and back",
           {.choices = "host|gpu", .needs = "runtime=gloo"}}};
}

// Refuses what runs of HCCL, MPI and Gloo do not have.
void refuse_unsupported(const OptionReader& reader, std::string_view runtime) {
  for (const char* const option :
       {"channels", "groups", "counters", "samples", "packets", "message-times"}) {
    if (reader.given(option)) {
      throw ConfigError(
          fmt::format("--{}: expected without --runtime {}, found both", option, runtime));
    }
  }
}

// The variables of HCCL.
HcclEnvironment read_hccl(const OptionReader& reader) {
  if (reader.given("algo")) {
    throw ConfigError(
        "--algo: expected without --runtime hccl, found both; --env HCCL_ALGO=... chooses");
  }
  refuse_unsupported(reader, "hccl");
  return HcclEnvironment::parse(reader.texts("env"));
}

MpiRequest read_mpi(const OptionReader& reader, Operation operation, std::string_view runtime) {
  refuse_unsupported(reader, runtime);
  if (reader.given("compare")) {
    throw ConfigError(fmt::format(
        "--compare: expected without --runtime {}, found both; its bounds are of GPUs", runtime));
  }
  const bool is_gloo = runtime == "gloo";
  const std::string rules = is_gloo ? "gloo" : reader.word("mpi-rules");
  const std::string shipped = is_gloo ? "gloo-profile.yaml" : "profile.yaml";
  const std::filesystem::path folder = configs_folder() / "mpi";
  const std::optional<std::string> own = reader.text("mpi-profile");
  MpiRequest request{.rules = MpiRules::load(folder / (rules + ".yaml")),
                     .profile = MpiProfile::load(own.value_or(folder / shipped)),
                     .profile_name = own.value_or("configs/mpi/" + shipped),
                     .stages = is_gloo && reader.word("buffers") == "gpu"};
  const MpiRules::Rule* const rule = request.rules.rule(operation);
  if (rule == nullptr) {
    throw ConfigError(fmt::format("--runtime {}: expected an operation with rules, found {}",
                                  runtime, to_string(operation)));
  }
  const std::string list = reader.text("algo").value_or("auto");
  if (list == "auto") {
    return request;
  }
  for (const std::string& name : split_list(list)) {
    if (std::ranges::find(rule->algorithms, name) == rule->algorithms.end()) {
      fail_option("algo",
                  fmt::format("auto alone, or some of {}", fmt::join(rule->algorithms, ", ")), name,
                  rule->algorithms);
    }
    if (std::ranges::find(request.algorithms, name) != request.algorithms.end()) {
      fail_option("algo", "every algorithm once", list);
    }
    request.algorithms.push_back(name);
  }
  return request;
}

}  // namespace

Options collective_arguments() {
  static const std::string names = fmt::format("{}", fmt::join(names_of(kOperations), "|"));
  return {{.name = "operation", .traits = {.choices = names}}};
}

Options collective_options() {
  return joined(
      {cluster_options(),
       Options{{"ranks", "N|LIST",
                "GPUs that take part: the first N, or those of a list such as 0,8,16 or 0-63:8 "
                "(default: all)"}},
       Options{{"groups",
                "N|:N|FILE",
                "communicators side by side: groups of N ranks, N groups of every Nth rank, or "
                "those of a file with ranks, operation, size, algorithm, start",
                {.role = Role::Input,
                 .excludes = "ranks matrix algo-file root against trace plot compare fingerprint "
                             "counters samples packets message-times"}}},
       size_options(kSized),
       Options{
           {"matrix",
            "FILE",
            "of alltoallv: a line for each source, a number of bytes for each target",
            {.role = Role::Input, .needs = "operation=alltoallv"}},
           {"algo",
            "LIST",
            algorithm_help(),
            {.names = "algorithms", .synonyms = "algorithm algorithms"}},
           {"algo-file",
            "FILE",
            "plain: an algorithm as a list of messages, MSCCL's XML or MSCCL++'s JSON, proved "
            "before it runs; beside it those of --algo, if given",
            {.role = Role::Input, .needs = "runtime=plain"}},
           {"channels", "N", "parallel rings or trees (default: what the cluster suggests)"},
           {"chunk",
            "SIZE",
            "plain: pipeline piece (default: by size and depth)",
            {.needs = "runtime=plain"}},
           {"root",
            "RANK",
            "of broadcast, reduce, scatter and gather (default 0)",
            {.needs = "operation=broadcast|reduce|scatter|gather"}},
           {"against",
            "FILE",
            "an nccl-tests log or a measured YAML table: adds measured time and error to every "
            "row; its sizes are simulated unless -b, -e or -f is given",
            {.role = Role::Input, .needs = kSized, .synonyms = "measured"}},
           {"against-other-ranks",
            "",
            "compare bus bandwidth with a table of another number of ranks",
            {.needs = "against"}},
           {"trace", "FILE", "a Chrome/Perfetto timeline: first algorithm, largest size", kResult},
           {"plot", "FILE",
            "a picture (.svg, .png, .pdf) of bus bandwidth over size; needs python3-matplotlib",
            kResult},
           estimates_option(),
           seed_option("of ECMP hashing, and of losses and marks of packets (default: "
                       "fabric.routing_seed of the "
                       "cluster, and 1)"),
           threads_option(),
           {"compare", "",
            "columns with the lower bound of any algorithm and how close each comes, and which is "
            "fastest from which size; nccl: also NCCL's other algorithms beside its choice"},
           {"fingerprint",
            "",
            "a column with a hash of every run",
            {.needs = "fidelity=flow|analytical|packet|mixed"}}},
       collective_runtime(), host_options(),
       Options{packets_option("of mixed: device=NAME, link=A,B (what crosses it) or crowd=N (where "
                              "so many share a link); names may be patterns; may be given again"),
               message_times_option("fidelity=flow|packet|mixed")},
       nccl_run_options(), packet_options(HasMixed::Yes), output_options(), log_options()});
}

CollectiveRequest read_collective_request(const OptionReader& reader) {
  CollectiveRequest request;
  request.operation = read_operation(reader);
  request.inputs = read_input_names(reader);
  read_ranks(reader, request);
  request.matrix = reader.text("matrix");
  if (request.operation == Operation::AllToAllV && !request.matrix) {
    throw ConfigError("alltoallv: expected --matrix FILE, found none");
  }
  request.min_size = reader.message_size("minbytes");
  request.greatest_size = reader.message_size("maxbytes");
  request.factor = reader.integer("stepfactor", 2, 1'024);
  request.runtime = read_runtime(reader);
  if (request.runtime.nccl) {
    request.nccl = read_nccl_request(reader, request.operation, *request.runtime.nccl);
  } else if (request.runtime.hccl) {
    request.hccl = read_hccl(reader);
  } else if (!request.runtime.hosts.empty()) {
    request.mpi = read_mpi(reader, request.operation, request.runtime.hosts);
  } else {
    read_algorithms(reader, request);
  }
  request.groups = reader.text("groups");
  if (request.groups && request.algorithms.size() > 1 && !request.auto_algorithms) {
    fail_option("algo", "one algorithm with --groups", *reader.text("algo"));
  }
  if (request.groups && request.nccl && request.nccl->choices.size() > 1) {
    const bool in_algorithms =
        request.nccl->choices.front().algorithm != request.nccl->choices.back().algorithm;
    const char* const option = in_algorithms ? "algo" : "proto";
    fail_option(option,
                fmt::format("one {} with --groups", in_algorithms ? "algorithm" : "protocol"),
                *reader.text(option));
  }
  request.channels = reader.integer("channels", 1, 64);
  request.piece = reader.message_size("chunk");
  request.root = reader.integer("root", 0, 999'999).value_or(0);
  request.packet = read_packet_options(reader);
  request.against = reader.text("against");
  request.against_other_ranks = reader.given("against-other-ranks");
  request.trace = output_file(reader, "trace");
  request.plot = output_file(reader, "plot");
  if (request.plot) {
    check_plot(*request.plot);
  }
  request.seed = read_seed(reader);
  request.packet.options.seed = request.seed.value_or(request.packet.options.seed);
  request.threads = read_threads(reader);
  if (reader.team() != nullptr) {
    request.threads = 1;  // Processes work through one size after the other, all through the same.
  }
  request.fingerprint = reader.given("fingerprint");
  request.compare = reader.given("compare");
  request.result = result_target(reader);
  check_distinct_files({{"output", request.result.output},
                        {"trace", request.trace},
                        {"plot", request.plot},
                        {"report", reader.text("report")},
                        {"counters", request.packet.counters_file},
                        {"samples", request.packet.samples_file}});
  return request;
}

}  // namespace trainyard
