// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_adaptive.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "network/packet/packet_engine.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/random.h"

namespace trainyard {

std::uint64_t chooser_seed(std::uint64_t seed, NodeId node) {
  return hash64(seed ^ hash64(~std::uint64_t{node.value()}));
}

void PacketFans::add(const Ways& ways, std::span<const std::uint32_t> positions,
                     std::span<const Port> ports, const CanChoose& can_choose) {
  // Paths with the same links up to `hop`; the first represents all.
  struct Group {
    std::vector<std::uint32_t> firsts;
    std::uint32_t hop;
  };
  std::vector<Group> groups{{.firsts = ways.firsts, .hop = 0}};
  for (std::size_t next = 0; next < groups.size(); ++next) {
    const Group group = std::move(groups[next]);
    if (group.hop == ways.hops) {
      continue;
    }
    const std::uint32_t here = group.firsts.front() + group.hop;
    std::vector<std::pair<std::uint32_t, Group>> parts;  // Groups by port.
    for (const std::uint32_t first : group.firsts) {
      const std::uint32_t port = positions[first + group.hop];
      auto part = std::ranges::find(parts, port, &std::pair<std::uint32_t, Group>::first);
      if (part == parts.end()) {
        parts.push_back({port, {.firsts = {}, .hop = group.hop + 1}});
        part = parts.end() - 1;
      }
      part->second.firsts.push_back(first);
    }
    if (parts.size() > 1 && !can_choose(ports[positions[here]])) {
      parts.resize(1);
    }
    if (parts.size() > 1) {
      std::ranges::sort(parts, {}, [&](const auto& part) { return ports[part.first].link; });
      fan_of_.resize(std::max(fan_of_.size(), here + std::size_t{1}), kNoIndex);
      fan_of_[here] = static_cast<std::uint32_t>(fans_.size());
      fans_.push_back({.first = static_cast<std::uint32_t>(branches_.size()),
                       .count = static_cast<std::uint32_t>(parts.size())});
      for (const auto& [port, part] : parts) {
        branches_.push_back({.port = port, .position = part.firsts.front() + group.hop});
      }
    }
    for (auto& part : parts) {
      groups.push_back(std::move(part.second));
    }
  }
}

// From here on: what the engine does with it.

std::uint32_t PacketEngine::add_adaptive(std::span<const std::vector<LinkId>> paths,
                                         std::optional<std::uint8_t> lane) {
  CHECK(fabric_.chooses(), "ways to choose from where no switch chooses");
  const std::uint32_t id = add_connection(paths.front(), lane);
  if (paths.size() > 1 || fabric_.options().convergence) {  // It may have several later on.
    add_ways(id, targets_.path(id, senders_.end(id).path), paths.subspan(1));
    senders_.spread(id);
  }
  return id;
}

void PacketEngine::reroute_ways(std::uint32_t id, Picoseconds time,
                                std::span<const std::vector<LinkId>> ways) {
  CHECK(targets_.has_ways(id), "other ways of a connection that switches do not send on");
  reroute(id, time, ways.front());
  add_ways(id, fabric_.routes().of(id).back().path, ways.subspan(1));
}

// Adds ways beside that of `path`, which the connection has already.
void PacketEngine::add_ways(std::uint32_t id, const PacketPath& path,
                            std::span<const std::vector<LinkId>> others) {
  PacketFans::Ways ways{.firsts = {path.first}, .hops = path.hops};
  Picoseconds min = kNeverTime;
  for (const std::vector<LinkId>& other : others) {
    CHECK(other.size() == ways.hops, "ways of different lengths");
    const auto first = static_cast<std::uint32_t>(fabric_.positions().size());
    ways.firsts.push_back(first);
    min = std::min(min, fabric_.add_path(other));
    const std::vector<std::uint32_t>& positions = fabric_.positions();
    CHECK(positions[first] == senders_.end(id).port &&
              positions[first + ways.hops - 1] == senders_.target_port(id),
          "ways that do not begin and end alike");
  }
  fabric_.add_fans(ways);
  targets_.add_ways(id, {.first = path.first,
                         .others = ways.firsts.size() > 1 ? ways.firsts[1] : path.first,
                         .hops = path.hops,
                         .packets = std::vector<std::int64_t>(ways.firsts.size())});
  set_up_ports();
  shorten_window(min);
}

std::uint32_t PacketEngine::add_twin(std::uint32_t twin, std::optional<std::uint8_t> lane) {
  fabric_.add_lane(lane);
  const PacketPath path = targets_.path(twin, senders_.end(twin).path);
  const auto id = static_cast<std::uint32_t>(senders_.count());
  const Picoseconds min = senders_.add(path, senders_.end(twin).rate);
  targets_.add(path);
  targets_.share_ways(id, twin);
  for (const PacketRoutes::Change& change : fabric_.routes().of(twin)) {
    fabric_.routes().add(id, change.from, change.path);
    senders_.add_way(id, change.path);
  }
  if (targets_.has_ways(id)) {
    senders_.spread(id);
  }
  shorten_window(min);
  return id;
}

void PacketFabric::add_fans(const PacketFans::Ways& ways) {
  fans_.add(ways, positions_, ports_,
            [&](const Port& port) { return is_of_fabric(topology_.link(LinkId(port.link))); });
  if (options_.forwarding == Forwarding::StoreAndForward) {
    return;
  }
  // A packet that cuts through is held up by the port that it takes, before it is chosen.
  for (const std::uint32_t first : ways.firsts) {
    for (std::uint32_t position = first; position < first + ways.hops; ++position) {
      for (std::uint32_t i = 1; fans_.has(position) && i < fans_.at(position).size(); ++i) {
        const auto branches = fans_.at(position);
        if (ports_[branches[i].port].bits_per_second != ports_[branches[0].port].bits_per_second) {
          throw ConfigError(
              "packet engine: expected ports of one rate where a switch that cuts through chooses "
              "among them, found several rates");
        }
      }
    }
  }
}

// Data that reaches a switch, which has still to choose its port: with the switch as a whole.
void PacketWorker::put_aside(std::uint32_t number, const Due& due) {
  PacketSwitch& node = switches_[number];
  node.undecided.push_back(due);
  if (node.visited != number_) {
    node.visited = number_;
    busy_.push_back(number);
  }
}

// Bytes of frames that wait at the port, in the queue of the packet.
std::int64_t PacketWorker::bytes_before(const Port& port, const Packet& packet) const {
  return port.lanes == kNoIndex
             ? port.queued_bytes
             : lanes_[port.lanes].lanes[fabric_.lane_of(packet.connection)].queued_bytes;
}

// The port of the packet, which is then on its way there.
std::uint32_t PacketWorker::choose(PacketSwitch& node, Due& due) {
  const std::span<const PacketFans::Branch> branches = fabric_.fans().at(due.packet.position);
  waiting_.clear();
  for (const PacketFans::Branch& branch : branches) {
    waiting_.push_back(bytes_before(ports_[branch.port], due.packet));
  }
  const std::uint32_t picked =
      node.chooser->choose(waiting_, due.packet.connection, SimTime(due.time));
  due.packet.position = branches[picked].position;
  return branches[picked].port;
}

void PacketTargets::add_ways(std::uint32_t id, AdaptiveWays ways) {
  if (ends_[id].ways == kNoIndex) {
    ends_[id].ways = static_cast<std::uint32_t>(ways_.size());
    ways_.emplace_back();
    spray(id, static_cast<std::uint32_t>(sprays_.size()));
  }
  ways_[ends_[id].ways].push_back(std::move(ways));
}

void PacketTargets::share_ways(std::uint32_t id, std::uint32_t twin) {
  if (ends_[twin].ways == kNoIndex) {
    return;
  }
  const std::vector<AdaptiveWays> all = ways_[ends_[twin].ways];
  for (AdaptiveWays ways : all) {
    std::ranges::fill(ways.packets, 0);
    add_ways(id, std::move(ways));
  }
}

// Counts by which of its ways the packet, which is at the end of it, has come. Positions of later
// ways are behind those of earlier ones.
void PacketTargets::count_way(const ReceivingEnd& end, const Packet& packet) {
  auto ways = ways_[end.ways].rbegin();
  while (ways->first >= packet.position) {
    ++ways;
  }
  const std::uint32_t first = packet.position - ways->hops;
  ++ways->packets[first == ways->first ? 0 : 1 + (first - ways->others) / ways->hops];
}

void PacketTargets::add_payload(std::uint32_t id, std::int64_t sent,
                                std::vector<std::int64_t>& bytes) const {
  std::int64_t all = 0;
  for (const AdaptiveWays& ways : ways_[ends_[id].ways]) {
    all = std::accumulate(ways.packets.begin(), ways.packets.end(), all);
  }
  std::int64_t before = 0;
  std::int64_t given = 0;
  for (const AdaptiveWays& ways : ways_[ends_[id].ways]) {
    for (std::uint32_t way = 0; way < ways.packets.size() && all > 0; ++way) {
      before += ways.packets[way];
      const std::int64_t up_to = sent / all * before + sent % all * before / all;
      const std::int64_t share = up_to - given;
      given = up_to;
      const std::uint32_t first = way == 0 ? ways.first : ways.others + (way - 1) * ways.hops;
      for (std::uint32_t hop = 0; hop < ways.hops; ++hop) {
        bytes[fabric_.positions()[first + hop]] += share;
      }
    }
  }
}

}  // namespace trainyard
