// SPDX-License-Identifier: Apache-2.0
#include "report/results/plan_json.h"

#include "report/formats/json.h"

namespace trainyard {
namespace {

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
  const auto add = [&json](const char* key, const std::optional<nccl::Graph>& graph) {
    if (graph) {
      json[key] = plan_json(*graph);
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

Json channels_json(const nccl::Communicator& communicator) {
  Json rings = Json::array();
  for (const nccl::RingChannel& ring : communicator.rings) {
    rings.push_back(ring.order);
  }
  Json trees = Json::array();
  for (const nccl::TreeChannel& tree : communicator.trees) {
    trees.push_back({{"up", tree.up}, {"down", tree.down}});
  }
  return {{"rings", std::move(rings)}, {"trees", std::move(trees)}};
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

std::string render_plan_json(const PlanReport& report) {
  const nccl::Communicator& made = report.communicator;
  Json calls = Json::array();
  for (const PlannedCall& call : report.calls) {
    calls.push_back(plan_json(call));
  }
  Json json = {{"source", report.source},
               {"nccl_version", to_string(made.version)},
               {"ranks", made.ranks},
               {"nodes", made.nodes},
               {"first_rank", made.first_rank},
               {"node_kind", made.node_kind},
               {"least_compute_capability", made.least_compute_capability},
               {"channels", made.channels},
               {"nvls_channels", made.nvls_channels},
               {"nvls_heads", made.nvls_heads},
               {"p2p_channels", made.p2p_channels},
               {"p2p_channels_per_peer", made.p2p_channels_per_peer},
               {"aligned", plan_json(made.aligned)},
               {"kinds", kinds_json(made)}};
  json.update(channels_json(made));
  json["tuning"] = tuning_json(made.tuning);
  json["calls"] = std::move(calls);
  json["notes"] = report.notes;
  return to_text(json);
}

}  // namespace trainyard
