// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/grid_dependencies.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace trainyard {

// A friend of the router, so not in an unnamed namespace.
class GridDependencies {
 public:
  GridDependencies(GridRouter& router, DependencyGraph& graph)
      : router_(router),
        graph_(graph),
        phases_(router.is_valiant_ ? std::min(router.phases_, 2) : 1) {}

  void add() {
    add_hubs();
    std::vector<Broken> broken;
    for (std::uint32_t dimension = 0; dimension < router_.lengths_.size(); ++dimension) {
      const std::uint32_t rows = router_.switches_ / router_.lengths_[dimension];
      Row whole;
      for (std::uint32_t row = 0; row < rows; ++row) {
        broken.clear();
        if (!router_.is_healthy_ && !is_whole(row, dimension)) {
          add_row(row, dimension, turns_of(row, dimension, broken));
          add_broken(row, dimension, broken);
          continue;
        }
        if (whole.empty()) {
          whole = turns_of(row, dimension, broken);
        }
        add_row(row, dimension, whole);
      }
    }
  }

 private:
  // The turns of ways at one link, by channel within the phase.
  struct Turns {
    bool begins = false;
    std::array<bool, 2> goes_on = {false, false};
    std::array<bool, 2> ends = {false, false};
  };
  // Indexed by place in the row and port of the dimension.
  using Row = std::vector<Turns>;
  struct Broken {
    std::uint32_t from;  // Coordinates.
    std::uint32_t to;
  };

  [[nodiscard]] std::uint32_t hub(std::uint32_t at, int phase, std::size_t dimension) const {
    const std::size_t of_switch = router_.lengths_.size() + 1;
    return first_hub_ + static_cast<std::uint32_t>((at * static_cast<std::size_t>(phases_) +
                                                    static_cast<std::size_t>(phase)) *
                                                       of_switch +
                                                   dimension);
  }

  [[nodiscard]] std::uint32_t switch_at(std::uint32_t row, std::uint32_t dimension,
                                        std::uint32_t place) const {
    const std::uint32_t stride = router_.strides_[dimension];
    return row / stride * stride * router_.lengths_[dimension] + row % stride + place * stride;
  }

  [[nodiscard]] std::uint32_t ports_of(std::uint32_t dimension) const {
    return router_.slots_[dimension + 1] - router_.slots_[dimension];
  }

  [[nodiscard]] bool is_whole(std::uint32_t row, std::uint32_t dimension) const {
    for (std::uint32_t place = 0; place < router_.lengths_[dimension]; ++place) {
      const std::uint32_t at = switch_at(row, dimension, place);
      for (std::uint32_t slot = router_.slots_[dimension]; slot < router_.slots_[dimension + 1];
           ++slot) {
        if (router_.neighbour(at, slot) && router_.links(at, slot).empty()) {
          return false;
        }
      }
    }
    return true;
  }

  // Endpoints enter at the first hub of a switch and leave from the last one of each phase.
  void add_hubs() {
    const std::size_t dimensions = router_.lengths_.size();
    const std::size_t hubs =
        router_.switches_ * static_cast<std::size_t>(phases_) * (dimensions + 1);
    first_hub_ = graph_.add_hubs(static_cast<std::uint32_t>(hubs));
    for (std::uint32_t at = 0; at < router_.switches_; ++at) {
      for (const LinkId link : router_.access_.ups_of(at)) {
        graph_.add(graph_.buffer(link, 0), hub(at, 0, 0));
      }
      for (int phase = 0; phase < phases_; ++phase) {
        for (std::size_t dimension = 0; dimension < dimensions; ++dimension) {
          graph_.add(hub(at, phase, dimension), hub(at, phase, dimension + 1));
        }
        if (phase + 1 < phases_) {
          graph_.add(hub(at, phase, dimensions), hub(at, phase + 1, 0));
        }
        for (const LinkId link : router_.access_.downs_of(at)) {
          graph_.add(hub(at, phase, dimensions), graph_.buffer(link, 0));
        }
      }
    }
  }

  [[nodiscard]] Row turns_of(std::uint32_t row, std::uint32_t dimension,
                             std::vector<Broken>& broken) const {
    const std::uint32_t length = router_.lengths_[dimension];
    Row turns(static_cast<std::size_t>(length) * ports_of(dimension));
    std::vector<std::vector<bool>> taken(ports_of(dimension));  // Indexed by port and steps.
    for (std::uint32_t from = 0; from < length; ++from) {
      const std::uint32_t at = switch_at(row, dimension, from);
      taken.assign(taken.size(), std::vector<bool>(length + 1, false));
      for (std::uint32_t to = 0; to < length; ++to) {
        const GridRouter::Ways ways =
            to == from ? GridRouter::Ways() : router_.ways(at, dimension, to);
        for (std::uint32_t index = 0; index < ways.count; ++index) {
          const std::uint32_t slot = ways.slots[index];
          taken[slot - router_.slots_[dimension]][*router_.steps(slot, from, to)] = true;
        }
        if (to != from && ways.count == 0) {
          broken.push_back({from, to});
        }
      }
      for (std::uint32_t port = 0; port < taken.size(); ++port) {
        const std::uint32_t slot = router_.slots_[dimension] + port;
        // Both halves of a path by Valiant may go one way round the same ring, as one phase.
        if (router_.is_valiant_ && router_.wraps_[dimension]) {
          for (std::uint32_t steps = 1; steps <= length / 2 * 2; ++steps) {
            taken[port][steps] = router_.is_clear(at, slot, steps);
          }
        }
        enter_ways(turns, at, slot, taken[port]);
      }
    }
    return turns;
  }

