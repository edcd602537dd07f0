// SPDX-License-Identifier: Apache-2.0
#include "report/results/plan_report.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

#include "report/formats/json.h"
#include "report/results/plan_info.h"

namespace trainyard {
namespace {

using nccl::Algorithm;
using nccl::Communicator;
using nccl::Graph;
using nccl::GraphSet;
using nccl::kProtocols;
using nccl::Protocol;

// Limit for an order of GPUs or ranks.
constexpr std::size_t kMaxNames = 16;

Column left(const char* name) {
  return column(name, "", Align::Left);
}

std::string joined(const std::vector<int>& numbers) {
  const std::size_t shown = std::min(numbers.size(), kMaxNames);
  const std::string text = fmt::format(
      "{}", fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(shown), " "));
  return shown == numbers.size() ? text : text + " ...";
}

template <typename Visit>
void for_each_graph(const GraphSet& graphs, Visit visit) {
  const std::array<std::pair<const char*, const Graph*>, 5> all{
      {{"ring", &graphs.ring},
       {"tree", &graphs.tree},
       {"CollNet chain", &graphs.collnet_chain},
       {"CollNet direct", &graphs.collnet_direct},
       {"NVLS", &graphs.nvls}}};
  for (const auto& [name, graph] : all) {
    if (graph->exists()) {
      visit(name, *graph);
    }
  }
}

// --- What the search found ---------------------------------------------------------------------

std::string_view pattern_name(nccl::GraphPattern pattern) {
  constexpr std::array<std::string_view, 7> kNames{"",     "balanced tree", "split tree",    "tree",
                                                   "ring", "NVLS",          "CollNet direct"};
  return kNames.at(static_cast<std::size_t>(pattern));
}

void add_graphs(Table& table, const std::string& nodes, const GraphSet& graphs) {
  for_each_graph(graphs, [&](const char* name, const Graph& graph) {
    table.add_row(
        {Cell::of(name), Cell::of(nodes),
         Cell::of(
             fmt::format("{} ({})", static_cast<int>(graph.pattern), pattern_name(graph.pattern))),
         Cell::count(graph.channel_count), Cell::of(fmt::format("{:g}", graph.bw_intra)),
         Cell::of(fmt::format("{:g}", graph.bw_inter)),
         Cell::of(fmt::format("{}/{}", to_string(graph.type_intra), to_string(graph.type_inter))),
         Cell::count(graph.cross_nic), Cell::yes_no(graph.same_channels)});
  });
}

Table search_table(const Communicator& made) {
  Table table({left("graph"), left("nodes"), left("pattern"), column("channels", ""),
               column("intra", "", Align::Right, "(GB/s)"),
               column("inter", "", Align::Right, "(GB/s)"), left("paths"), column("crossNic", ""),
               left("same")});
  add_graphs(table, "all", made.aligned);
  // Kinds of nodes, each by its first node, where they differ.
  std::vector<std::size_t> different;
  for (std::size_t kind = 0; kind < made.graphs.size(); ++kind) {
    const bool known = std::any_of(different.begin(), different.end(), [&](std::size_t other) {
      return made.graphs[kind] == made.graphs[other];
    });
    if (!known) {
      different.push_back(kind);
    }
  }
  if (different.size() > 1) {
    for (const std::size_t kind : different) {
      const auto first =
          std::find(made.node_kind.begin(), made.node_kind.end(), static_cast<int>(kind));
      const auto count =
          std::count_if(made.node_kind.begin(), made.node_kind.end(), [&](int other) {
            return made.graphs[kind] == made.graphs[static_cast<std::size_t>(other)];
          });
      add_graphs(table, fmt::format("{}, as {}", count, first - made.node_kind.begin()),
                 made.graphs[kind]);
    }
  }
  return table;
}

// --- Channels ----------------------------------------------------------------------------------

// The view of rank 0 and its node on a channel.
struct ChannelView {
  std::string ring;
  std::string nics;
  std::string chain;
  std::string tree_nic;
  std::vector<int> channels = {};
  std::vector<int> roots = {};
  [[nodiscard]] bool same(const ChannelView& other) const {
    return ring == other.ring && nics == other.nics && chain == other.chain &&
           tree_nic == other.tree_nic;
  }
};

int root_of(const nccl::TreeChannel& tree) {
  return static_cast<int>(std::find(tree.up.begin(), tree.up.end(), nccl::kNoRank) -
                          tree.up.begin());
}

// The ranks of node 0 from the one at the front downwards.
std::vector<int> chain_of(const Communicator& made, const nccl::TreeChannel& tree) {
  const int ranks = made.first_rank[1];
  const auto in_node = [ranks](int rank) { return rank != nccl::kNoRank && rank < ranks; };
  int rank = 0;
  while (in_node(tree.up[static_cast<std::size_t>(rank)])) {
    rank = tree.up[static_cast<std::size_t>(rank)];
  }
  std::vector<int> chain;
  while (rank != nccl::kNoRank) {
    chain.push_back(rank);
    const auto& down = tree.down[static_cast<std::size_t>(rank)];
    const auto next = std::find_if(down.begin(), down.end(), in_node);
    rank = next == down.end() ? nccl::kNoRank : *next;
  }
  return chain;
}

std::vector<ChannelView> views_of(const Communicator& made) {
  std::vector<ChannelView> views;
  for (int channel = 0; channel < made.channels; ++channel) {
    const auto index = static_cast<std::size_t>(channel);
    ChannelView view{.ring = joined(made.rings[index].order),
                     .nics = "-",
                     .chain = joined(chain_of(made, made.trees[index])),
                     .tree_nic = "-"};
    if (made.nodes > 1) {
      const nccl::NodeNics& nics = made.nics[static_cast<std::size_t>(made.node_kind[0])];
      view.nics = fmt::format("{}/{}", nics.ring_in[index], nics.ring_out[index]);
      view.tree_nic = std::to_string(nics.tree[index]);
    }
    auto known = std::find_if(views.begin(), views.end(),
                              [&](const ChannelView& other) { return other.same(view); });
    if (known == views.end()) {
      views.push_back(std::move(view));
      known = views.end() - 1;
    }
    known->channels.push_back(channel);
    known->roots.push_back(root_of(made.trees[index]));
  }
  return views;
}

void add_channels(const Communicator& made, Document& document) {
  Table table({left("channels"), left("ring from rank 0"), left("NIC in/out"),
               left("tree in node 0"), left("NIC"), left("root ranks")});
  for (const ChannelView& view : views_of(made)) {
    table.add_row({Cell::of(joined(view.channels)), Cell::of(view.ring), Cell::of(view.nics),
                   Cell::of(view.chain), Cell::of(view.tree_nic), Cell::of(joined(view.roots))});
  }
  std::string title = fmt::format(
      "Channels: {} of collectives, {} of NVLS, {} of sends and receives ({} for each peer)",
      made.channels, made.nvls_channels, made.p2p_channels, made.p2p_channels_per_peer);
  if (made.nvls_heads > 0) {
    const std::vector<int>& nics = made.nics[static_cast<std::size_t>(made.node_kind[0])].nvls;
    title += fmt::format("; NVLS heads of a node: {}{}", made.nvls_heads,
                         nics.empty() ? "" : ", of node 0 on NICs " + joined(nics));
  }
  document.add_table(std::move(title), std::move(table));
}

// --- Cost model --------------------------------------------------------------------------------

Table tuning_table(const nccl::TuningTable& tuning) {
  Table table({left("function"), left("algorithm"), column("LL", ""), column("LL128", ""),
               column("Simple", "")});
  for (const nccl::Function function : nccl::kFunctions) {
    for (const Algorithm algorithm : nccl::kAlgorithms) {
      std::vector<Cell> cells{Cell::of(to_string(function)), Cell::of(to_string(algorithm))};
      bool available = false;
      for (const Protocol protocol : kProtocols) {
        const nccl::TuningCell& cell = tuning.cell(function, algorithm, protocol);
        available = available || cell.bandwidth > 0.0;
        cells.push_back(cell.bandwidth > 0.0
                            ? Cell::of(fmt::format("{:.1f}/{:.1f}", cell.latency, cell.bandwidth))
                            : Cell::none());
      }
      if (available) {
        table.add_row(std::move(cells));
      }
    }
  }
  return table;
}

// --- Calls -------------------------------------------------------------------------------------

std::string chunk_text(const nccl::CallPlan& plan) {
  return plan.parts.empty() ? "-" : to_string(plan.parts.front().chunk);
}

bool same_choice(const nccl::CostRow& a, const nccl::CostRow& b) {
  return a.algorithm == b.algorithm && a.protocol == b.protocol;
}

// Returns the rows that were available for any of the calls.
std::vector<nccl::CostRow> compared(const std::vector<PlannedCall>& calls, Operation operation) {
  std::vector<nccl::CostRow> rows;
  for (const Algorithm algorithm : nccl::kAlgorithms) {
    for (const Protocol protocol : kProtocols) {
      const nccl::CostRow row{.algorithm = algorithm, .protocol = protocol};
      const bool available = std::any_of(calls.begin(), calls.end(), [&](const PlannedCall& call) {
        return call.operation == operation &&
               std::any_of(call.plan.costs.begin(), call.plan.costs.end(),
                           [&](const nccl::CostRow& cost) {
                             return same_choice(cost, row) && cost.time_us;
                           });
      });
      if (available) {
        rows.push_back(row);
      }
    }
  }
  return rows;
}

Cell cost_cell(const nccl::CallPlan& plan, const nccl::CostRow& wanted) {
  const auto found = std::find_if(plan.costs.begin(), plan.costs.end(),
                                  [&](const auto& cost) { return same_choice(cost, wanted); });
  if (found == plan.costs.end() || !found->time_us) {
    return Cell::none();
  }
  const bool chosen = plan.algorithm == wanted.algorithm && plan.protocol == wanted.protocol;
  return Cell::of(fmt::format("{}{:.1f}", chosen ? "*" : "", *found->time_us));
}

Table call_table(const std::vector<PlannedCall>& calls, Operation operation) {
  std::vector<Column> columns{column("size", ""),     left("algorithm"),     left("protocol"),
                              column("channels", ""), column("threads", ""), column("chunk", "")};
  const std::vector<nccl::CostRow> rows = compared(calls, operation);
  for (const nccl::CostRow& row : rows) {
    columns.push_back(column(std::string(to_string(row.algorithm)), "", Align::Right,
                             std::string(to_string(row.protocol))));
  }
  columns.push_back(left("reason"));
  Table table(std::move(columns));
  for (const PlannedCall& call : calls) {
    if (call.operation != operation) {
      continue;
    }
    std::vector<Cell> cells{
        Cell::of(to_string(call.size)),          Cell::of(to_string(call.plan.algorithm)),
        Cell::of(to_string(call.plan.protocol)), Cell::count(call.plan.channels),
        Cell::count(call.plan.threads),          Cell::of(chunk_text(call.plan))};
    for (const nccl::CostRow& row : rows) {
      cells.push_back(cost_cell(call.plan, row));
    }
    cells.push_back(Cell::of(call.plan.reason));
    table.add_row(std::move(cells));
  }
  return table;
}

std::vector<Operation> operations_of(const std::vector<PlannedCall>& calls) {
  std::vector<Operation> operations;
  for (const PlannedCall& call : calls) {
    if (std::find(operations.begin(), operations.end(), call.operation) == operations.end()) {
      operations.push_back(call.operation);
    }
  }
  return operations;
}

// --- JSON --------------------------------------------------------------------------------------

Json plan_json(std::optional<int> value) {
  return value ? Json(*value) : Json(nullptr);
}

Json plan_json(const nccl::Graph& graph) {
  Json channels = Json::array();
  for (const nccl::GraphChannel& channel : graph.channels) {
    channels.push_back({{"net_in", plan_json(channel.net_in)},
                        {"gpus", channel.gpus},
                        {"net_out", plan_json(channel.net_out)}});
  }
  return {
      {"pattern", static_cast<int>(graph.pattern)}, {"cross_nic", graph.cross_nic},
      {"channel_count", graph.channel_count},       {"bandwidth_intra_gb_per_s", graph.bw_intra},
      {"bandwidth_inter_gb_per_s", graph.bw_inter}, {"latency_inter_us", graph.latency_inter},
      {"type_intra", to_string(graph.type_intra)},  {"type_inter", to_string(graph.type_inter)},
      {"same_channels", graph.same_channels},       {"channels", std::move(channels)}};
}

Json plan_json(const nccl::GraphSet& graphs) {
  Json json = {{"ring", plan_json(graphs.ring)}, {"tree", plan_json(graphs.tree)}};
  const auto add = [&json](const char* key, const nccl::Graph& graph) {
    if (graph.exists()) {
      json[key] = plan_json(graph);
    }
  };
  add("nvls", graphs.nvls);
  add("collnet_chain", graphs.collnet_chain);
  add("collnet_direct", graphs.collnet_direct);
  return json;
}

Json plan_json(const nccl::NodeNics& nics) {
  return {{"ring_in", nics.ring_in},
          {"ring_out", nics.ring_out},
          {"tree", nics.tree},
          {"nvls", nics.nvls}};
}

Json kinds_json(const nccl::Communicator& communicator) {
  Json kinds = Json::array();
  for (std::size_t kind = 0; kind < communicator.graphs.size(); ++kind) {
    kinds.push_back({{"graphs", plan_json(communicator.graphs[kind])},
                     {"nics", plan_json(communicator.nics[kind])}});
  }
  return kinds;
}

void add_channel_details(const nccl::Communicator& communicator, Document& document) {
  Json rings = Json::array();
  for (const nccl::RingChannel& ring : communicator.rings) {
    rings.push_back(ring.order);
  }
  Json trees = Json::array();
  for (const nccl::TreeChannel& tree : communicator.trees) {
    trees.push_back({{"up", tree.up}, {"down", tree.down}});
  }
  document.add_detail("rings", std::move(rings));
  document.add_detail("trees", std::move(trees));
}

Json tuning_json(const nccl::TuningTable& table) {
  Json rows = Json::array();
  for (const nccl::Function function : nccl::kFunctions) {
    for (const nccl::Algorithm algorithm : nccl::kAlgorithms) {
      for (const nccl::Protocol protocol : nccl::kProtocols) {
        const nccl::TuningCell& cell = table.cell(function, algorithm, protocol);
        const auto a = static_cast<std::size_t>(algorithm);
        const auto p = static_cast<std::size_t>(protocol);
        rows.push_back({{"function", to_string(function)},
                        {"algorithm", to_string(algorithm)},
                        {"protocol", to_string(protocol)},
                        {"available", cell.bandwidth > 0.0},
                        {"latency_us", cell.latency},
                        {"bandwidth_gb_per_s", cell.bandwidth},
                        {"max_threads", table.max_threads[a][p]},
                        {"thread_threshold_bytes", table.thread_thresholds[a][p]}});
      }
    }
  }
  return rows;
}

Json plan_json(const PlannedCall& call) {
  const nccl::CallPlan& plan = call.plan;
  Json parts = Json::array();
  for (const nccl::ChannelPart& part : plan.parts) {
    parts.push_back({{"channels", part.channels},
                     {"bytes", part.bytes.count()},
                     {"chunk_bytes", part.chunk.count()}});
  }
  Json costs = Json::array();
  for (const nccl::CostRow& row : plan.costs) {
    costs.push_back({{"algorithm", to_string(row.algorithm)},
                     {"protocol", to_string(row.protocol)},
                     {"time_us", row.time_us ? Json(*row.time_us) : Json(nullptr)}});
  }
  return {{"operation", to_string(call.operation)},
          {"size_bytes", call.size.count()},
          {"bytes", plan.bytes.count()},
          {"algorithm", to_string(plan.algorithm)},
          {"protocol", to_string(plan.protocol)},
          {"nccl_estimate_us", plan.time_us},
          {"channels", plan.channels},
          {"threads", plan.threads},
          {"slices", plan.slices},
          {"step_bytes", plan.step.count()},
          {"chunk_steps", plan.chunk_steps},
          {"parts", std::move(parts)},
          {"costs", std::move(costs)},
          {"reason", plan.reason}};
}

}  // namespace

