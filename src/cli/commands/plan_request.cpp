// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/plan_request.h"

#include <spdlog/fmt/fmt.h>

#include "cli/common/effects.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// Those for which NCCL chooses an algorithm, in nccl-tests' order of names.
std::vector<Operation> read_operations(const OptionReader& reader) {
  const std::string name = reader.text("operation").value_or("all");
  std::vector<Operation> planned;
  std::vector<std::string> names{"all"};
  for (const Operation operation : kOperations) {
    if (nccl::function_of(operation)) {
      planned.push_back(operation);
      names.emplace_back(to_string(operation));
    }
  }
  if (name == "all") {
    return planned;
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

}  // namespace

Options plan_options() {
  return joined(
      {cluster_options(), nccl_options(),
       Options{
           {"topo-file",
            "FILE.xml",
            "instead of --cluster: NCCL's topology file (NCCL_TOPO_FILE) of a server, and --nodes "
            "of them (default 1)",
            {.role = Role::Input, .excludes = "cluster set pull", .synonyms = kTopologyWords}},
           {"ranks", "N", "GPUs that take part: the first ones (default: all)"},
           {"graph-out", "FILE.xml", "write what was searched there, for NCCL_GRAPH_FILE",
            kResult}},
       size_options(),
       Options{{"format",
                "FORMAT",
                "table (the default), json, or info: the lines of NCCL_DEBUG=INFO",
                {.role = Role::Result,
                 .choices = "table|json|info",
                 .synonyms = "json=json info=info"}},
               effects_option("format=table|json"),
               output_file_option()}});
}

PlanRequest read_plan_request(const OptionReader& reader) {
  PlanRequest request;
  request.operations = read_operations(reader);
  request.cluster = reader.text("cluster");
  request.topology_file = reader.text("topo-file");
  if (!request.cluster && !request.topology_file) {
    throw ConfigError(
        "plan: expected --cluster NAME|FILE or --topo-file FILE, found neither; see trainyard plan "
        "--help");
  }
  request.overrides = cluster_overrides(reader);
  request.ranks = reader.integer("ranks", 2, 1'000'000);
  request.nccl = read_nccl_options(reader, "--topo-file FILE");
  request.min_size = reader.message_size("minbytes");
  request.greatest_size = reader.message_size("maxbytes");
  request.factor = reader.integer("stepfactor", 2, 1'024);
  request.format = reader.word("format");
  request.output = output_file(reader, "output");
  request.graph_output = output_file(reader, "graph-out");
  check_distinct_files({{"output", request.output}, {"graph-out", request.graph_output}});
  return request;
}

}  // namespace trainyard
