// SPDX-License-Identifier: Apache-2.0
// The story of what happened on some ports from one time at which all was quiet there to the next,
// so that it can be told again of others: ports, connections and messages are numbered in the order
// in which they came, and times count from the first message (network/packet/packet_phases.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "network/packet_parts/packet_port.h"

namespace trainyard {

struct PacketStory {
  enum class State : std::uint8_t { Live, Over, Void };

  // A port, as it was found.
  struct Place {
    std::uint32_t port;
    std::uint32_t below;  // The place before it with the next lower link; kNoIndex.
    std::uint32_t node;   // Number of the switch whose buffer it uses; kNoIndex.
    bool own_turn;
    friend bool operator==(const Place&, const Place&) = default;
  };
  // A connection.
  struct Line {
    std::uint64_t rate;
    std::uint8_t hops;
    bool is_paced;
    std::vector<std::uint32_t> places;  // Places of the path, then of the way back.
    friend bool operator==(const Line&, const Line&) = default;
  };
  struct Send {
    Picoseconds time;
    std::int64_t size;
    std::uint32_t line;
    friend bool operator==(const Send&, const Send&) = default;
  };
  // A message is complete at `time`; its last packet begins to leave on the last link at `left`.
  struct End {
    Picoseconds left;
    Picoseconds time;
    std::uint32_t send;
  };
  // Changes of a port, and its state at the end.
  struct PlaceChange {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
    std::int64_t max_queued = 0;
    Picoseconds free_at = 0;
    bool own_turn = false;
  };

  using Ports = std::span<const Port>;  // All that there are.

  // Add what is not there yet and return its number; `limits` is left to who knows the switches.
  // `path` has the ports of a line.
  std::uint32_t add_place(Ports ports, std::uint32_t port);
  std::uint32_t add_line(Ports ports, std::span<const std::uint32_t> path, const Line& line);
  // Something that stories that may be equal have in common. There must be a message.
  [[nodiscard]] std::uint64_t key(Ports ports) const;

  State state = State::Live;
  std::uint32_t phase = kNoIndex;  // The phase that it is told of as long as it is live.
  std::vector<Place> places = {};
  std::vector<Line> lines = {};
  std::vector<Send> sends = {};
  std::vector<End> ends = {};                           // In order of `left`.
  std::map<std::uint32_t, std::uint32_t> by_link = {};  // Places.
  std::vector<std::uint32_t> nodes = {};                // Switches by number,
  std::vector<std::int64_t> limits = {};                // and up to where they were open.
  // Once it is over: when nothing is under way, and what has changed.
  Picoseconds quiet = 0;
  std::vector<PlaceChange> place_changes = {};
  std::vector<Picoseconds> next_starts = {};  // Pacing of each line.
};

// How far a story has been found to be the one of other ports.
class StoryMatch {
 public:
  // Returns whether the same was sent before `until`, which must not fall, by both. They may have
  // grown since the last time.
  [[nodiscard]] bool matches(PacketStory::Ports ports, const PacketStory& story,
                             const PacketStory& other, Picoseconds until);
  // Returns how many messages were found to be equal.
  [[nodiscard]] std::size_t sends() const { return sends_; }

 private:
  std::size_t sends_ = 0;
  std::size_t lines_ = 0;
  std::size_t places_ = 0;
};

}  // namespace trainyard