Document document_of(const PlanReport& report) {
  const Communicator& made = report.communicator;
  Document document{
      .heading = {fmt::format("Planned by Trainyard as {} does: {}, {} rank{} on {} node{}",
                              nccl::release_of(made), report.source, made.ranks,
                              made.ranks == 1 ? "" : "s", made.nodes, made.nodes == 1 ? "" : "s")},
      .notes = report.notes};
  const std::initializer_list<std::pair<const char*, Json>> details{
      {"source", report.source},
      {"nccl_version", to_string(made.version)},
      {"ranks", made.ranks},
      {"nodes", made.nodes},
      {"first_rank", made.first_rank},
      {"node_kind", made.node_kind},
      {"least_compute_capability", made.min_compute_capability},
      {"channels", made.channels},
      {"nvls_channels", made.nvls_channels},
      {"nvls_heads", made.nvls_heads},
      {"p2p_channels", made.p2p_channels},
      {"p2p_channels_per_peer", made.p2p_channels_per_peer},
      {"aligned", plan_json(made.aligned)},
      {"kinds", kinds_json(made)}};
  for (const auto& [key, value] : details) {
    document.add_detail(key, value);
  }
  add_channel_details(made, document);
  document.add_detail("tuning", tuning_json(made.tuning));
  document.add_table("Search: channels of one node, bandwidth of each", search_table(made));
  add_channels(made, document);
  document.add_table(
      "NCCL's cost model: latency in us / bandwidth in GB/s; for choosing, not a prediction",
      tuning_table(made.tuning));
  Json calls = Json::array();
  for (const PlannedCall& call : report.calls) {
    calls.push_back(plan_json(call));
  }
  document.add_detail("calls", std::move(calls));
  for (const Operation operation : operations_of(report.calls)) {
    document.add_table(fmt::format("{}: choice by size, then NCCL's estimate of every way in us",
                                   to_string(operation)),
                       call_table(report.calls, operation));
  }
  return document;
}

std::string render_plan_info(const PlanReport& report) {
  const Communicator& made = report.communicator;
  std::string text;
  for_each_graph(made.graphs[static_cast<std::size_t>(made.node_kind[0])],
                 [&](const char*, const Graph& graph) { text += graph_line(graph); });
  text += ring_lines(made) + tree_line(made, 0) + tuning_lines(made.tuning) +
          threshold_line(made.tuning) + channels_line(made);
  for (const PlannedCall& call : report.calls) {
    text += call_line(call.plan);
  }
  for (const std::string& note : report.notes) {
    text += fmt::format("# {}\n", note);
  }
  return text;
}

}  // namespace trainyard
