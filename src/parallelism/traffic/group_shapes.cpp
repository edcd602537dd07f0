// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/group_shapes.h"

#include <algorithm>
#include <cstddef>

#include "sim/ids.h"
#include "topology/graph/path.h"
#include "topology/graph/switch_graph.h"

namespace trainyard {

GroupShapes::GroupShapes(const Cluster& cluster, std::span<const int> domain_of_rank,
                         Routing& routing)
    : cluster_(cluster),
      domain_of_rank_(domain_of_rank),
      routing_(routing),
      kinds_(cluster, SwitchGraph(cluster.topology)) {}

int GroupShapes::place(int rank) const {
  const NodeId gpu = cluster_.gpus[as_index(rank)];
  const std::span<const NodeId> nodes = kinds_.nodes_of(*cluster_.topology.node(gpu).server);
  return static_cast<int>(std::lower_bound(nodes.begin(), nodes.end(), gpu) - nodes.begin());
}

std::vector<std::vector<int>> GroupShapes::seats(const std::vector<int>& ranks) const {
  std::vector<std::vector<int>> all;
  std::map<int, int> domains;
  std::map<ServerId, int> servers;
  for (const int rank : ranks) {
    const ServerId server = *cluster_.topology.node(cluster_.gpus[as_index(rank)]).server;
    const auto count = [](const auto& map) { return static_cast<int>(map.size()); };
    all.push_back(
        {static_cast<int>(kinds_.kind_of(server)),
         servers.try_emplace(server, count(servers)).first->second,
         domains.try_emplace(domain_of_rank_[as_index(rank)], count(domains)).first->second});
  }
  return all;
}

std::vector<int> GroupShapes::shape(const std::vector<int>& ranks) const {
  std::vector<int> shape;
  const std::vector<std::vector<int>> all = seats(ranks);
  for (std::size_t index = 0; index < ranks.size(); ++index) {
    shape.insert(shape.end(), all[index].begin(), all[index].end());
    shape.push_back(place(ranks[index]));
  }
  return shape;
}

std::vector<int> GroupShapes::joints(const std::vector<int>& ranks) {
  std::vector<int> shape;
  const std::vector<std::vector<int>> all = seats(ranks);
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;  // Ranks of a server are neighbours.
    while (last < ranks.size() && all[last][1] == all[first][1]) {
      shape.insert(shape.end(), all[last].begin(), all[last].end());
      ++last;
    }
    shape.push_back(joint(std::span(ranks).subspan(first, last - first)));
    first = last;
  }
  return shape;
}

std::array<std::int64_t, 3> GroupShapes::words_of(LinkId id) const {
  const LinkSpec& link = cluster_.topology.link(id).spec;
  return {static_cast<std::int64_t>(link.kind), link.bandwidth.bits_per_second(),
          link.latency.picoseconds()};
}

// Describes a device, whatever the order of its links.
void GroupShapes::describe_device(NodeId device, std::vector<std::int64_t>& text) const {
  std::vector<std::array<std::int64_t, 3>> links;
  for (const LinkId link : cluster_.topology.links_from(device)) {
    links.push_back(words_of(link));
  }
  std::sort(links.begin(), links.end());
  text.push_back(static_cast<std::int64_t>(links.size()));
  for (const auto& words : links) {
    text.insert(text.end(), words.begin(), words.end());
  }
}

void GroupShapes::describe_way(NodeId from, NodeId to, std::vector<std::int64_t>& text) {
  std::vector<LinkId> path;
  const bool found = routing_.route(from, to, 0, path);
  text.push_back(found ? path_latency(cluster_.topology, path).picoseconds() : -1);
  text.push_back(static_cast<std::int64_t>(path.size()));
  for (const LinkId link : path) {
    const auto words = words_of(link);
    text.insert(text.end(), words.begin(), words.end());
  }
}

// Returns the joint of the ranks of one server.
int GroupShapes::joint(std::span<const int> ranks) {
  const auto gpu = [&](int rank) { return cluster_.gpus[as_index(rank)]; };
  const ServerId server = *cluster_.topology.node(gpu(ranks.front())).server;
  std::vector<int> places = {static_cast<int>(kinds_.kind_of(server))};
  for (const int rank : ranks) {
    places.push_back(place(rank));
  }
  const auto [entry, fresh] = joint_of_places_.try_emplace(std::move(places));
  if (fresh) {
    std::vector<std::int64_t> text;
    for (const int rank : ranks) {
      describe_device(gpu(rank), text);
      for (const int other : ranks) {
        if (other != rank) {
          describe_way(gpu(rank), gpu(other), text);
        }
      }
    }
    entry->second =
        joints_.try_emplace(std::move(text), static_cast<int>(joints_.size())).first->second;
  }
  return entry->second;
}

}  // namespace trainyard
