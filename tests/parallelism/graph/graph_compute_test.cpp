// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/graph/graph_compute.h"

namespace trainyard {

TEST_CASE("computation of a rank is scaled by its factor, part by part", "[graph_compute]") {
  OperationGraph graph(2);
  const StreamId slow = graph.add_stream(1, "compute");
  StepParts parts;
  parts[StepPart::Linear] = picoseconds(3);
  parts[StepPart::Attention] = picoseconds(5);
  const OperationId mixed = graph.add_compute(slow, "mixed", graph.add_mix(parts));
  const OperationId plain = graph.add_compute(slow, "plain", StepPart::Head, picoseconds(7));
  REQUIRE(compute_parts(graph, mixed, {}) == parts);
  const GraphRunOptions options{.compute_ppm = {1'000'000, 1'500'000}};
  const StepParts scaled = compute_parts(graph, mixed, options);
  REQUIRE(scaled[StepPart::Linear] == picoseconds(5));  // Halves go up.
  REQUIRE(scaled[StepPart::Attention] == picoseconds(8));
  REQUIRE(compute_parts(graph, plain, options)[StepPart::Head] == picoseconds(11));
}

}  // namespace trainyard
