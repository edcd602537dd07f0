// SPDX-License-Identifier: Apache-2.0
#include "topology/graph/dependency_graph.h"

#include <algorithm>

#include "topology/graph/topology.h"

namespace trainyard {

DependencyGraph::DependencyGraph(std::uint32_t links, int channels)
    : channels_(static_cast<std::uint32_t>(channels)),
      buffers_(links * channels_),
      vertices_(buffers_) {}

// A depth-first search with a stack of its own: chains may be as long as there are links.
std::vector<LinkId> DependencyGraph::find_cycle() const {
  const Lists<std::uint32_t> awaited_by(vertices_, edges_);
  enum class State : std::uint8_t { New, Open, Done };
  std::vector<State> states(vertices_, State::New);
  std::vector<std::uint32_t> next(vertices_, 0);  // In the list of each vertex.
  std::vector<std::uint32_t> stack;
  for (std::uint32_t first = 0; first < vertices_; ++first) {
    if (states[first] != State::New) {
      continue;
    }
    stack.push_back(first);
    states[first] = State::Open;
    while (!stack.empty()) {
      const std::uint32_t vertex = stack.back();
      if (next[vertex] == awaited_by.of(vertex).size()) {
        states[vertex] = State::Done;
        stack.pop_back();
        continue;
      }
      const std::uint32_t awaited = awaited_by.of(vertex)[next[vertex]++];
      if (states[awaited] == State::New) {
        states[awaited] = State::Open;
        stack.push_back(awaited);
      } else if (states[awaited] == State::Open) {
        std::vector<LinkId> cycle;
        for (auto member = std::ranges::find(stack, awaited); member != stack.end(); ++member) {
          if (*member < buffers_) {
            cycle.emplace_back(*member / channels_);
          }
        }
        return cycle;
      }
    }
  }
  return {};
}

}  // namespace trainyard
