// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_snapshot.h"

#include <algorithm>
#include <iterator>

namespace trainyard {
namespace {

// Writes state as words.
class SnapshotWriter {
 public:
  SnapshotWriter(PacketSnapshot& snapshot, const PacketSenders& senders,
                 const PacketMessages& messages)
      : words_(snapshot.words), time_(snapshot.time), senders_(senders), messages_(messages) {}

  void add(std::uint64_t word) { words_.push_back(word); }
  // Times that are over are all alike.
  void add_time(Picoseconds time) {
    add(static_cast<std::uint64_t>(std::max<Picoseconds>(time - time_, 0)));
  }
  void add(const Packet& packet) {
    const std::uint32_t behind = senders_.end(packet.connection).sequence - packet.sequence;
    add(std::uint64_t{packet.connection} << 32 | packet.position);
    add(std::uint64_t{behind} << 32 | std::uint64_t{packet.wire} << 16 |
        std::uint64_t{packet.left} << 8 | packet.flags);
  }
  void add(const Ring<Packet>& queue) {
    add(queue.size());
    for (std::uint32_t i = 0; i < queue.size(); ++i) {
      add(queue.at(i));
    }
  }
  void add(const Port& port);
  void add(const PacketSource& source);
  void add(std::vector<Due> under_way);
  // The message that a connection sends, if it was sent before now.
  [[nodiscard]] const PacketMessage* sending(std::uint32_t id) const {
    const std::uint32_t slot = senders_.end(id).sending;
    return slot == kNoIndex || messages_[slot].time >= time_ ? nullptr : &messages_[slot];
  }

 private:
  std::vector<std::uint64_t>& words_;
  const Picoseconds time_;
  const PacketSenders& senders_;
  const PacketMessages& messages_;
};

void SnapshotWriter::add(const Port& port) {
  add_time(port.free_at);
  add(port.urgent);
  add(port.queue);
  add(port.control);
  const bool is_leaving = port.leaving.bytes > 0 && port.leaving.time >= time_;
  add(is_leaving ? 1 : 0);
  if (is_leaving) {
    add_time(port.leaving.time);
    add(port.leaving.position);
    add(static_cast<std::uint64_t>(port.leaving.bytes));
  }
  if (port.source != kNoIndex) {
    add(port.own_turn ? 1 : 0);
    add(senders_.source(port.source));
  }
}

void SnapshotWriter::add(const PacketSource& source) {
  add(source.ready().size());
  for (std::uint32_t i = 0; i < source.ready().size(); ++i) {
    add(source.ready().at(i));
  }
  std::vector<PacketSource::Waiting> waiting;
  std::ranges::copy_if(source.waiting(), std::back_inserter(waiting),
                       [&](const auto& each) { return sending(each.connection) != nullptr; });
  std::ranges::sort(waiting, [](const auto& a, const auto& b) {
    return a.time != b.time ? a.time < b.time : a.order < b.order;
  });
  for (const PacketSource::Waiting& each : waiting) {
    add(each.time < time_ ? 1 : 0);
    add_time(each.time);
    add(each.connection);
  }
}

// Packets of one link stay in their order.
void SnapshotWriter::add(std::vector<Due> under_way) {
  std::ranges::stable_sort(under_way, [](const Due& a, const Due& b) { return a.is_before(b); });
  for (const Due& due : under_way) {
    add_time(due.time);
    add(due.packet);
    add(std::uint64_t{due.by} << 32 | due.next);
  }
}

}  // namespace

void PacketSnapshot::add(const Parts& parts, const PacketFabric& fabric,
                         const PacketSenders& senders, const PacketTargets& targets,
                         const PacketMessages& messages) {
  SnapshotWriter writer(*this, senders, messages);
  for (const std::uint32_t index : parts.ports) {
    const Port& port = fabric.ports()[index];
    writer.add(port);
    tallies.push_back({.packets = port.counters.packets, .bytes = port.counters.bytes});
  }
  for (const std::uint32_t node : parts.nodes) {
    writer.add(static_cast<std::uint64_t>(fabric.loads()[node].held));
  }
  for (const std::uint32_t id : parts.connections) {
    const PacketSenders::SendingEnd& end = senders.end(id);
    const PacketMessage* const message = writer.sending(id);
    writer.add_time(end.next_start);
    writer.add(targets.unanswered(id));
    writer.add(message != nullptr && message->size == end.unsent ? 1 : 0);
    lines.push_back({.order = message != nullptr ? message->order : kNeverWindow,
                     .unsent = message != nullptr ? end.unsent : 0,
                     .sequence = end.sequence});
  }
  writer.add(parts.under_way);
}

bool PacketSnapshot::repeats_in(const PacketSnapshot& later) const {
  const auto is_alike = [](const Pending& one, const Pending& other) {
    return one.connection == other.connection && one.size == other.size;
  };
  const auto are_alike = [](const Line& one, const Line& other) {
    const bool sends_one = one.order != kNeverWindow;
    const bool sends_other = other.order != kNeverWindow;
    return sends_one == sends_other && (one.order == other.order || one.unsent == other.unsent);
  };
  return words == later.words && std::ranges::equal(pending, later.pending, is_alike) &&
         std::ranges::equal(lines, later.lines, are_alike);
}

}  // namespace trainyard
