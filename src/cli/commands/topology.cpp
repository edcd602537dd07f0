// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "report/formats/document.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/server_export.h"
#include "topology/graph/export.h"
#include "topology/lint/summary.h"

namespace trainyard {
namespace {

constexpr std::string_view kTopologyExample = R"(
A cluster is a file or the name of one in configs/clusters (docs/inputs/clusters.md says how to
write one).
The default is a summary in the chosen format; --dot and --json give the whole graph instead,
--nccl-xml and --smi one server in the forms of NCCL and nvidia-smi (docs/commands/import.md).

Examples:
  trainyard topology --cluster dgx-h100 --nodes 64
  trainyard topology --cluster dgx-a100 --set fabric.routing=ecmp --format csv
  trainyard topology --cluster dgx-1 --nodes 1 --dot | dot -Tsvg > dgx-1.svg
  trainyard topology --cluster dgx-a100 --nccl-xml --output dgx-a100.xml
)";

enum class Output { Table, Csv, Json, GraphDot, GraphJson, ServerXml, ServerMatrix };

// Outputs that have one form, each an option of its own.
struct SingleForm {
  const char* option;
  Output output;
};
constexpr std::array kSingleForms{
    SingleForm{"dot", Output::GraphDot}, SingleForm{"json", Output::GraphJson},
    SingleForm{"nccl-xml", Output::ServerXml}, SingleForm{"smi", Output::ServerMatrix}};

Output output_of(const OptionReader& reader) {
  const SingleForm* chosen = nullptr;
  for (const SingleForm& form : kSingleForms) {
    chosen = reader.given(form.option) ? &form : chosen;
  }
  if (chosen != nullptr && reader.given("format")) {
    throw ConfigError(fmt::format("--format: expected without --{}, which has one form, found both",
                                  chosen->option));
  }
  if (chosen != nullptr) {
    return chosen->output;
  }
  switch (output_format(reader)) {
    case Format::Table:
      return Output::Table;
    case Format::Csv:
      return Output::Csv;
    case Format::Json:
      return Output::Json;
  }
  CHECK(false, "unknown format");
}

Document document_of(const Cluster& cluster) {
  const std::vector<SummaryRow> rows = summarise(cluster);
  std::size_t width = 0;
  for (const SummaryRow& row : rows) {
    width = std::max(width, row.item.size());
  }
  Document document;
  Table table({column("section", "section"), column("item", "item"), column("value", "value")});
  Lines lines;
  for (const SummaryRow& row : rows) {
    if (row.section != lines.title && !lines.lines.empty()) {
      document.add(std::exchange(lines, {}));
    }
    lines.title = row.section;
    lines.lines.push_back(fmt::format("{:<{}}  {}", row.item, width, row.value));
    table.add_row({Cell::of(row.section), Cell::of(row.item), Cell::of(row.value)});
    document.add(Figure{
        .key = row.item, .cell = Cell::of(row.value), .group = row.section, .shown = Shown::Json});
  }
  document.add(std::move(lines));
  document.add(NamedTable{.key = "", .table = std::move(table), .shown = Shown::Csv});
  document.add_detail("estimates", cluster.estimates);
  return document;
}

ServerOutline chosen_server(const Cluster& cluster, const OptionReader& reader) {
  const int last = static_cast<int>(cluster.topology.server_count()) - 1;
  const int server = reader.integer("server", 0, last).value_or(0);
  return server_outline(cluster.topology, ServerId(static_cast<std::uint32_t>(server)));
}

std::string render(const Cluster& cluster, const Catalogue& catalogue, const OptionReader& reader,
                   Output output) {
  switch (output) {
    case Output::ServerXml:
      return write_nccl_xml(to_nccl_xml(chosen_server(cluster, reader), catalogue));
    case Output::ServerMatrix:
      return write_smi_matrix(to_smi_matrix(chosen_server(cluster, reader), catalogue));
    case Output::GraphDot:
      return to_dot(cluster.topology);
    case Output::GraphJson:
      return to_json(cluster.topology);
    case Output::Table:
      return render(document_of(cluster), Format::Table);
    case Output::Csv:
      return render(document_of(cluster), Format::Csv);
    case Output::Json:
      return render(document_of(cluster), Format::Json);
  }
  CHECK(false, "unknown output");
}

int run_topology(const OptionReader& reader, std::ostream& out) {
  spdlog::logger log = make_logger(reader);
  const std::string name = reader.required_text("cluster");
  const ClusterOverrides overrides = cluster_overrides(reader);
  const Output output = output_of(reader);
  const std::optional<std::string> file = output_file(reader, "output");
  const Catalogue catalogue = load_default_catalogue();
  const Cluster cluster = load_cluster(find_config("clusters", name), catalogue, overrides);
  log_warnings(log, cluster.warnings);
  write_output(file, render(cluster, catalogue, reader, output), out);
  return 0;
}

}  // namespace

Command topology_command() {
  return {
      .name = "topology",
      .form = "topology",
      .summary = "what a cluster file describes: devices, links, routes, a drawing",
      .usage = "topology --cluster NAME|FILE [options]",
      .options = joined(
          {cluster_options(),
           Options{
               {"dot",
                "",
                "the graph for Graphviz instead of a summary",
                {.excludes = "json nccl-xml smi"}},
               {"json", "", "the graph as JSON instead of a summary", {.excludes = "nccl-xml smi"}},
               {"nccl-xml",
                "",
                "one server as a topology file of NCCL (NCCL_TOPO_FILE)",
                {.excludes = "smi"}},
               {"smi", "", "one server as the matrix of nvidia-smi topo -m"},
               {"server",
                "N",
                "which server, for --nccl-xml and --smi; default 0",
                {.needs = "nccl-xml|smi"}}},
           output_options(), log_options()}),
      .example = kTopologyExample,
      .run = run_topology};
}

}  // namespace trainyard
