// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/step_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "report/formats/trace.h"
#include "support/step_rates.h"
#include "support/step_times.h"

namespace trainyard {

TEST_CASE("the trace of a step has its ranks, streams, passes and messages", "[step_trace]") {
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  model.layers.resize(8);
  const ParallelPlan plan{.tensor = 2, .pipeline = 2, .data = 2, .global_batch = 8};
  const ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  const SoftwareProfile software = shipped_software("nemo");
  const std::vector<int> servers(8);
  SteadyGroupTimes times(100e9);
  const StepGraphRun step = run_step_graph({.model = model,
                                            .plan = plan,
                                            .rates = rates,
                                            .software = software,
                                            .overlap = {.data = true, .pipeline = true},
                                            .server_of_rank = servers},
                                           times, Folding::Folded);
  const StepMemory memory = step_memory(model, plan, software, {});
  TraceRecorder recorder;
  record_step(step, recorder, &memory);
  const nlohmann::json events = nlohmann::json::parse(chrome_trace(recorder))["traceEvents"];
  std::set<std::string> groups;
  std::set<std::string> tracks;
  std::map<std::string, int> spans;
  std::map<int, double> starts;  // Of arrows.
  double most_gib = 0.0;
  int ends = 0;
  for (const auto& event : events) {
    const std::string kind = event["ph"];
    if (kind == "M" && event["name"] == "process_name") {
      groups.insert(event["args"]["name"].get<std::string>());
    } else if (kind == "M" && event["name"] == "thread_name") {
      tracks.insert(event["args"]["name"].get<std::string>());
    } else if (kind == "X") {
      ++spans[event["name"].get<std::string>()];
    } else if (kind == "C" && event["name"] == "memory (GiB)") {
      most_gib = std::max(most_gib, event["args"]["now"].get<double>());
    } else if (kind == "s") {
      starts[event["id"].get<int>()] = event["ts"].get<double>();
    } else if (kind == "f") {
      ++ends;
      REQUIRE(event["ts"].get<double>() >= starts.at(event["id"].get<int>()));
    }
  }
  REQUIRE(groups == std::set<std::string>{"carried", "rank 0", "rank 4"});
  REQUIRE(most_gib > 0.0);
  REQUIRE(most_gib <= gibibytes(memory.highest().highest().use.device()) * (1 + 1e-5));
  for (const char* name : {"compute", "tensor", "data", "to activation 4", "from activation 0",
                           "to gradient 0", "from gradient 4", "passes of chunk 0"}) {
    REQUIRE(tracks.contains(name));
  }
  REQUIRE(spans["forward of micro-batch 3"] == 2);
  REQUIRE(spans["activation"] == 2 * 4);
  REQUIRE(spans["optimizer"] == 2);
  REQUIRE(ends == 2 * 4 + 1);  // Messages, and the norm of gradients.
  REQUIRE(starts.size() == static_cast<std::size_t>(ends));
}

TEST_CASE("operations of a stream that run at once are on tracks of their own", "[step_trace]") {
  OperationGraph graph(1);
  const StreamId stream = graph.add_stream(0, "free", StreamOrder::Free);
  const OperationId first = graph.add_compute(stream, "a", StepPart::Linear, microseconds(2));
  graph.add_compute(stream, "b", StepPart::Linear, microseconds(3));
  graph.add_dependency(first, graph.add_compute(stream, "c", StepPart::Linear, microseconds(1)));
  SteadyGroupTimes times;
  TimedTraffic traffic(times);
  Simulator simulator;
  TraceRecorder recorder;
  record_graph(graph, run_graph(simulator, graph, traffic), recorder);
  REQUIRE(recorder.tracks().size() == 2);
  REQUIRE(recorder.tracks()[1].name == "free 2");
  REQUIRE(recorder.spans()[0].track == recorder.spans()[2].track);
  REQUIRE(recorder.spans()[1].track != recorder.spans()[0].track);
}

}  // namespace trainyard
