// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/max_flow.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <map>
#include <tuple>
#include <utility>

#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// Colours spread one hop a round; a torus of 512 in a row needs 128.
constexpr int kMaxRounds = 300;

class Colours {
 public:
  explicit Colours(const FlowProblem& problem) : problem_(problem), hashes_(problem.supply.size()) {
    for (std::size_t vertex = 0; vertex < hashes_.size(); ++vertex) {
      hashes_[vertex] = hash64(hash64(static_cast<std::uint64_t>(problem.supply[vertex])) +
                               static_cast<std::uint64_t>(problem.demand[vertex]));
    }
    rank();
  }

  // Refines until no class falls apart any more.
  void refine() {
    for (int round = 0; round < kMaxRounds; ++round) {
      const std::size_t before = count_;
      split();
      if (count_ == before) {
        return;
      }
    }
  }

  // Hashes may collide and rounds may run out, so the partition is looked at itself.
  [[nodiscard]] bool is_equitable() const {
    using Entry = std::tuple<std::uint32_t, bool, std::uint32_t, std::int64_t>;
    std::vector<Entry> entries;  // Vertex, whether from it, the other's class, capacity.
    for (const FlowEdge& edge : problem_.edges) {
      entries.emplace_back(edge.source, true, colours_[edge.target], edge.capacity);
      entries.emplace_back(edge.target, false, colours_[edge.source], edge.capacity);
    }
    std::ranges::sort(entries);
    using Total = std::tuple<bool, std::uint32_t, std::int64_t>;
    std::vector<std::vector<Total>> of_class(count_);
    std::vector<bool> seen(count_, false);
    std::vector<Total> totals;
    std::size_t next = 0;
    for (std::uint32_t vertex = 0; vertex < colours_.size(); ++vertex) {
      totals.clear();
      for (; next < entries.size() && std::get<0>(entries[next]) == vertex; ++next) {
        const auto& [ignored, from, other, capacity] = entries[next];
        if (totals.empty() || std::pair(std::get<0>(totals.back()), std::get<1>(totals.back())) !=
                                  std::pair(from, other)) {
          totals.emplace_back(from, other, 0);
        }
        std::get<2>(totals.back()) += capacity;
      }
      const std::uint32_t colour = colours_[vertex];
      if (seen[colour] && of_class[colour] != totals) {
        return false;
      }
      if (!seen[colour]) {
        seen[colour] = true;
        of_class[colour] = totals;
      }
    }
    return true;
  }

  [[nodiscard]] FlowProblem merged() const {
    FlowProblem result{.supply = std::vector<std::int64_t>(count_, 0),
                       .demand = std::vector<std::int64_t>(count_, 0),
                       .edges = {}};
    for (std::size_t vertex = 0; vertex < colours_.size(); ++vertex) {
      result.supply[colours_[vertex]] += problem_.supply[vertex];
      result.demand[colours_[vertex]] += problem_.demand[vertex];
    }
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> capacities;
    for (const FlowEdge& edge : problem_.edges) {
      if (colours_[edge.source] != colours_[edge.target]) {
        capacities[{colours_[edge.source], colours_[edge.target]}] += edge.capacity;
      }
    }
    for (const auto& [ends, capacity] : capacities) {
      result.edges.push_back({.source = ends.first, .target = ends.second, .capacity = capacity});
    }
    return result;
  }

 private:
  // Numbers the hashes in their order.
  void rank() {
    std::vector<std::uint64_t> values = hashes_;
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    count_ = values.size();
    colours_.resize(hashes_.size());
    for (std::size_t vertex = 0; vertex < hashes_.size(); ++vertex) {
      colours_[vertex] = static_cast<std::uint32_t>(
          std::ranges::lower_bound(values, hashes_[vertex]) - values.begin());
    }
  }

  // A vertex gets the colour of (its colour, the sum over its edges of the other's colour and the
  // capacity): sums, so that the order of edges does not matter.
  void split() {
    std::vector<std::uint64_t> next(hashes_.size());
    for (std::size_t vertex = 0; vertex < hashes_.size(); ++vertex) {
      next[vertex] = hash64(hashes_[vertex]);
    }
    for (const FlowEdge& edge : problem_.edges) {
      const auto capacity = static_cast<std::uint64_t>(edge.capacity);
      next[edge.source] += hash64(hash64(hashes_[edge.target] ^ capacity));
      next[edge.target] += hash64(hashes_[edge.source] ^ (capacity << 1U));
    }
    hashes_ = std::move(next);
    rank();
  }

  const FlowProblem& problem_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> colours_;
  std::size_t count_ = 0;
};

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct Arc {
  std::int64_t capacity = 0;
  std::int64_t residual = 0;
  Traits::edge_descriptor reverse = {};
};
using Graph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Arc>;

// One direction and its residual. The two directions of a link are two such pairs: Boost tells what
// flows back by a capacity of zero when it turns the preflow into a flow.
void add_arc(Graph& graph, std::size_t source, std::size_t target, std::int64_t capacity) {
  const auto forward = boost::add_edge(source, target, graph).first;
  const auto backward = boost::add_edge(target, source, graph).first;
  graph[forward].capacity = capacity;
  graph[forward].reverse = backward;
  graph[backward].reverse = forward;
}

}  // namespace

FlowProblem merge_alike(const FlowProblem& problem) {
  Colours colours(problem);
  colours.refine();
  return colours.is_equitable() ? colours.merged() : problem;
}

std::int64_t max_flow_unmerged(const FlowProblem& problem) {
  const std::size_t vertices = problem.supply.size();
  CHECK(problem.demand.size() == vertices, "supply and demand of different vertices");
  Graph graph(vertices + 2);
  for (std::size_t vertex = 0; vertex < vertices; ++vertex) {
    // Supply and demand of the same vertex need no edge of the graph, but count.
    add_arc(graph, vertices, vertex, problem.supply[vertex]);
    add_arc(graph, vertex, vertices + 1, problem.demand[vertex]);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> capacities;
  for (const FlowEdge& edge : problem.edges) {
    capacities[{edge.source, edge.target}] += edge.capacity;
  }
  for (const auto& [ends, capacity] : capacities) {
    add_arc(graph, ends.first, ends.second, capacity);
  }
  return boost::push_relabel_max_flow(
      graph, vertices, vertices + 1,
      boost::capacity_map(boost::get(&Arc::capacity, graph))
          .residual_capacity_map(boost::get(&Arc::residual, graph))
          .reverse_edge_map(boost::get(&Arc::reverse, graph))
          .vertex_index_map(boost::get(boost::vertex_index, graph)));
}

std::int64_t max_flow(const FlowProblem& problem) {
  return max_flow_unmerged(merge_alike(problem));
}

}  // namespace trainyard
