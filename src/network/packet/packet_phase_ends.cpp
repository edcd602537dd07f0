// SPDX-License-Identifier: Apache-2.0
// Closes phases that are over, and brings those that were told or stood still up to date.
#include <algorithm>

#include "network/packet/packet_phases.h"
#include "sim/check.h"

namespace trainyard {
namespace {

std::int64_t packets_of(std::int64_t size, std::int64_t mtu) {
  return std::max<std::int64_t>((size + mtu - 1) / mtu, 1);
}

}  // namespace

// It is over, and its ports are nobody's.
void PacketPhases::finish(std::uint32_t number) {
  Phase& phase = phases_[number];
  if (phase.way == Way::Told) {
    change(phase, ended_story(number));
  } else if (!phase.is_spoiled) {
    PacketStory& story = *stories_[phase.story];
    write_end(phase, story);
    story.state = PacketStory::State::Over;
    story.phase = kNoIndex;
    story.by_link.clear();
  }
  release(number);
}

// Writes what has changed until now into its story.
void PacketPhases::write_end(Phase& phase, PacketStory& story) const {
  const std::optional<Picoseconds> quiet = quiet_time(phase);
  CHECK(quiet.has_value(), "the end of a story before all is quiet");
  story.quiet = *quiet - phase.begin;
  story.place_changes.clear();
  for (const PacketStory::Place& place : story.places) {
    const Port& port = fabric_.ports()[place.port];
    const PortTally& before = claims_[place.port].before;
    story.place_changes.push_back({.packets = port.counters.packets - before.packets,
                                   .bytes = port.counters.bytes - before.bytes,
                                   .max_queued = port.counters.max_queued,
                                   .free_at = port.free_at - phase.begin,
                                   .own_turn = port.own_turn});
  }
  story.next_starts.clear();
  for (const std::uint32_t id : phase.connections) {
    story.next_starts.push_back(senders_.end(id).next_start - phase.begin);
  }
}

// The story by which it is told, with its end.
const PacketStory& PacketPhases::ended_story(std::uint32_t number) {
  PacketStory& story = *stories_[phases_[number].story];
  if (story.state == PacketStory::State::Live) {
    write_end(phases_[story.phase], story);
  }
  return story;
}

// Its ports are nobody's.
void PacketPhases::release(std::uint32_t number) {
  Phase& phase = phases_[number];
  stop_reading(number);
  for (const std::uint32_t index : phase.ports) {
    std::int64_t& max_queued = fabric_.ports()[index].counters.max_queued;
    max_queued = std::max(max_queued, claims_[index].before.max_queued);
    claims_[index].phase = kNoIndex;
  }
  for (const std::uint32_t node : phase.nodes) {
    node_claims_[node] = kNoIndex;
  }
  phase = {};
  unused_.push_back(number);
}

// Ports and connections come to be as they would if it had been simulated.
void PacketPhases::change(Phase& phase, const PacketStory& story) {
  for (std::size_t i = 0; i < phase.own->places.size(); ++i) {
    const PacketStory::PlaceChange& change = story.place_changes[i];
    Port& port = fabric_.ports()[phase.own->places[i].port];
    port.counters.packets += change.packets;
    port.counters.bytes += change.bytes;
    port.counters.max_queued = std::max(port.counters.max_queued, change.max_queued);
    port.free_at = phase.begin + change.free_at;
    port.own_turn = change.own_turn;
    counts_.skipped_hops += change.packets;
  }
  for (std::size_t i = 0; i < phase.connections.size(); ++i) {
    senders_.skip(phase.connections[i], 0, 0, phase.begin + story.next_starts[i]);
  }
  count(phase, 1);
}

// Counts its messages and their packets, or takes them off again.
void PacketPhases::count(Phase& phase, std::int64_t sign) {
  const std::int64_t mtu = fabric_.options().mtu.count();
  for (const Entry& entry : phase.entries) {
    const std::int64_t size = entry.message.size;
    const std::int64_t packets = packets_of(size, mtu);
    const std::int64_t acks =
        packets_per_ack_ == 0 ? 0 : (packets + packets_per_ack_ - 1) / packets_per_ack_;
    // Modulo 2^32 and 2^64, as they are counted.
    const auto signed_packets = static_cast<std::uint32_t>(sign * packets);
    senders_.skip(entry.connection, signed_packets, sign * size,
                  senders_.end(entry.connection).next_start);
    targets_.skip(entry.connection, signed_packets);
    counts_.messages += static_cast<std::uint64_t>(sign);
    counts_.completed += static_cast<std::uint64_t>(sign);
    counts_.bytes += sign * size;
    counts_.acks += static_cast<std::uint64_t>(sign * acks);
  }
}

// Those that are told come first: they look at the counters of others, without what came before.
void PacketPhases::settle() {
  for (const bool is_told : {true, false}) {
    for (std::uint32_t number = 0; number < phases_.size(); ++number) {
      const Phase& phase = phases_[number];
      const bool is_done = phase.serial != 0 && phase.left == 0 && !phase.is_settled;
      if (is_done && (phase.way == Way::Told) == is_told) {
        settle_one(number);
      }
    }
  }
}

void PacketPhases::settle_one(std::uint32_t number) {
  Phase& phase = phases_[number];
  if (phase.way == Way::Told && stories_[phase.story]->sends.size() != phase.entries.size()) {
    catch_up(number, kNeverWindow, nullptr);
    return;  // As all others that are simulated.
  }
  phase.places_before.clear();
  for (const std::uint32_t index : phase.ports) {
    const Port& port = fabric_.ports()[index];
    phase.places_before.push_back({.packets = port.counters.packets,
                                   .bytes = port.counters.bytes,
                                   .max_queued = port.counters.max_queued,
                                   .free_at = port.free_at,
                                   .own_turn = port.own_turn});
  }
  phase.starts_before.clear();
  for (const std::uint32_t id : phase.connections) {
    phase.starts_before.push_back(senders_.end(id).next_start);
  }
  if (phase.way == Way::Told) {
    const PacketStory& story = ended_story(number);
    phase.quiet = phase.begin + story.quiet;
    change(phase, story);
  } else {
    // A port that stays paused is never quiet.
    phase.quiet = quiet_time(phase).value_or(kNeverTime);
  }
  for (const std::uint32_t index : phase.ports) {
    std::int64_t& max_queued = fabric_.ports()[index].counters.max_queued;
    max_queued = std::max(max_queued, claims_[index].before.max_queued);
  }
  phase.is_settled = true;
  settled_.push_back(number);
}

// It goes on: what has been counted in advance is taken back.
void PacketPhases::undo(Phase& phase) {
  for (std::size_t i = 0; i < phase.ports.size(); ++i) {
    Port& port = fabric_.ports()[phase.ports[i]];
    const PacketStory::PlaceChange& before = phase.places_before[i];
    if (phase.way == Way::Told) {
      counts_.skipped_hops -= port.counters.packets - before.packets;
    }
    port.counters.packets = before.packets;
    port.counters.bytes = before.bytes;
    port.counters.max_queued = before.max_queued;
    port.free_at = before.free_at;
    port.own_turn = before.own_turn;
  }
  if (phase.way == Way::Told) {
    count(phase, -1);
  }
  for (std::size_t i = 0; i < phase.connections.size(); ++i) {
    senders_.skip(phase.connections[i], 0, 0, phase.starts_before[i]);
  }
  phase.is_settled = false;
}

// A message is sent at `time`: what is quiet by then is over.
void PacketPhases::unsettle(Picoseconds time) {
  const Picoseconds done = done_until(time);
  for (const std::uint32_t number : settled_) {
    Phase& phase = phases_[number];
    const bool is_told = phase.way == Way::Told;
    const bool is_quiet = phase.quiet < done;
    if (!is_told || !is_quiet) {
      undo(phase);
    }
    if (is_quiet && is_told) {
      release(number);
    } else if (is_quiet) {
      finish(number);
    }
  }
  settled_.clear();
}

// Messages that are not complete have the places of those that were so many periods before on their
// connections.
void PacketPhases::move_messages(Phase& phase, std::int64_t periods) {
  const Repeat& repeat = *phase.repeat;
  const std::size_t sent = repeat.begun + static_cast<std::size_t>(periods) * repeat.sends;
  if (sent == repeat.begun) {
    return;
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>>
      slots;  // Each connection's, the last one behind.
  for (const std::size_t number : repeat.moving) {
    slots[phase.entries[number].connection].push_back(phase.entries[number].slot);
  }
  std::size_t left = repeat.moving.size();
  for (std::size_t i = sent; left > 0; --i) {
    Entry& entry = phase.entries[i - 1];
    const auto found = slots.find(entry.connection);
    if (found == slots.end() || found->second.empty()) {
      continue;
    }
    entry.slot = found->second.back();
    found->second.pop_back();
    messages_.replace(entry.slot, entry.message);
    --left;
  }
}

// Packets that wait or are under way count from the last one that was sent: they come before.
void PacketPhases::move_connections(Phase& phase, std::int64_t periods) {
  Repeat& repeat = *phase.repeat;
  const auto times = static_cast<std::uint32_t>(periods);
  const std::int64_t mtu = fabric_.options().mtu.count();
  const std::int64_t per_ack = packets_per_ack_;
  std::int64_t acks = 0;
  std::vector<std::uint32_t> packets(senders_.count());  // Later numbers, by connection.
  for (std::size_t i = 0; i < repeat.second.lines.size(); ++i) {
    const PacketSnapshot::Line& before = repeat.first.lines[i];
    const PacketSnapshot::Line& after = repeat.second.lines[i];
    const std::uint32_t id = phase.connections[i];
    const std::uint32_t more = after.sequence - before.sequence;
    packets[id] = times * more;
    const Picoseconds next_start = senders_.end(id).next_start + periods * repeat.period;
    senders_.skip(id, times * more, 0, next_start);
    targets_.skip(id, times * more);
    if (after.order != kNeverWindow && before.order == after.order) {
      senders_.shorten(id, periods * (before.unsent - after.unsent));
      acks += per_ack == 0 ? 0 : std::int64_t{more} / per_ack;
    }
  }
  const auto move = [&](Packet& packet) { packet.sequence += packets[packet.connection]; };
  for (const std::uint32_t index : phase.ports) {
    Port& port = fabric_.ports()[index];
    for (Ring<Packet>* const queue : {&port.queue, &port.control}) {
      for (std::uint32_t i = 0; i < queue->size(); ++i) {
        move(queue->at(i));
      }
    }
  }
  for (Due& due : repeat.under_way) {
    move(due.packet);
  }
  for (std::size_t i = repeat.begun - repeat.sends; i < repeat.begun; ++i) {
    const Entry& entry = phase.entries[i];
    const std::int64_t size = entry.message.size;
    senders_.skip(entry.connection, 0, periods * size, senders_.end(entry.connection).next_start);
    acks += per_ack == 0 ? 0 : (packets_of(size, mtu) + per_ack - 1) / per_ack;
    counts_.bytes += periods * size;
  }
  counts_.messages += static_cast<std::uint64_t>(periods) * repeat.sends;
  counts_.completed += static_cast<std::uint64_t>(periods) * repeat.sends;
  counts_.acks += static_cast<std::uint64_t>(periods * acks);
}

// Ports count what they would in so many periods, and all that they do is so much later.
void PacketPhases::move_ports(Phase& phase, std::int64_t periods) {
  const Repeat& repeat = *phase.repeat;
  const Picoseconds by = periods * repeat.period;
  const auto times = static_cast<std::uint64_t>(periods);
  for (std::size_t i = 0; i < repeat.second.tallies.size(); ++i) {
    const PacketSnapshot::Tally& before = repeat.first.tallies[i];
    const PacketSnapshot::Tally& after = repeat.second.tallies[i];
    Port& port = fabric_.ports()[phase.ports[i]];
    port.counters.packets += times * (after.packets - before.packets);
    port.counters.bytes += times * (after.bytes - before.bytes);
    counts_.skipped_hops += times * (after.packets - before.packets);
    port.free_at += by;
    port.leaving.time += by;
    if (port.source != kNoIndex) {
      senders_.shift(port.source, by);
    }
  }
}

}  // namespace trainyard
