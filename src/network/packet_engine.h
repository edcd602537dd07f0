// SPDX-License-Identifier: Apache-2.0
// Packets through ports, in windows of time. No clock of its own and no event queue.
//
// What leaves a port at time s can matter to another one not before s + (its time on the line) +
// (latency of the link). The least of that over the links in use is the lookahead; time is cut into
// windows of that length, and what a window brings to a port is known when the window begins. So
// each port is worked through alone: arrivals of the window in order of (time, link that they came
// by), then in one loop every packet that it begins to send before the window ends. What it sends
// is appended to the link, a FIFO too, and reaches the next port in a later window. Windows in which
// nothing is due are skipped, and a port with nothing due is not looked at.
//
// A message may be sent at any time that is not before the end of the last window that was run:
// run a window only when everything before its end has been sent. A message ends at its target in a
// later window than the one in which its last packet left the last port, so whoever is told of the
// end can answer in time. docs/packet.md has the rules of each part.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "network/packet_calendar.h"
#include "network/packet_options.h"
#include "network/packet_port.h"
#include "network/packet_source.h"
#include "sim/event.h"
#include "sim/ids.h"
#include "topology/topology.h"

namespace trainyard {

class PacketEngine {
 public:
  struct Message {
    Picoseconds time = 0;  // Of send().
    std::int64_t size = 0;
    std::uint64_t order = 0;  // Of send().
    EventHandler* done = nullptr;
    std::uint64_t token = 0;
    std::uint32_t next = kNoIndex;  // Behind it on the connection, or in the list of free slots.
  };
  // A message whose last byte is at its target at `time`.
  struct Completion {
    Picoseconds time;
    std::uint64_t order;
    EventHandler* done;
    std::uint64_t token;
  };
  struct Counts {
    std::uint64_t messages = 0;  // Whose last packet left the source.
    std::int64_t bytes = 0;      // Theirs.
    std::uint64_t packet_hops = 0;
    std::uint64_t windows = 0;
  };

  // `topology` must outlive the engine. Throws ConfigError for options that make no sense.
  PacketEngine(const Topology& topology, const PacketOptions& options);

  // `path` must not be empty. Connections are numbered from 0.
  std::uint32_t add_connection(std::span<const LinkId> path);
  // Queues a message; `message.time` must not fall from call to call.
  void send(std::uint32_t connection, const Message& message);

  // The end of the next window in which anything is due; kNeverTime if nothing is.
  [[nodiscard]] Picoseconds next_border() const;
  // Works through that window. Adds the messages that complete in later ones, in order of time, then
  // of send().
  void run_window(std::vector<Completion>& completions);

  [[nodiscard]] Counts counts() const;
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  // The port of this link, if a connection uses it.
  [[nodiscard]] const Port* port(LinkId link) const;
  // Payload that left on each link in use, of messages whose last packet has left the source.
  [[nodiscard]] std::vector<std::pair<LinkId, std::int64_t>> payload_by_link() const;
  // Length of a window.
  [[nodiscard]] Picoseconds window() const { return window_; }
  // Bytes on the line of a packet with this payload; the first of a message has more headers.
  [[nodiscard]] std::int64_t wire_of(std::int64_t payload, bool first) const;

  // Every packet start is added to `starts` from now on.
  void trace(std::vector<PacketStart>* starts) { starts_ = starts; }

 private:
  struct Connection {
    std::int64_t unsent = 0;  // Bytes of the message `sending`.
    std::uint32_t path = 0;   // First position.
    std::uint32_t port = 0;   // The first of the path.
    std::uint32_t sequence = 0;
    std::uint8_t hops = 0;
    std::uint32_t sending = kNoIndex;  // Messages, of the list from `oldest` to `last`.
    std::uint32_t oldest = kNoIndex;
    std::uint32_t last = kNoIndex;
    std::int64_t sent_bytes = 0;  // Of messages that left.
  };

  [[nodiscard]] std::uint32_t port_of(LinkId link);
  [[nodiscard]] Picoseconds time_on_line(const Port& port, std::int64_t wire) const;
  [[nodiscard]] Picoseconds lookahead(const Port& port, bool is_last) const;
  void shorten_window(Picoseconds lookahead);
  void add_to_calendar(std::uint32_t item, Picoseconds time);
  void schedule(Port& port, std::uint32_t index);

  void pull(std::uint32_t item);
  void run_port(std::uint32_t index);
  static void sort_arrivals(Port& port, const PacketEngine& engine);
  void admit(Port& port, const Arrival& arrival);
  void begin(Port& port, std::uint32_t index, Packet packet, Picoseconds start);
  [[nodiscard]] Packet next_of(std::uint32_t connection);
  void go_on(const Port& port, std::uint32_t connection, Picoseconds start);
  [[nodiscard]] Picoseconds handed_on(const Port& port, const Packet& packet, Picoseconds start,
                                      Picoseconds end) const;
  void deliver(const Packet& packet, Picoseconds time);
  [[nodiscard]] std::uint32_t take_slot(const Message& message);

  const Topology& topology_;
  PacketOptions options_;
  std::int64_t full_wire_ = 0;
  std::vector<Port> ports_;                // Of links in use, in order of first use.
  std::vector<std::uint32_t> port_index_;  // By link.
  std::vector<std::uint32_t> positions_;   // Ports of all paths, one path after the other.
  std::vector<PacketSource> sources_;
  std::vector<Connection> connections_;
  std::vector<Message> messages_;
  std::uint32_t free_message_ = kNoIndex;
  std::uint64_t sends_ = 0;

  Picoseconds window_ = kNeverTime;
  std::uint64_t number_ = 0;    // Of the window that is being worked on.
  Picoseconds begin_time_ = 0;  // Everything before has been done.
  Picoseconds end_time_ = 0;
  WindowCalendar calendar_;
  std::vector<std::uint32_t> due_;     // Scratch: items.
  std::vector<std::uint32_t> active_;  // Scratch: ports.
  std::vector<Completion>* completions_ = nullptr;
  Counts counts_;
  std::vector<PacketStart>* starts_ = nullptr;
};

}  // namespace trainyard
