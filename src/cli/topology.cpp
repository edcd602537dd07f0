// SPDX-License-Identifier: Apache-2.0
#include "cli/topology.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "report/table.h"
#include "sim/config_error.h"
#include "topology/cluster.h"
#include "topology/export.h"
#include "topology/summary.h"

namespace trainyard {
namespace {

namespace options = boost::program_options;

constexpr std::string_view kExample = R"(
A cluster is a file or the name of one in configs/clusters (docs/clusters.md says how to write one).
The default is a summary in the chosen format; --dot and --json give the whole graph instead.

Examples:
  trainyard topology --cluster dgx-h100 --nodes 64
  trainyard topology --cluster dgx-a100 --set fabric.routing=ecmp --format csv
  trainyard topology --cluster dgx-1 --nodes 1 --dot | dot -Tsvg > dgx-1.svg
)";

enum class Output { Table, Csv, Json, GraphDot, GraphJson };

struct Request {
  std::string cluster;
  ClusterOverrides overrides;
  Output output = Output::Table;
  std::optional<std::string> file;
};

options::options_description described_options() {
  options::options_description description("Options");
  description.add_options()("help", "this text");
  description.add_options()("cluster", options::value<std::string>()->value_name("NAME|FILE"),
                            "the cluster (required)");
  description.add_options()("nodes", options::value<int>()->value_name("N"),
                            "servers, instead of the file's number");
  description.add_options()("gpus-per-node", options::value<int>()->value_name("N"),
                            "GPUs used in each server");
  description.add_options()(
      "set", options::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "change a value of the file; may be given again");
  description.add_options()("dot", "the graph for Graphviz");
  description.add_options()("json", "the graph as JSON");
  description.add_options()(
      "format", options::value<std::string>()->default_value("table")->value_name("FORMAT"),
      "of the summary: table, csv or json");
  description.add_options()("output", options::value<std::string>()->value_name("FILE"),
                            "write there instead of to standard output");
  return description;
}

options::variables_map parse(std::span<const std::string> arguments) {
  const options::options_description description = described_options();
  options::variables_map values;
  try {
    const auto parsed = options::command_line_parser({arguments.begin(), arguments.end()})
                            .options(description)
                            .positional(options::positional_options_description())
                            .style(options::command_line_style::unix_style &
                                   ~options::command_line_style::allow_guessing)
                            .run();
    options::store(parsed, values);
  } catch (const options::error& error) {
    throw ConfigError(fmt::format("topology: {}; see trainyard topology --help", error.what()));
  }
  return values;
}

Output output_of(const options::variables_map& values) {
  if (values.count("dot") + values.count("json") > 1) {
    throw ConfigError("topology: --dot and --json exclude each other");
  }
  if (values.count("dot") > 0) {
    return Output::GraphDot;
  }
  if (values.count("json") > 0) {
    return Output::GraphJson;
  }
  const auto& name = values["format"].as<std::string>();
  const std::optional<Format> format = parse_format(name);
  if (!format) {
    throw ConfigError(
        fmt::format("topology: --format: expected table, csv or json, found \"{}\"", name));
  }
  switch (*format) {
    case Format::Table:
      return Output::Table;
    case Format::Csv:
      return Output::Csv;
    case Format::Json:
      return Output::Json;
  }
  return Output::Table;
}

Request request_of(const options::variables_map& values) {
  if (values.count("cluster") == 0) {
    throw ConfigError("topology: --cluster is missing; see trainyard topology --help");
  }
  Request request;
  request.cluster = values["cluster"].as<std::string>();
  if (values.count("nodes") > 0) {
    request.overrides.nodes = values["nodes"].as<int>();
  }
  if (values.count("gpus-per-node") > 0) {
    request.overrides.gpus_per_node = values["gpus-per-node"].as<int>();
  }
  if (values.count("set") > 0) {
    request.overrides.settings = values["set"].as<std::vector<std::string>>();
  }
  if (values.count("output") > 0) {
    request.file = values["output"].as<std::string>();
  }
  request.output = output_of(values);
  return request;
}

std::string to_table(const std::vector<SummaryRow>& rows) {
  std::size_t width = 0;
  for (const SummaryRow& row : rows) {
    width = std::max(width, row.item.size());
  }
  std::string text;
  std::string_view section;
  for (const SummaryRow& row : rows) {
    if (row.section != section) {
      text += fmt::format("{}{}\n", section.empty() ? "" : "\n", row.section);
      section = row.section;
    }
    text += fmt::format("  {:<{}}  {}\n", row.item, width, row.value);
  }
  return text;
}

std::string to_csv(const std::vector<SummaryRow>& rows) {
  const auto column = [](const char* name, const char* key) {
    Column result;
    result.name = name;
    result.key = key;
    return result;
  };
  Table table({column("Section", "section"), column("Item", "item"), column("Value", "value")});
  for (const SummaryRow& row : rows) {
    table.add_row({Cell::of(row.section), Cell::of(row.item), Cell::of(row.value)});
  }
  return render_csv(table);
}

std::string to_json(const std::vector<SummaryRow>& rows, const Cluster& cluster) {
  nlohmann::ordered_json root;
  for (const SummaryRow& row : rows) {
    root[row.section][row.item] = row.value;
  }
  root["estimates"] = cluster.estimates;
  return root.dump(2) + "\n";
}

std::string render(const Cluster& cluster, Output output) {
  switch (output) {
    case Output::GraphDot:
      return to_dot(cluster.topology);
    case Output::GraphJson:
      return to_json(cluster.topology);
    case Output::Table:
      return to_table(summarise(cluster));
    case Output::Csv:
      return to_csv(summarise(cluster));
    case Output::Json:
      return to_json(summarise(cluster), cluster);
  }
  return "";
}

}  // namespace

int run_topology(std::span<const std::string> arguments, std::ostream& out) {
  const options::variables_map values = parse(arguments);
  if (values.count("help") > 0) {
    out << "trainyard topology --cluster NAME|FILE [options]\n\n"
        << described_options() << kExample;
    return 0;
  }
  const Request request = request_of(values);
  const Catalogue catalogue = load_default_catalogue();
  const Cluster cluster =
      load_cluster(find_config("clusters", request.cluster), catalogue, request.overrides);
  write_output(request.file, render(cluster, request.output), out);
  return 0;
}

}  // namespace trainyard
