// SPDX-License-Identifier: Apache-2.0
// By max-flow min-cut the flow is the least capacity of any set of vertices that holds the sources:
// tried for all sets of small random graphs.
#include "support/catch.h"

#include "topology/graph/max_flow.h"

#include <algorithm>
#include <limits>

#include "sim/random.h"

namespace trainyard {
namespace {

std::int64_t min_cut(const FlowProblem& problem) {
  const std::size_t vertices = problem.supply.size();
  std::int64_t min = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t set = 0; set < (1U << vertices); ++set) {
    const auto holds = [&](std::size_t vertex) { return ((set >> vertex) & 1U) == 1U; };
    std::int64_t cut = 0;
    for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
      cut += holds(vertex) ? problem.demand[vertex] : problem.supply[vertex];
    }
    for (const FlowEdge& edge : problem.edges) {
      cut += holds(edge.source) && !holds(edge.target) ? edge.capacity : 0;
    }
    min = std::min(min, cut);
  }
  return min;
}

FlowProblem random_problem(RandomStream& random) {
  const auto vertices = static_cast<std::uint32_t>(2 + random.below(8));
  // Few values, so that some vertices are alike.
  const auto value = [&](std::uint64_t values) {
    return static_cast<std::int64_t>(random.below(values)) * 1'000'000'007;
  };
  FlowProblem problem;
  for (std::uint32_t vertex = 0; vertex < vertices; ++vertex) {
    problem.supply.push_back(value(3));
    problem.demand.push_back(value(3));
  }
  const std::uint64_t edges = random.below(3ULL * vertices);
  for (std::uint64_t edge = 0; edge < edges; ++edge) {
    const auto source = static_cast<std::uint32_t>(random.below(vertices));
    const auto target = static_cast<std::uint32_t>(random.below(vertices));
    if (source != target) {
      problem.edges.push_back({.source = source, .target = target, .capacity = value(4)});
    }
  }
  return problem;
}

// `copies` rings of `size` vertices; vertex i of each is joined to i of the next copy.
FlowProblem torus(std::uint32_t size, std::uint32_t copies, std::int64_t capacity) {
  FlowProblem problem{.supply = std::vector<std::int64_t>(std::size_t{size} * copies, 0),
                      .demand = std::vector<std::int64_t>(std::size_t{size} * copies, 0),
                      .edges = {}};
  const auto join = [&](std::uint32_t a, std::uint32_t b) {
    problem.edges.push_back({.source = a, .target = b, .capacity = capacity});
    problem.edges.push_back({.source = b, .target = a, .capacity = capacity});
  };
  for (std::uint32_t copy = 0; copy < copies; ++copy) {
    for (std::uint32_t place = 0; place < size; ++place) {
      const std::uint32_t vertex = copy * size + place;
      (place < size / 2 ? problem.supply : problem.demand)[vertex] = 1000 * capacity;
      join(vertex, copy * size + (place + 1) % size);
      join(vertex, (copy + 1) % copies * size + place);
    }
  }
  return problem;
}

}  // namespace

TEST_CASE("the flow is the least cut over all sets of vertices") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "max flow");
    const FlowProblem problem = random_problem(random);
    const std::int64_t min = min_cut(problem);
    REQUIRE(max_flow_unmerged(problem) == min);
    REQUIRE(max_flow(problem) == min);
  }
}

TEST_CASE("merging a torus leaves one vertex for each distance from the cut and no other flow") {
  const FlowProblem problem = torus(16, 5, 400);
  const FlowProblem merged = merge_alike(problem);
  // Distances 0 to 3 from the nearest place where the halves meet, on two sides.
  REQUIRE(merged.supply.size() == 8);
  // Each of five rings is cut twice.
  REQUIRE(max_flow_unmerged(problem) == 5 * 2 * 400);
  REQUIRE(max_flow_unmerged(merged) == 5 * 2 * 400);
}

TEST_CASE("what is alike to the last bit is merged, and one odd edge keeps its neighbours apart") {
  FlowProblem problem = torus(8, 4, 100);
  const std::size_t before = merge_alike(problem).supply.size();
  problem.edges[0].capacity += 1;
  REQUIRE(merge_alike(problem).supply.size() > before);
  REQUIRE(max_flow(problem) == max_flow_unmerged(problem));
}

TEST_CASE("without supply, demand or edges nothing flows") {
  REQUIRE(max_flow({.supply = {}, .demand = {}, .edges = {}}) == 0);
  REQUIRE(max_flow({.supply = {5, 0}, .demand = {0, 7}, .edges = {}}) == 0);
  // What enters and leaves at one vertex crosses no edge.
  REQUIRE(max_flow({.supply = {5}, .demand = {7}, .edges = {}}) == 5);
}

}  // namespace trainyard
