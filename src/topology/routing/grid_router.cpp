// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/grid_router.h"

#include <algorithm>
#include <limits>

#include "sim/check.h"
#include "topology/graph/dependency_graph.h"
#include "topology/routing/grid_dependencies.h"

namespace trainyard {
namespace {

constexpr std::uint32_t kUnseen = std::numeric_limits<std::uint32_t>::max();

}  // namespace

GridRouter::GridRouter(const Topology& topology, const RoutingOptions& options)
    : AccessRouter(topology, options),
      switches_(options.fabric.switches),
      joins_all_(options.fabric.joins_all),
      is_valiant_(traits(options.policy).is_valiant),
      wraps_(options.fabric.wraps),
      slots_({0}) {
  std::uint32_t stride = 1;
  bool any_wrap = false;
  for (std::uint32_t dimension = 0; dimension < options.fabric.dimensions.size(); ++dimension) {
    const auto length = static_cast<std::uint32_t>(options.fabric.dimensions[dimension]);
    lengths_.push_back(length);
    strides_.push_back(stride);
    identity_.push_back(dimension);
    slots_.push_back(slots_.back() + (joins_all_ ? length : 2));
    stride *= length;
    any_wrap = any_wrap || wraps_[dimension];
  }
  CHECK(stride == switches_, "the shape of a grid does not give its number of switches");
  channels_of_phase_ = any_wrap && channels_ > 1 ? 2 : 1;
  phases_ = channels_ / channels_of_phase_;
  enter_ports();
  for (std::uint32_t at = 0; at < switches_; ++at) {
    for (std::uint32_t slot = 0; slot < slots_.back(); ++slot) {
      is_healthy_ = is_healthy_ && (!neighbour(at, slot) || !links(at, slot).empty());
    }
  }
}

void GridRouter::enter_ports() {
  const auto place = [&](LinkId link) {
    const std::uint32_t source = *access_.number(topology_.link(link).source);
    return std::size_t{source} * slots_.back() + port(topology_.link(link)).slot;
  };
  std::vector<std::uint32_t> counts(std::size_t{switches_} * slots_.back(), 0);
  for (const LinkId link : access_.trunks()) {
    parallel_ = std::max<std::size_t>(parallel_, ++counts[place(link)]);
  }
  ports_.assign(counts.size() * parallel_, kNoLink);
  for (const LinkId link : access_.trunks()) {
    const std::size_t first = place(link) * parallel_;
    *std::find(ports_.begin() + static_cast<std::ptrdiff_t>(first), ports_.end(), kNoLink) = link;
  }
}

std::uint32_t GridRouter::dimension_of(std::uint32_t slot) const {
  const auto next = std::upper_bound(slots_.begin(), slots_.end(), slot);
  return static_cast<std::uint32_t>(next - slots_.begin()) - 1;
}

std::optional<std::uint32_t> GridRouter::neighbour(std::uint32_t at, std::uint32_t slot) const {
  const std::uint32_t dimension = dimension_of(slot);
  const std::uint32_t own = coordinate(at, dimension);
  const std::uint32_t length = lengths_[dimension];
  std::uint32_t to = slot - slots_[dimension];
  if (!joins_all_) {
    const bool up = to == 0;
    if (!wraps_[dimension] && own == (up ? length - 1 : 0)) {
      return std::nullopt;
    }
    to = (own + (up ? 1 : length - 1)) % length;
  }
  if (to == own) {
    return std::nullopt;
  }
  return at - own * strides_[dimension] + to * strides_[dimension];
}

GridRouter::Port GridRouter::port(const Link& link) const {
  const std::uint32_t from = *access_.number(link.source);
  const std::uint32_t to = *access_.number(link.target);
  std::uint32_t dimension = 0;
  while (dimension + 1 < lengths_.size() &&
         coordinate(from, dimension) == coordinate(to, dimension)) {
    ++dimension;
  }
  const std::uint32_t last = coordinate(to, dimension);
  const std::uint32_t first = coordinate(from, dimension);
  Port port{.dimension = dimension, .slot = slots_[dimension], .is_wrap = false};
  if (joins_all_) {
    port.slot += last;
  } else {
    port.is_wrap = wraps_[dimension] && first + 1 != last && last + 1 != first;
    port.slot += (last > first) == port.is_wrap ? 1 : 0;
  }
  CHECK(neighbour(from, port.slot) == to, "two switches of a grid are joined but not neighbours");
  return port;
}

std::optional<std::uint32_t> GridRouter::steps(std::uint32_t slot, std::uint32_t from,
                                               std::uint32_t to) const {
  const std::uint32_t dimension = dimension_of(slot);
  if (joins_all_) {
    return slot - slots_[dimension] == to ? std::optional<std::uint32_t>(1) : std::nullopt;
  }
  const bool up = slot == slots_[dimension];
  const std::uint32_t length = lengths_[dimension];
  if (wraps_[dimension]) {
    return up ? (to + length - from) % length : (from + length - to) % length;
  }
  if (up ? to > from : from > to) {
    return up ? to - from : from - to;
  }
  return std::nullopt;
}

bool GridRouter::is_clear(std::uint32_t at, std::uint32_t slot, std::uint32_t steps) const {
  for (std::uint32_t step = 0; step < steps; ++step) {
    if (links(at, slot).empty()) {
      return false;
    }
    at = *neighbour(at, slot);
  }
  return true;
}

GridRouter::Ways GridRouter::ways(std::uint32_t at, std::uint32_t dimension,
                                  std::uint32_t to) const {
  const std::uint32_t from = coordinate(at, dimension);
  Ways ways;
  std::uint32_t min_clear = kUnseen;
  const std::uint32_t first = slots_[dimension] + (joins_all_ ? to : 0);
  const std::uint32_t last = joins_all_ ? first : first + 1;
  for (std::uint32_t slot = first; slot <= last; ++slot) {
    const auto distance = steps(slot, from, to);
    if (!distance || *distance > min_clear || (!is_healthy_ && !is_clear(at, slot, *distance))) {
      continue;
    }
    ways.count = *distance < min_clear ? 0 : ways.count;
    min_clear = *distance;
    ways.slots[ways.count++] = slot;
  }
  return ways;
}

std::optional<GridRouter::Way> GridRouter::choose_way(std::uint32_t at, std::uint32_t dimension,
                                                      std::uint32_t to, const Chooser& chooser,
                                                      Ties ties) {
  const Ways possible = ways(at, dimension, to);
  if (possible.count == 0) {
    return std::nullopt;
  }
  if (possible.count == 1 || ties == Ties::First) {
    return Way{possible.slots[0], std::nullopt};
  }
  const std::span<const LinkId> up = links(at, possible.slots[0]);
  const std::span<const LinkId> down = links(at, possible.slots[1]);
  tied_.assign(up.begin(), up.end());
  tied_.insert(tied_.end(), down.begin(), down.end());
  const LinkId chosen = chooser.pick(access_.node(at), tied_, strides_[dimension]);
  const bool goes_up = std::ranges::find(up, chosen) != up.end();
  return Way{possible.slots[goes_up ? 0 : 1], chosen};
}

bool GridRouter::append_ordered(std::uint32_t from, std::uint32_t to, Order order,
                                const Chooser& chooser, Ties ties, std::vector<LinkId>& path) {
  const std::size_t before = path.size();
  std::uint32_t at = from;
  for (const std::uint32_t dimension : order) {
    const std::uint32_t wanted = coordinate(to, dimension);
    if (coordinate(at, dimension) == wanted) {
      continue;
    }
    const auto way = choose_way(at, dimension, wanted, chooser, ties);
    if (!way) {
      path.resize(before);
      return false;
    }
    append_way(at, dimension, wanted, *way, chooser, path);
  }
  return true;
}

void GridRouter::append_way(std::uint32_t& at, std::uint32_t dimension, std::uint32_t to,
                            const Way& way, const Chooser& chooser,
                            std::vector<LinkId>& path) const {
  const std::uint32_t stride = strides_[dimension];
  const std::uint32_t last = lengths_[dimension] - 1;
  const bool up = way.slot == slots_[dimension];
  std::uint32_t place = coordinate(at, dimension);
  std::optional<LinkId> first = way.first;
  while (place != to) {
    path.push_back(first ? *first : chooser.pick(access_.node(at), links(at, way.slot), 1));
    first.reset();
    const std::uint32_t next = joins_all_ ? to
                               : up       ? (place == last ? 0 : place + 1)
                                          : (place == 0 ? last : place - 1);
    at = at - place * stride + next * stride;
    place = next;
  }
}

bool GridRouter::append_around(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                               std::vector<LinkId>& path) {
  std::vector<std::uint32_t> order;
  for (const std::uint32_t dimension : identity_) {
    if (coordinate(from, dimension) != coordinate(to, dimension)) {
      order.push_back(dimension);
    }
  }
  while (std::next_permutation(order.begin(), order.end())) {
    if (append_ordered(from, to, order, chooser, Ties::First, path)) {
      return true;
    }
  }
  return append_shortest(from, to, chooser, path);
}

// Back from the target, so that the path comes out in order.
bool GridRouter::append_shortest(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                 std::vector<LinkId>& path) {
  std::vector<std::uint32_t> next(switches_, kUnseen);  // The port towards the target.
  std::vector<std::uint32_t> queue = {to};
  next[to] = 0;
  for (std::size_t place = 0; place < queue.size() && next[from] == kUnseen; ++place) {
    const std::uint32_t at = queue[place];
    for (std::uint32_t slot = 0; slot < slots_.back(); ++slot) {
      const auto other = neighbour(at, slot);
      if (!other || next[*other] != kUnseen) {
        continue;
      }
      const std::uint32_t dimension = dimension_of(slot);
      const std::uint32_t back = joins_all_ ? slots_[dimension] + coordinate(at, dimension)
                                            : 2 * slots_[dimension] + 1 - slot;
      if (!links(*other, back).empty()) {
        next[*other] = back;
        queue.push_back(*other);
      }
    }
  }
  if (next[from] == kUnseen) {
    return false;
  }
  for (std::uint32_t at = from; at != to; at = *neighbour(at, next[at])) {
    path.push_back(chooser.pick(access_.node(at), links(at, next[at]), 1));
  }
  return true;
}

// Valiant, A scheme for fast parallel communication, 1982.
bool GridRouter::append_valiant(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                std::vector<LinkId>& path) {
  const std::size_t before = path.size();
  const std::uint32_t middle = chooser.draw(switches_);
  if (append_ordered(from, middle, identity_, chooser, Ties::Choose, path) &&
      append_ordered(middle, to, identity_, chooser, Ties::Choose, path)) {
    return true;
  }
  path.resize(before);
  return false;
}

bool GridRouter::append_between(std::uint32_t from, std::uint32_t to, const Chooser& chooser,
                                std::vector<LinkId>& path) {
  return (chooser.policy().is_valiant && from != to && append_valiant(from, to, chooser, path)) ||
         append_ordered(from, to, identity_, chooser, Ties::Choose, path) ||
         append_around(from, to, chooser, path);
}

void GridRouter::virtual_channels(std::span<const LinkId> path,
                                  std::vector<std::uint8_t>& channels) const {
  channels.assign(path.size(), 0);
  std::optional<Port> last;
  int phase = 0;
  bool has_wrapped = false;
  for (std::size_t hop = 0; hop < path.size(); ++hop) {
    const Link& link = topology_.link(path[hop]);
    if (!access_.number(link.source) || !access_.number(link.target)) {
      continue;
    }
    const Port next = port(link);
    const bool same = last && last->dimension == next.dimension;
    const bool breaks_order =
        last && (same ? joins_all_ || last->slot != next.slot || (has_wrapped && next.is_wrap)
                      : next.dimension < last->dimension);
    phase += breaks_order ? 1 : 0;
    has_wrapped = has_wrapped && same && !breaks_order;
    const int behind = has_wrapped && channels_of_phase_ == 2 ? 1 : 0;
    channels[hop] =
        static_cast<std::uint8_t>(std::min(phase, phases_ - 1) * channels_of_phase_ + behind);
    has_wrapped = has_wrapped || next.is_wrap;
    last = next;
  }
}

std::optional<int> GridRouter::diameter() const {
  bool all_have_endpoints = true;
  for (std::uint32_t at = 0; at < switches_; ++at) {
    all_have_endpoints = all_have_endpoints && !access_.ups_of(at).empty();
  }
  if (!is_healthy_ || is_valiant_ || !all_have_endpoints) {
    return std::nullopt;
  }
  std::uint32_t sum = 0;
  for (std::size_t dimension = 0; dimension < lengths_.size(); ++dimension) {
    const std::uint32_t length = lengths_[dimension];
    const std::uint32_t farthest = wraps_[dimension] ? length / 2 : length - 1;
    sum += joins_all_ ? std::min<std::uint32_t>(farthest, 1) : farthest;
  }
  return static_cast<int>(sum);
}

void GridRouter::add_dependencies(DependencyGraph& graph) {
  add_grid_dependencies(*this, graph);
}

}  // namespace trainyard
