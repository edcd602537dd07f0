// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/html_output.h"
#include "cli/common/inputs.h"
#include "cli/common/log.h"
#include "cli/common/options.h"
#include "report/formats/document.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/server_export.h"
#include "topology/graph/export.h"
#include "topology/lint/summary.h"

namespace trainyard {
namespace {

constexpr std::string_view kTopologyExample = R"(
A cluster is a file or the name of one in configs/clusters (docs/inputs/clusters.md says how to
write one).
The default is a summary; --format json has the whole graph too, nccl-xml and smi are one server in
the forms of NCCL and nvidia-smi (docs/commands/import.md).

Examples:
  trainyard topology --cluster dgx-h100 --nodes 64
  trainyard topology --cluster dgx-a100 --set fabric.routing=ecmp --format csv
  trainyard topology --cluster dgx-1 --nodes 1 --format dot | dot -Tsvg > dgx-1.svg
  trainyard topology --cluster dgx-a100 --format nccl-xml --output dgx-a100.xml
)";

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

std::string written(const std::string& form, const Cluster& cluster, const OptionReader& reader) {
  if (form == "dot") {
    return to_dot(cluster.topology);
  }
  if (form == "nccl-xml") {
    return write_nccl_xml(to_nccl_xml(chosen_server(cluster, reader), cluster.catalogue));
  }
  if (form == "smi") {
    return write_smi_matrix(to_smi_matrix(chosen_server(cluster, reader), cluster.catalogue));
  }
  Document document = document_of(cluster);
  if (form == "json" || reader.kept() != nullptr) {
    document.add_detail("graph", graph_json(cluster.topology));
  }
  keep_result(reader.kept(), document);
  return render(document, *parse_format(form));
}

int run_topology(const OptionReader& reader, std::ostream& out) {
  spdlog::logger log = make_logger(reader);
  const InputNames inputs = read_input_names(reader);
  const std::string form = reader.word("format");
  const std::optional<std::string> file = output_file(reader, "output");
  const Cluster cluster = load_cluster_inputs(inputs, log);
  write_output(file, written(form, cluster, reader), out);
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
               {"format",
                "FORMAT",
                "table (the default) or csv: a summary; json: summary and graph; dot: the graph "
                "for Graphviz; nccl-xml, smi: one server as NCCL's topology file (NCCL_TOPO_FILE), "
                "as the matrix of nvidia-smi topo -m",
                {.role = Role::Result,
                 .choices = "table|csv|json|dot|nccl-xml|smi",
                 .synonyms = "json=json dot=dot nccl-xml=nccl-xml smi=smi csv=csv"}},
               {"server",
                "N",
                "which server, for nccl-xml and smi (default: 0)",
                {.needs = "format=nccl-xml|smi"}},
               output_file_option()},
           log_options()}),
      .example = kTopologyExample,
      .run = run_topology};
}

}  // namespace trainyard
