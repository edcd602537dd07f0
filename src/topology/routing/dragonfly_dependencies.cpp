// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/dragonfly_dependencies.h"

#include <algorithm>

namespace trainyard {

DragonflyDependencies::DragonflyDependencies(DependencyGraph& graph, const DragonflyRules& rules,
                                             std::uint32_t switches)
    : graph_(graph),
      rules_(rules),
      // Where links are missing, each group on the way may add one.
      counts_(rules.global_hops + 1 + (rules.is_whole ? 0 : rules.global_hops + 1)),
      first_hub_(graph.add_hubs(switches * static_cast<std::uint32_t>(2 * counts_ + 1))) {}

std::uint32_t DragonflyDependencies::hub(Hub kind, std::uint32_t at, int count) const {
  const int place = (kind == Hub::Local ? 0 : counts_) + count;
  return first_hub_ + at * static_cast<std::uint32_t>(2 * counts_ + 1) +
         static_cast<std::uint32_t>(place);
}

std::uint32_t DragonflyDependencies::end(std::uint32_t at) const {
  return first_hub_ + (at + 1) * static_cast<std::uint32_t>(2 * counts_ + 1) - 1;
}

std::uint32_t DragonflyDependencies::buffer(LinkId link, int count) const {
  return graph_.buffer(link, std::min(count, rules_.channels - 1));
}

void DragonflyDependencies::add_endpoints(std::uint32_t at, std::span<const LinkId> ups,
                                          std::span<const LinkId> downs) {
  for (const LinkId link : ups) {
    add_turn(link, 0, Hub::Local, at, 0);
    add_turn(link, 0, Hub::Global, at, 0);
    graph_.add(graph_.buffer(link, 0), end(at));
  }
  for (const LinkId link : downs) {
    graph_.add(end(at), graph_.buffer(link, 0));
  }
}

void DragonflyDependencies::add_turn(LinkId link, int count, Hub kind, std::uint32_t at,
                                     int next_count) {
  const int max = kind == Hub::Local ? counts_ - 1 : counts_ - 2;
  if (next_count <= max) {
    graph_.add(buffer(link, count), hub(kind, at, next_count));
  }
}

void DragonflyDependencies::add_link(LinkId link, std::uint32_t from, std::uint32_t to,
                                     bool is_local, bool to_leaf) {
  const Hub kind = is_local ? Hub::Local : Hub::Global;
  const int counts = is_local ? counts_ : counts_ - 1;
  for (int count = 0; count < counts; ++count) {
    graph_.add(hub(kind, from, count), buffer(link, count));
    if (is_local) {
      add_local(link, to, count, to_leaf);
      continue;
    }
    add_turn(link, count, Hub::Local, to, count + 1);
    add_turn(link, count, Hub::Global, to, count + 1);
    graph_.add(buffer(link, count), end(to));
  }
}

void DragonflyDependencies::add_local(LinkId link, std::uint32_t to, int count, bool to_leaf) {
  if (!rules_.has_spines || !to_leaf) {
    add_turn(link, count, Hub::Global, to, count);
  }
  if (to_leaf) {
    graph_.add(buffer(link, count), end(to));
  }
  const bool fits = rules_.has_spines && to_leaf == (count > 0);
  if (fits && (!to_leaf || count < rules_.global_hops || !rules_.is_whole)) {
    add_turn(link, count, Hub::Local, to, count);
  }
  const bool breaks_order =
      !rules_.is_whole || (rules_.misroutes && !rules_.has_spines && count == 0);
  if (!fits && breaks_order) {
    add_turn(link, count, Hub::Local, to, count + 1);
  }
}

}  // namespace trainyard
