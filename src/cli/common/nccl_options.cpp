// SPDX-License-Identifier: Apache-2.0
#include "cli/common/nccl_options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "cli/common/common.h"
#include "cli/common/runtime.h"
#include "collectives/algorithms/algorithms.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxGraphBytes = std::size_t{4} << 20;

// A file that an option and a variable can name.
std::optional<std::string> file_of(const OptionReader& reader, std::string_view option,
                                   std::string_view variable, const std::string& value) {
  std::optional<std::string> file = reader.text(option);
  if (file && !value.empty()) {
    throw ConfigError(fmt::format("--{}: expected without --env {}, found both", option, variable));
  }
  if (!file && !value.empty()) {
    file = value;
  }
  return file;
}

void check_operation(const OptionReader& reader, Operation operation) {
  if (reader.integer("root", 0, 999'999).value_or(0) != 0) {
    fail_option("root", "0 with --runtime nccl, whose event model starts or ends at rank 0 alone",
                *reader.text("root"));
  }
  for (const char* const option : {"algo", "proto", "tuner-csv"}) {
    if (!nccl::function_of(operation) && reader.given(option)) {
      throw ConfigError(fmt::format(
          "--{}: expected an operation for which NCCL chooses an algorithm, found {}, which is "
          "made of sends and receives",
          option, to_string(operation)));
    }
  }
}

void check_algorithms(const OptionReader& reader, std::span<const std::string> names) {
  for (const std::string& name : split_list(reader.text("algo").value_or("auto"))) {
    if (!nccl::parse_algorithm(name) && parse_algorithm(name)) {
      fail_option("algo",
                  fmt::format("--runtime plain beside it, or some of {}", fmt::join(names, ", ")),
                  name);
    }
  }
}

// The values of a list of names, or one empty one for "auto".
template <typename Value>
std::vector<std::optional<Value>> read_names(const OptionReader& reader, std::string_view option,
                                             std::span<const std::string> names,
                                             std::optional<Value> (*parse)(std::string_view)) {
  const std::string list = reader.text(option).value_or("auto");
  if (list == "auto") {
    return {std::nullopt};
  }
  std::vector<std::optional<Value>> values;
  for (const std::string& name : split_list(list)) {
    const std::optional<Value> value = parse(name);
    if (!value) {
      fail_option(option, fmt::format("auto alone, or some of {}", fmt::join(names, ", ")), name,
                  names);
    }
    if (std::ranges::find(values, value) != values.end()) {
      fail_option(option, "every name once", list);
    }
    values.push_back(value);
  }
  return values;
}

std::vector<std::string> channel_settings(const OptionReader& reader) {
  const std::optional<int> channels = reader.integer("channels", 1, 64);
  if (!channels) {
    return {};
  }
  return {fmt::format("NCCL_MIN_NCHANNELS={}", *channels),
          fmt::format("NCCL_MAX_NCHANNELS={}", *channels)};
}

}  // namespace

nccl::InitOptions NcclOptions::init_options() const {
  nccl::InitOptions init{.version = version, .environment = environment};
  if (graph_file) {
    init.graph_name = *graph_file;
    init.graph_text = read_file(*graph_file, kMaxGraphBytes);
  }
  return init;
}

std::optional<nccl::TunerTable> NcclOptions::tuner() const {
  return tuner_file ? std::optional(nccl::TunerTable::load(*tuner_file)) : std::nullopt;
}

nccl::Domains NcclOptions::domains() const {
  return environment.mnnvl_enable == 0 ? nccl::Domains::Apart : nccl::Domains::Joined;
}

Options nccl_variables() {
  return {{"env",
           "NAME=VALUE",
           "an environment variable of NCCL; may be given again",
           {.repeats = true,
            .role = Role::Input,
            .names = "nccl-variables",
            .synonyms = "environment"}},
          {"graph-file",
           "FILE.xml",
           "channels from NCCL's graph file (NCCL_GRAPH_FILE) instead of the search",
           {.role = Role::Input, .synonyms = "graph graphs"}},
          {"tuner-csv", "FILE.csv", "rows of NCCL's example tuner plugin, which override", kInput}};
}

