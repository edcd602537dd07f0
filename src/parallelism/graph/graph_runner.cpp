// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_runner.h"

#include <spdlog/fmt/fmt.h>

#include "parallelism/graph/graph_run.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

GraphResult run_graph(Simulator& simulator, const OperationGraph& graph, GraphTraffic& traffic,
                      const GraphRunOptions& options) {
  CHECK(options.compute_ppm.empty() || options.compute_ppm.size() == as_index(graph.ranks()),
        "a factor for each rank");
  CHECK(options.operation_ppm.empty() || options.operation_ppm.size() == graph.operations().size(),
        "a factor for each operation");
  GraphRun run(simulator, graph, traffic, options);
  run.start();
  simulator.run();
  return run.result();
}

void check_finished(const GraphResult& result, std::string_view expected) {
  if (!result.finished()) {
    throw ConfigError(fmt::format("{}, found that {} ({} wait)", expected, result.waits.front(),
                                  result.waits.size()));
  }
}

}  // namespace trainyard
