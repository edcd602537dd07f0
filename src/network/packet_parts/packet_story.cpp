// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_story.h"

#include <algorithm>
#include <iterator>

#include "sim/random.h"

namespace trainyard {
namespace {

// Whether packets that begin at one port take the same times and are marked alike at the other.
bool are_alike(const Port& port, const Port& other) {
  return port.bits_per_second == other.bits_per_second && port.full_time == other.full_time &&
         port.through_delay == other.through_delay && port.end_delay == other.end_delay &&
         port.cuts_through == other.cuts_through && port.mark_above == other.mark_above &&
         port.marker == other.marker;
}

}  // namespace

std::uint32_t PacketStory::add_place(Ports ports, std::uint32_t index) {
  const Port& port = ports[index];
  const auto number = static_cast<std::uint32_t>(places.size());
  const auto [entry, is_new] = by_link.try_emplace(port.link, number);
  if (!is_new) {
    return entry->second;
  }
  std::uint32_t node = kNoIndex;
  if (port.node != kNoIndex) {
    const auto known = std::ranges::find(nodes, port.node);
    node = static_cast<std::uint32_t>(known - nodes.begin());
    if (known == nodes.end()) {
      nodes.push_back(port.node);
    }
  }
  places.push_back({.port = index,
                    .below = entry == by_link.begin() ? kNoIndex : std::prev(entry)->second,
                    .node = node,
                    .own_turn = port.own_turn && port.source != kNoIndex});
  return number;
}

std::uint32_t PacketStory::add_line(Ports ports, std::span<const std::uint32_t> path,
                                    const Line& line) {
  lines.push_back(line);
  for (const std::uint32_t port : path) {
    lines.back().places.push_back(add_place(ports, port));
  }
  return static_cast<std::uint32_t>(lines.size() - 1);
}

std::uint64_t PacketStory::key(Ports ports) const {
  std::uint64_t key = hash64(static_cast<std::uint64_t>(sends.front().size));
  for (const std::uint32_t place : lines.front().places) {
    key = hash64(key ^ ports[places[place].port].bits_per_second);
  }
  return key;
}

bool StoryMatch::matches(PacketStory::Ports ports, const PacketStory& story,
                         const PacketStory& other, Picoseconds until) {
  for (; sends_ < other.sends.size() && other.sends[sends_].time < until; ++sends_) {
    const PacketStory::Send& send = other.sends[sends_];
    if (sends_ == story.sends.size() || send != story.sends[sends_]) {
      return false;
    }
    for (; lines_ <= send.line; ++lines_) {
      if (story.lines[lines_] != other.lines[lines_]) {
        return false;
      }
      const std::vector<std::uint32_t>& line = other.lines[lines_].places;
      for (const std::size_t end = *std::ranges::max_element(line) + std::size_t{1}; places_ < end;
           ++places_) {
        PacketStory::Place place = story.places[places_];
        const PacketStory::Place& found = other.places[places_];
        // A switch that stays open at one limit does so at a higher one.
        const bool may_fill = place.node != kNoIndex && found.node == place.node &&
                              other.limits[found.node] < story.limits[place.node];
        if (may_fill || !are_alike(ports[place.port], ports[found.port])) {
          return false;
        }
        place.port = found.port;
        if (place != found) {
          return false;
        }
      }
    }
  }
  return story.sends.size() == sends_ || story.sends[sends_].time >= until;
}

}  // namespace trainyard