Options nccl_options() {
  return joined({{nccl_version_option()}, nccl_variables()});
}

NcclOptions read_nccl_options(const OptionReader& reader, std::string_view topology) {
  NcclOptions read = read_nccl_variables(reader, topology);
  read.version = read_nccl_version(reader, read.notes);
  return read;
}

NcclOptions read_nccl_variables(const OptionReader& reader, std::string_view topology,
                                std::span<const std::string> more) {
  NcclOptions read;
  std::vector<std::string> assignments = reader.texts("env");
  assignments.insert(assignments.end(), more.begin(), more.end());
  read.environment = nccl::Environment::parse(assignments);
  if (!read.environment.topology_file.empty()) {
    throw ConfigError(fmt::format("--env: expected {}, found NCCL_TOPO_FILE", topology));
  }
  read.graph_file = file_of(reader, "graph-file", "NCCL_GRAPH_FILE", read.environment.graph_file);
  read.tuner_file =
      file_of(reader, "tuner-csv", "NCCL_TUNER_CONFIG_FILE", read.environment.tuner_config_file);
  return read;
}

Options nccl_run_options() {
  Options variables = nccl_variables();
  variables.front().help = "an environment variable of NCCL or HCCL; may be given again";
  variables.front().traits.needs = "runtime=nccl|rccl|hccl";
  return with_needs(
      "runtime=nccl|rccl",
      joined({Options{{"proto",
                       "LIST",
                       "nccl: auto (NCCL's own choice; the default), or some of ll,ll128,simple",
                       {.names = "protocols"}}},
              variables,
              Options{{"gpus-per-process", "N", "nccl: GPUs that one process drives (default 1)"},
                      {"cuda-graph", "", "nccl: calls are replayed from CUDA graphs"},
                      {"isolated", "",
                       "nccl: one call by itself (default: between calls back to back, as "
                       "nccl-tests)"}}}));
}

NcclRequest read_nccl_request(const OptionReader& reader, Operation operation,
                              nccl::Version version) {
  check_operation(reader, operation);
  NcclRequest request;
  request.mode.gpus_per_process = reader.integer("gpus-per-process", 1, 1'024).value_or(1);
  request.mode.cuda_graph = reader.given("cuda-graph");
  request.mode.back_to_back = !reader.given("isolated");
  const std::vector<std::string> channels = channel_settings(reader);
  const std::vector<std::string> algorithm_names{"ring", "tree",          "nvls",        "nvlstree",
                                                 "pat",  "collnetdirect", "collnetchain"};
  check_algorithms(reader, algorithm_names);
  const std::vector<std::string> protocol_names{"ll", "ll128", "simple"};
  auto algorithms = read_names(reader, "algo", algorithm_names, nccl::parse_algorithm);
  request.compares_all =
      reader.given("compare") && !reader.given("algo") && nccl::function_of(operation).has_value();
  if (request.compares_all) {
    algorithms.insert(algorithms.end(), nccl::kAlgorithms.begin(), nccl::kAlgorithms.end());
  }
  const auto protocols = read_names(reader, "proto", protocol_names, nccl::parse_protocol);
  for (const std::optional<nccl::Algorithm> algorithm : algorithms) {
    for (const std::optional<nccl::Protocol> protocol : protocols) {
      std::vector<std::string> forced = channels;
      if (algorithm) {
        forced.push_back(fmt::format("NCCL_ALGO={}", to_string(*algorithm)));
      }
      if (protocol) {
        forced.push_back(fmt::format("NCCL_PROTO={}", to_string(*protocol)));
      }
      request.choices.push_back(
          {.algorithm = algorithm,
           .protocol = protocol,
           .options = read_nccl_variables(
               reader, "a cluster (trainyard import makes one of a file)", forced)});
      request.choices.back().options.version = version;
    }
  }
  return request;
}

}  // namespace trainyard
