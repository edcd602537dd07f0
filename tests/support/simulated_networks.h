// SPDX-License-Identifier: Apache-2.0
// Random networks of tiers, cable by cable.
#pragma once

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "topology/exchange/simulated_network.h"

namespace trainyard {

// At least two leaves, pods and spines of each, where there are any.
inline TierShape drawn_shape(std::mt19937_64& engine) {
  const auto draw = [&](int min, int max) {
    return min + static_cast<int>(engine() % static_cast<std::uint64_t>(max - min + 1));
  };
  TierShape shape;
  shape.rails = draw(0, 1) == 1;
  shape.ports_per_nic = draw(1, 2);
  shape.planes = shape.ports_per_nic == 2 ? draw(1, 2) : 1;
  shape.nodes_per_leaf = draw(1, 4);
  shape.spines = draw(2, 4);
  const int tiers = draw(2, 3);
  for (int tier = 0; tier < tiers; ++tier) {
    shape.tiers.push_back({.rate = Bandwidth(100'000'000'000 * (tier + 1)),
                           .cable_delay = nanoseconds(500 + 100 * draw(0, 9)),
                           .switch_delay = nanoseconds(100 * draw(0, 3))});
  }
  return shape;
}

// Completes `shape`.
inline SimulatedNetwork network_of(TierShape& shape, std::mt19937_64& engine) {
  const auto draw = [&](int min, int max) {
    return min + static_cast<int>(engine() % static_cast<std::uint64_t>(max - min + 1));
  };
  SimulatedNetwork network;
  const int nics = draw(2, 3);
  const int tors = shape.ports_per_nic / shape.planes;
  const int groups_per_pod = draw(2, 3);
  const int pods = shape.tiers.size() == 3 ? draw(2, 3) : 1;
  const int copies = draw(1, 2);
  const int leaves_per_group = (shape.rails ? nics : 1) * tors;
  const int leaves = pods * groups_per_pod * leaves_per_group;
  const int servers = pods * groups_per_pod * shape.nodes_per_leaf;
  const int cores = shape.tiers.size() == 3 ? draw(1, 2) : 0;  // Each spine has so many.
  network.gpus_per_server = static_cast<std::uint32_t>(nics);
  network.hosts = static_cast<std::uint32_t>(servers * nics);
  shape.leaves_per_pod = groups_per_pod * leaves_per_group;
  shape.cores = shape.spines * cores;
  const int of_plane = leaves + pods * shape.spines + shape.cores;
  // Switches of a tier in any order, so that numbers say nothing; the ports of a NIC in order.
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(of_plane * shape.planes));
  std::iota(numbers.begin(), numbers.end(), network.hosts);
  for (int plane = 0; plane < shape.planes; ++plane) {
    const auto first = numbers.begin() + plane * of_plane + leaves;
    std::shuffle(first, numbers.begin() + (plane + 1) * of_plane, engine);
  }
  network.switch_delays.resize(numbers.size());
  const auto place = [&](int plane, int at, std::size_t tier) {
    const std::uint32_t node = numbers[static_cast<std::size_t>(plane * of_plane + at)];
    network.switch_delays[node - network.hosts] = shape.tiers[tier].switch_delay;
    return node;
  };
  const auto lay = [&](std::uint32_t from, std::uint32_t to, std::size_t tier, int count) {
    network.cables.insert(network.cables.end(), static_cast<std::size_t>(count),
                          {.from = from,
                           .to = to,
                           .rate = shape.tiers[tier].rate,
                           .delay = shape.tiers[tier].cable_delay});
  };
  for (int plane = 0; plane < shape.planes; ++plane) {
    for (int host = 0; host < servers * nics; ++host) {
      const int group = host / nics / shape.nodes_per_leaf;
      const int leaf = group * leaves_per_group + (shape.rails ? host % nics * tors : 0);
      for (int tor = 0; tor < tors; ++tor) {
        lay(static_cast<std::uint32_t>(host), place(plane, leaf + tor, 0), 0, 1);
      }
    }
    for (int leaf = 0; leaf < leaves; ++leaf) {
      for (int spine = 0; spine < shape.spines; ++spine) {
        const int pod = leaf / shape.leaves_per_pod;
        lay(place(plane, leaf, 0), place(plane, leaves + pod * shape.spines + spine, 1), 1, copies);
      }
    }
    for (int spine = 0; spine < pods * shape.spines; ++spine) {
      for (int core = 0; core < cores; ++core) {
        const int at = leaves + pods * shape.spines + spine % shape.spines * cores + core;
        lay(place(plane, leaves + spine, 1), place(plane, at, 2), 2, 1);
      }
    }
  }
  std::shuffle(network.cables.begin(), network.cables.end(), engine);
  TierShape::Tier& leaf = shape.tiers[0];
  leaf.ports_down = shape.nodes_per_leaf * (shape.rails ? 1 : nics);
  leaf.ports_up = shape.spines * copies;
  shape.tiers[1].ports_down = shape.leaves_per_pod * copies;
  shape.tiers[1].ports_up = cores;
  if (cores > 0) {
    shape.tiers[2].ports_down = pods;
  }
  return network;
}

}  // namespace trainyard
