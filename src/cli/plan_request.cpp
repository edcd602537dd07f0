// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_request.h"

#include <spdlog/fmt/fmt.h>

#include <string_view>

#include "sim/config_error.h"

namespace trainyard {
namespace {

namespace options = boost::program_options;

// Those for which NCCL chooses an algorithm, in nccl-tests' order of names.
std::vector<Operation> planned_operations() {
  std::vector<Operation> operations;
  for (const Operation operation : kOperations) {
    if (nccl::function_of(operation)) {
      operations.push_back(operation);
    }
  }
  return operations;
}

std::vector<Operation> read_operations(const OptionReader& reader) {
  const std::string name = reader.text("operation").value_or("all");
  const std::vector<Operation> planned = planned_operations();
  if (name == "all") {
    return planned;
  }
  std::vector<std::string> names{"all"};
  for (const Operation operation : planned) {
    names.emplace_back(to_string(operation));
  }
  const std::optional<Operation> operation = parse_operation(name);
  if (operation && !nccl::function_of(*operation)) {
    throw ConfigError(fmt::format(
        "plan: expected one of {}, found {}, which is made of sends and receives: NCCL chooses no "
        "algorithm for it",
        fmt::join(names, ", "), name));
  }
  if (!operation) {
    fail_value("plan", fmt::format("one of {}", fmt::join(names, ", ")), name, names);
  }
  return {*operation};
}

void read_machine(const OptionReader& reader, PlanRequest& request) {
  request.cluster = reader.text("cluster");
  request.topology_file = reader.text("topo");
  if (request.cluster && request.topology_file) {
    throw ConfigError("--topo: expected without --cluster, found both");
  }
  if (!request.cluster && !request.topology_file) {
    throw ConfigError(
        "plan: expected --cluster NAME|FILE or --topo FILE, found neither; see trainyard plan "
        "--help");
  }
  request.overrides = cluster_overrides(reader);
  if (request.topology_file) {
    for (const std::string_view option : {"set", "pull"}) {
      if (reader.given(option)) {
        throw ConfigError(fmt::format("--{}: expected with --cluster, found with --topo", option));
      }
    }
  }
  request.ranks = reader.integer("ranks", 2, 1'000'000);
}

void read_version(const OptionReader& reader, PlanRequest& request) {
  const std::optional<std::string> text = reader.text("nccl-version");
  if (!text) {
    return;
  }
  const std::optional<nccl::ParsedVersion> version = nccl::parse_version(*text);
  if (!version) {
    fail_option("nccl-version", "a release such as 2.30.7, 2.28.9 or 2.27.7", *text);
  }
  request.version = version->known;
  if (!version->exact) {
    request.notes.push_back(
        fmt::format("NCCL {} is planned as {}, the nearest release whose rules are known", *text,
                    to_string(version->known)));
  }
}

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

void read_environment(const OptionReader& reader, PlanRequest& request) {
  request.environment = nccl::Environment::parse(reader.texts("env"));
  if (!request.environment.topology_file.empty()) {
    throw ConfigError("--env: expected --topo FILE, found NCCL_TOPO_FILE");
  }
  request.graph_file =
      file_of(reader, "graph-file", "NCCL_GRAPH_FILE", request.environment.graph_file);
  request.tuner_file =
      file_of(reader, "tuner-csv", "NCCL_TUNER_CONFIG_FILE", request.environment.tuner_config_file);
}

}  // namespace

options::options_description plan_options() {
  options::options_description all("Options");
  const auto text = [](const char* name) {
    return options::value<std::string>()->value_name(name);
  };
  add_cluster_options(all);
  auto add = all.add_options();
  add("topo", text("FILE.xml"),
      "instead of --cluster: NCCL's topology file of a server, and --nodes of them (default 1)");
  add("ranks", text("N"), "GPUs that take part: the first ones (default: all)");
  add("nccl-version", text("V"), "2.30.7 (the default), 2.28.9 or 2.27.7");
  add("env", options::value<std::vector<std::string>>()->composing()->value_name("NAME=VALUE"),
      "an environment variable of NCCL; may be given again");
  add("graph-file", text("FILE.xml"), "channels from NCCL's graph file instead of the search");
  add("graph-out", text("FILE.xml"), "write what was searched there, for NCCL_GRAPH_FILE");
  add("tuner-csv", text("FILE.csv"), "rows of NCCL's example tuner plugin, which override");
  add("minbytes,b", text("SIZE"), "least message size (default 8)");
  add("maxbytes,e", text("SIZE"), "greatest message size (default 1G)");
  add("stepfactor,f", text("N"), "factor between sizes (default 2)");
  add("format", text("FORMAT"), "table (the default), json, or info: the lines of NCCL_DEBUG=INFO");
  add("output", text("FILE"), "write there, whole or not at all, instead of to standard output");
  return all;
}

PlanRequest read_plan_request(const OptionReader& reader) {
  PlanRequest request;
  request.operations = read_operations(reader);
  read_machine(reader, request);
  read_version(reader, request);
  read_environment(reader, request);
  request.least_size = reader.message_size("minbytes");
  request.greatest_size = reader.message_size("maxbytes");
  request.factor = reader.integer("stepfactor", 2, 1'024);
  request.format = static_cast<PlanFormat>(reader.choice("format", {"table", "json", "info"}));
  request.output = output_file(reader, "output");
  request.graph_output = output_file(reader, "graph-out");
  if (request.output && request.output == request.graph_output) {
    fail_option("graph-out", "another file than that of --output", *request.graph_output);
  }
  return request;
}

}  // namespace trainyard