  // The ways from a switch of the row by a port, of the numbers of links that are taken.
  void enter_ways(Row& turns, std::uint32_t at, std::uint32_t slot,
                  const std::vector<bool>& taken) const {
    const std::uint32_t dimension = router_.dimension_of(slot);
    auto max = static_cast<std::uint32_t>(taken.size()) - 1;
    while (max > 0 && !taken[max]) {
      --max;
    }
    std::size_t channel = 0;
    for (std::uint32_t step = 1; step <= max; ++step) {
      const std::uint32_t place = router_.coordinate(at, dimension);
      Turns& here = turns[place * ports_of(dimension) + slot - router_.slots_[dimension]];
      here.begins = here.begins || step == 1;
      here.ends[channel] = here.ends[channel] || taken[step];
      here.goes_on[channel] = here.goes_on[channel] || step < max;
      channel = passes_date_line(at, slot) ? 1 : channel;
      at = *router_.neighbour(at, slot);
    }
  }

  [[nodiscard]] bool passes_date_line(std::uint32_t at, std::uint32_t slot) const {
    const std::uint32_t dimension = router_.dimension_of(slot);
    const std::uint32_t last = router_.lengths_[dimension] - 1;
    const bool up = slot == router_.slots_[dimension];
    return router_.wraps_[dimension] && router_.channels_of_phase_ == 2 &&
           router_.coordinate(at, dimension) == (up ? last : 0);
  }

  void add_row(std::uint32_t row, std::uint32_t dimension, const Row& turns) {
    for (std::uint32_t index = 0; index < turns.size(); ++index) {
      const std::uint32_t slot = router_.slots_[dimension] + index % ports_of(dimension);
      const std::uint32_t at = switch_at(row, dimension, index / ports_of(dimension));
      for (int phase = 0; phase < phases_; ++phase) {
        for (const LinkId link : router_.links(at, slot)) {
          if (turns[index].begins) {
            graph_.add(hub(at, phase, dimension),
                       graph_.buffer(link, phase * router_.channels_of_phase_));
          }
          for (int channel = 0; channel < router_.channels_of_phase_; ++channel) {
            add_turns(turns[index], link, at, slot, phase, channel);
          }
        }
      }
    }
  }

  void add_turns(const Turns& turns, LinkId link, std::uint32_t at, std::uint32_t slot, int phase,
                 int channel) {
    // With a single phase the second half of Valiant's path begins again in the same channels.
    const bool restarts = router_.is_valiant_ && phases_ == 1;
    const auto bit = static_cast<std::size_t>(channel);
    const int base = phase * router_.channels_of_phase_;
    const std::uint32_t buffer = graph_.buffer(link, base + channel);
    const std::uint32_t next = *router_.neighbour(at, slot);
    if (turns.ends[bit]) {
      graph_.add(buffer, hub(next, phase, restarts ? 0 : router_.dimension_of(slot) + 1));
    }
    if (turns.goes_on[bit]) {
      const int beyond = passes_date_line(at, slot) ? 1 : channel;
      for (const LinkId other : router_.links(next, slot)) {
        graph_.add(buffer, graph_.buffer(other, base + beyond));
      }
    }
  }

  // Pairs of switches whose way in dimension order is broken in this row.
  void add_broken(std::uint32_t row, std::uint32_t dimension, const std::vector<Broken>& broken) {
    const std::uint32_t stride = router_.strides_[dimension];
    const std::uint32_t above = stride * router_.lengths_[dimension];
    const std::uint32_t first = switch_at(row, dimension, 0);
    for (const Broken& way : broken) {
      const std::uint32_t source = first / above * above + way.from * stride;
      const std::uint32_t target = first % stride + way.to * stride;
      for (std::uint32_t lower = 0; lower < stride; ++lower) {
        for (std::uint32_t upper = 0; upper < router_.switches_; upper += above) {
          add_path(source + lower, target + upper);
        }
      }
    }
  }

  // All parallel links stand for the one that the search took.
  void add_path(std::uint32_t from, std::uint32_t to) {
    path_.clear();
    if (!router_.append_around(from, to, Chooser(0), path_)) {
      return;
    }
    router_.virtual_channels(path_, path_channels_);
    const auto parallels = [&](LinkId id) {
      const Link& link = router_.topology_.link(id);
      return router_.links(*router_.access_.number(link.source), router_.port(link).slot);
    };
    for (const LinkId link : router_.access_.ups_of(from)) {
      graph_.add(graph_.buffer(link, 0), graph_.buffer(path_.front(), path_channels_.front()));
    }
    for (std::size_t hop = 0; hop + 1 < path_.size(); ++hop) {
      for (const LinkId held : parallels(path_[hop])) {
        for (const LinkId awaited : parallels(path_[hop + 1])) {
          graph_.add(graph_.buffer(held, path_channels_[hop]),
                     graph_.buffer(awaited, path_channels_[hop + 1]));
        }
      }
    }
    for (const LinkId link : router_.access_.downs_of(to)) {
      graph_.add(graph_.buffer(path_.back(), path_channels_.back()), graph_.buffer(link, 0));
    }
  }

  GridRouter& router_;
  DependencyGraph& graph_;
  int phases_;  // Phases that routes in dimension order may be in.
  std::uint32_t first_hub_ = 0;
  std::vector<LinkId> path_;
  std::vector<std::uint8_t> path_channels_;
};

void add_grid_dependencies(GridRouter& router, DependencyGraph& graph) {
  GridDependencies(router, graph).add();
}

}  // namespace trainyard
