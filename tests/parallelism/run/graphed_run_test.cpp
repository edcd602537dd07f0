// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/graphed_run.h"

#include <string>

#include "sim/config_error.h"
#include "support/imported_workloads.h"

namespace trainyard {

TEST_CASE("a graph runs alone and on a shared network, and says who waits for whom",
          "[graphed_run]") {
  const Cluster cluster = round_cluster(2);
  StepTables tables;
  OperationGraph graph(2);
  const StreamId first = graph.add_stream(0, "stream");
  graph.add_compute(first, "work", StepPart::Linear, microseconds(3));
  graph.add_compute(graph.add_stream(1, "stream"), "work", StepPart::Linear, microseconds(5));
  for (const bool shares_network : {false, true}) {
    tables.shares_network = shares_network;
    const GraphedRun run = GraphOnCluster(cluster, tables).run(graph, {}, "test");
    REQUIRE(run.result.finish == microseconds(5));
    REQUIRE(run.busiest == 1);
    REQUIRE(run.calls == 0);
  }
  graph.add_receive(first, "never", StepPart::Pipeline, {.peer = 1, .size = Bytes(1)});
  REQUIRE_THROWS_MATCHES(
      GraphOnCluster(cluster, tables).run(graph, {}, "test"), ConfigError,
      Catch::Matchers::Predicate<ConfigError>([](const ConfigError& error) {
        return std::string(error.what()).rfind("test: expected operations that", 0) == 0;
      }));
}

}  // namespace trainyard
