// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_link_traffic.h"

#include <map>
#include <string>
#include <vector>

#include "support/built_clusters.h"

namespace trainyard {
namespace {

std::string_view purpose_of_part(StepPart part) {
  return part == StepPart::Data ? "data" : "other";
}

// Bytes of a purpose that GPUs send.
double sent_by_gpus(const Cluster& cluster, const std::vector<LinkTraffic>& traffic,
                    const std::string& purpose) {
  double sum = 0.0;
  for (const LinkTraffic& link : traffic) {
    const NodeId source = cluster.topology.link(link.link).source;
    for (const PurposeBytes& part : link.parts) {
      const bool counts =
          part.purpose == purpose && cluster.topology.node(source).kind == NodeKind::Gpu;
      sum += counts ? static_cast<double>(part.bytes.count()) : 0.0;
    }
  }
  return sum;
}

// Each of the ranks in the graph calls twice.
OperationGraph graph_of_calls(OperationGraph graph, std::vector<int> members) {
  const std::vector<int> present(graph.present().begin(), graph.present().end());
  const CommunicatorId all = graph.add_communicator("all", std::move(members));
  for (const int rank : present) {
    const StreamId stream = graph.add_stream(rank, "data");
    for (int call = 0; call < 2; ++call) {
      graph.add_collective(
          stream, "gather", StepPart::Data,
          {.communicator = all, .operation = Operation::AllGather, .size = mib(8), .times = 3});
    }
  }
  return graph;
}

const std::vector<int> kEight{0, 1, 2, 3, 4, 5, 6, 7};

}  // namespace

TEST_CASE("calls of a graph are counted once for all their members", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const double expected = 2.0 * 3.0 * 7.0 * static_cast<double>(mib(8).count());
  for (const bool is_folded : {false, true}) {
    const OperationGraph graph =
        graph_of_calls(is_folded ? OperationGraph(8, {0}) : OperationGraph(8), kEight);
    const auto traffic = graph_link_traffic(cluster, graph, {}, purpose_of_part);
    REQUIRE(traffic.has_value());
    REQUIRE(sent_by_gpus(cluster, *traffic, "data") == Approx(expected));
  }
  // Rank 0 stands for groups that the graph does not have.
  const OperationGraph pairs = graph_of_calls(OperationGraph(8, {0}), {0, 1});
  REQUIRE(!graph_link_traffic(cluster, pairs, {}, purpose_of_part).has_value());
}

TEST_CASE("messages of a graph are counted from their senders", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  OperationGraph graph(8);
  for (int message = 0; message < 5; ++message) {
    graph.add_send(graph.add_stream(2, "out"), "send", StepPart::Pipeline,
                   {.peer = 5, .size = Bytes(1000)});
    graph.add_receive(graph.add_stream(5, "in"), "receive", StepPart::Pipeline,
                      {.peer = 2, .size = Bytes(1000)});
  }
  const auto traffic = graph_link_traffic(cluster, graph, {}, purpose_of_part);
  REQUIRE(traffic.has_value());
  REQUIRE(sent_by_gpus(cluster, *traffic, "other") == 5000.0);
  for (const LinkTraffic& link : *traffic) {
    REQUIRE(link.total() == Bytes(5000));
  }
}

}  // namespace trainyard
