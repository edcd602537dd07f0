// SPDX-License-Identifier: Apache-2.0
// Packets through ports, in windows of time. No clock of its own and no event queue.
//
// What leaves a port at time s can matter to another one not before s + (its time on the line) +
// (latency of the link). The least of that over the links in use is the lookahead; time is cut into
// windows of that length, and what a window brings to a port is known when the window begins. So
// each port is worked through alone: arrivals of the window in order of (time, link that they came
// by), then in one loop every packet that it begins to send before the window ends. What it sends
// is appended to the link, a FIFO too, and reaches the next port in a later window. Windows in
// which nothing is due are skipped, and a port with nothing due is not looked at. Ports of a switch
// whose buffer is near a threshold are worked through together (packet_switch.h).
//
// A message may be sent at any time that is not before the end of the last window that was run:
// run a window only when everything before its end has been sent. A message ends at its target in a
// later window than the one in which its last packet left the last port, so whoever is told of the
// end can answer in time. docs/packet.md has the rules of each part.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "network/network.h"
#include "network/packet_calendar.h"
#include "network/packet_control.h"
#include "network/packet_credits.h"
#include "network/packet_losses.h"
#include "network/packet_options.h"
#include "network/packet_port.h"
#include "network/packet_reliability.h"
#include "network/packet_samples.h"
#include "network/packet_source.h"
#include "network/packet_spray.h"
#include "network/packet_switch.h"
#include "network/queue_times.h"
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
    std::uint64_t completed = 0;
    std::int64_t bytes = 0;         // Of messages that left.
    std::uint64_t packet_hops = 0;  // Data packets.
    std::uint64_t windows = 0;
    std::uint64_t exact_windows = 0;  // Of single switches.
    std::uint64_t acks = 0;
    std::uint64_t cnps = 0;
    std::uint64_t reordered = 0;  // Packets that came before one with a lower number.
  };
  // A connection that gave up after too many retries.
  struct Failure {
    std::uint32_t connection;
    Picoseconds time;
  };

  // `topology` must outlive the engine. Throws ConfigError for options that make no sense.
  PacketEngine(const Topology& topology, const PacketOptions& options);

  // `path` must not be empty. Connections are numbered from 0. Throws ConfigError where something
  // must go back to the source and a link has none back.
  std::uint32_t add_connection(std::span<const LinkId> path);
  // Another path of a connection, with as many links, of which the first and the last are those of
  // its path: its packets take turns over all, and what comes out of order waits at the target.
  void add_alternative(std::uint32_t connection, std::span<const LinkId> path);
  // From `time` on nothing arrives by this link nor, if there is one, by the link back: a cable
  // fails as a whole. What is on it then, and all that is sent there later, is lost. To be said
  // before the first window.
  void fail_link(LinkId link, Picoseconds time);
  // Instead of the rate of the options; from 0 to less than 1. To be said before the first window.
  void set_bit_error_rate(LinkId link, double rate);

  // Queues a message; `message.time` must not fall from call to call.
  void send(std::uint32_t connection, const Message& message);

  // The end of the next window in which anything is due; kNeverTime if nothing is.
  [[nodiscard]] Picoseconds next_border() const;
  // Works through that window. Adds the messages that complete in later ones, in order of time,
  // then of send().
  void run_window(std::vector<Completion>& completions);

  [[nodiscard]] Counts counts() const;
  [[nodiscard]] PacketStats stats() const;
  [[nodiscard]] std::size_t connections() const { return connections_.size(); }
  // The port of this link, if a connection uses it.
  [[nodiscard]] const Port* port(LinkId link) const;
  // The time for which it has been paused, up to the end of the last window.
  [[nodiscard]] Picoseconds paused_time(const Port& port) const;
  // For which it had no credits for the largest packet.
  [[nodiscard]] Picoseconds starved_time(const Port& port) const;
  // Payload that left on each link in use, of messages whose last packet has left the source.
  [[nodiscard]] std::vector<std::pair<LinkId, std::int64_t>> payload_by_link() const;
  [[nodiscard]] const std::vector<PacketSwitch>& switches() const { return switches_; }
  [[nodiscard]] const std::vector<SwitchLoad>& loads() const { return loads_; }
  // The rate to which a connection is limited now, in bits per second.
  [[nodiscard]] double rate(std::uint32_t connection) const;
  // That a connection has sent, modulo 2^32, and the CNPs that were sent back to it.
  [[nodiscard]] std::uint32_t packets(std::uint32_t connection) const {
    return connections_[connection].sequence;
  }
  [[nodiscard]] std::uint32_t cnps(std::uint32_t connection) const {
    return connections_[connection].cnps;
  }
  // Of them, those that were sent again, and timeouts.
  [[nodiscard]] std::uint64_t resent(std::uint32_t connection) const {
    return reliable_.empty() ? 0 : reliable_[connection].ends.resent();
  }
  [[nodiscard]] std::uint64_t timeouts(std::uint32_t connection) const {
    return reliable_.empty() ? 0 : reliable_[connection].ends.timeouts();
  }
  // The nodes at which it begins and ends.
  [[nodiscard]] std::pair<NodeId, NodeId> ends_of(std::uint32_t connection) const;
  // In the order in which windows found them.
  [[nodiscard]] const std::vector<Failure>& failures() const { return failures_; }
  // What samples are taken of: ports in use, payload that a connection has sent, whether it has
  // messages to complete, where it leads, and its rate at `time`, not before the last window.
  [[nodiscard]] const std::vector<Port>& ports() const { return ports_; }
  [[nodiscard]] std::int64_t payload_sent(std::uint32_t connection) const;
  [[nodiscard]] bool is_busy(std::uint32_t connection) const {
    return connections_[connection].oldest != kNoIndex;
  }
  [[nodiscard]] double rate_at(std::uint32_t connection, SimTime time) const;
  // Those that the options asked for, with connections as they are numbered here; the last one at
  // the end of the last window.
  [[nodiscard]] std::optional<PacketSamples> samples() const;
  // Of the queue of a port, over time up to the end of the last window; absent if the options did
  // not ask for it.
  [[nodiscard]] std::optional<Bytes> queue_percentile(const Port& port, int percent) const;
  // The senders, if what controls them is a profile.
  [[nodiscard]] const PacketControl* control() const { return control_ ? &*control_ : nullptr; }
  // Length of a window.
  [[nodiscard]] Picoseconds window() const { return window_; }
  // Bytes on the line of a packet with this payload; the first of a message has more headers.
  [[nodiscard]] std::int64_t wire_of(std::int64_t payload, bool first) const;

  // Messages that were sent and are not complete.
  [[nodiscard]] std::uint64_t incomplete() const { return sends_ - counts_.completed; }
  // A cycle of links that are stopped, each because of packets that wait for the next one and the
  // last because of the first: a PFC deadlock, which nothing ends. Empty if there is none.
  [[nodiscard]] std::vector<LinkId> deadlock() const;

  // Every start of a packet is added to `starts` from now on.
  void trace(std::vector<PacketStart>* starts) {
    starts_ = starts;
    is_observed_ = true;
  }
  // Packets that links lost; ports count those for which there was no room.
  [[nodiscard]] const PacketLosses& losses() const { return losses_; }

 private:
  struct Connection {
    std::int64_t unsent = 0;     // Bytes of the message `sending`.
    Picoseconds next_start = 0;  // Pacing: the next packet begins no sooner.
    std::uint64_t rate = 0;      // That its own stage of the path carries, bits per second.
    std::uint32_t path = 0;      // First position.
    std::uint32_t port = 0;      // The first of the path.
    std::uint32_t sequence = 0;
    std::uint32_t sending = kNoIndex;  // Messages, of the list from `oldest` to `last`.
    std::uint32_t oldest = kNoIndex;
    std::uint32_t last = kNoIndex;
    std::uint8_t hops = 0;
    bool is_paced = false;
    bool was_cut = false;  // A CNP has come.
    // Of the target.
    std::uint32_t reverse = 0;  // First position of the way back.
    std::uint32_t unanswered = 0;
    std::uint32_t expected = 0;  // The next packet, where packets may be lost for good.
    DcqcnNotification notification;
    std::int64_t sent_bytes = 0;  // Of messages that left.
    std::uint32_t cnps = 0;
    std::uint32_t spray = kNoIndex;  // Where it has several paths.
  };
  struct Reliable {
    ReliableConnection ends;
    Picoseconds timer = kNeverTime;  // Of the alarm for its timeout.
    bool is_in_line = false;         // At the port where it begins.
  };
  // An event of a switch that is worked through exactly.
  struct SwitchEvent {
    Picoseconds time;
    std::uint32_t port;
    std::uint32_t link;
    bool is_start;  // After all that frees the buffer at the same instant.
  };

  // packet_engine.cpp
  void set_up_control();
  [[nodiscard]] std::uint32_t port_of(LinkId link);
  void check_marking() const;
  [[nodiscard]] bool is_of_fabric(const Link& link) const;
  void set_up_switch(Port& port, const Link& link);
  [[nodiscard]] std::uint32_t switch_of(NodeId node);
  [[nodiscard]] IngressLimits ingress_limits(const Link& link) const;
  [[nodiscard]] Bandwidth line_rate(Bandwidth rate) const;
  [[nodiscard]] std::optional<LinkId> opposite_of(LinkId link) const;
  [[nodiscard]] LinkId link_back(LinkId link) const;
  [[nodiscard]] std::uint32_t number_at(NodeId node, LinkId out) const;
  [[nodiscard]] Picoseconds time_on_line(const Port& port, std::int64_t wire) const;
  [[nodiscard]] Picoseconds lookahead(const Port& port, bool is_last) const;
  [[nodiscard]] bool has_way_back() const;
  Picoseconds add_path(std::span<const LinkId> path);
  void shorten_window(Picoseconds lookahead);
  [[nodiscard]] std::uint64_t window_of(Picoseconds time) const;
  void add_to_calendar(std::uint32_t item, Picoseconds time);
  void add_port_to_calendar(Port& port, std::uint32_t index, Picoseconds time);
  void schedule(Port& port, std::uint32_t index);
  [[nodiscard]] std::uint32_t take_slot(const Message& message);

  // packet_window.cpp
  [[nodiscard]] WindowCalendar::Window next_window() const;
  void fetch_ahead(std::size_t place) const;
  void pull(std::uint32_t item);
  [[gnu::always_inline]] void get(std::uint32_t index, const Arrival& arrival, std::uint32_t by);
  void put_in_order(Port& port, std::uint32_t slot);
  void hand_alarm(std::uint32_t index, const Arrival& alarm);
  void run_port(std::uint32_t index, PacketSwitch* node);
  [[nodiscard]] Picoseconds next_start(const Port& port) const;
  void note_queue(const Port& port, Picoseconds time);
  void send_next(Port& port, std::uint32_t index, Picoseconds start, PacketSwitch* node);
  void admit(Port& port, const Due& due, PacketSwitch* node);
  [[nodiscard]] bool run_plain(Port& port, std::uint32_t index);
  [[nodiscard]] bool pass_on_control(Port& port, std::uint32_t index, const Due& due);
  [[nodiscard]] Packet take_queued(Port& port);
  void pass_on(Port& port, std::uint32_t index, Packet packet, Picoseconds start);
  void begin(Port& port, std::uint32_t index, const Packet& packet, Picoseconds start);
  [[gnu::always_inline]] void begin_inline(Port& port, std::uint32_t index, Packet packet,
                                           Picoseconds start);
  void mark(Port& port, Packet& packet);
  [[nodiscard]] Picoseconds handed_on(const Port& port, const Packet& packet, Picoseconds start,
                                      Picoseconds end) const;

  // packet_switch.cpp
  void run_switch(std::uint32_t number);
  [[nodiscard]] bool is_calm(const PacketSwitch& node);
  void count(std::uint32_t number);
  void stop_counting(std::uint32_t number);
  void run_exactly(PacketSwitch& node);
  void collect(PacketSwitch& node);
  void push_event(Picoseconds time, std::uint32_t port, bool is_start);
  void push_start(std::uint32_t index);
  void take_event(PacketSwitch& node);
  void store(Port& port, const Due& due, PacketSwitch& node);
  void release(Port& port, PacketSwitch& node);
  void say(PacketSwitch& node, std::uint32_t in, bool stop, Picoseconds time);
  void send_pause(Port& port, std::uint32_t index, Picoseconds start);

  // packet_credits.cpp
  void set_up_credits(Port& port, const Link& link);
  [[nodiscard]] Picoseconds credit_lookahead(std::uint32_t before, std::uint32_t index) const;
  void use_credits(Port& port, std::uint32_t index, const Packet& packet, Picoseconds end,
                   bool is_lost);
  void give_credits(std::uint32_t index, Picoseconds time, std::int64_t bytes);
  void pull_credits(std::uint32_t index);
  void take_credits(Port& port, const Due& due);
  void add_credits_to_calendar(std::uint32_t index);

  // packet_transport.cpp
  [[nodiscard]] std::int64_t next_wire(const Connection& connection) const;
  [[nodiscard]] Packet next_of(std::uint32_t connection);
  void go_on(const Port& port, std::uint32_t connection, const Packet& packet, Picoseconds start);
  void pace(std::uint32_t connection, const Packet& packet, Picoseconds start);
  void deliver(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time);
  void complete(Connection& connection, Picoseconds time);
  void arrive_sprayed(Connection& connection, const Packet& packet, Picoseconds time);
  void answer(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time);
  void answer_mark(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time);
  void notify(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time);
  void admit_special(Port& port, const Due& due);
  void take_notice(const Packet& packet, Picoseconds time);

  // packet_faults.cpp
  void watch_link(LinkId link);
  void set_up_losses(LinkId link);
  [[nodiscard]] bool observe(Port& port, const Packet& packet, Picoseconds start);

  // packet_reliability.cpp
  void check_retransmission() const;
  Picoseconds add_ends(const Connection& connection);
  [[nodiscard]] Picoseconds stored_time(std::uint32_t first, std::uint8_t hops,
                                        std::int64_t wire) const;
  void post(std::uint32_t connection, const Message& message);
  void send_reliably(Port& port, std::uint32_t index, std::uint32_t connection, Picoseconds start);
  void receive(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time);
  void take_answer_or_alarm(const Packet& packet, Picoseconds time);
  void set_timer(std::uint32_t connection);
  void settle_alarms();
  void pull_alarms();
  // packet_control.cpp
  [[nodiscard]] Picoseconds idle_time(std::uint32_t first, std::uint8_t hops,
                                      std::int64_t wire) const;
  void add_sender(const Connection& connection);
  [[nodiscard]] bool has_turn(const Port& port, Picoseconds start);
  [[nodiscard]] bool goes_on_controlled(const Port& port, std::uint32_t connection,
                                        const Packet& packet, Picoseconds start);
  void take_answer(const Packet& packet, Picoseconds time);

  const Topology& topology_;
  PacketOptions options_;
  std::int64_t full_wire_ = 0;
  std::int64_t largest_wire_ = 0;
  std::int64_t around_frame_ = 0;  // Bytes on the line that no switch stores.
  std::int64_t ack_wire_ = 0;
  std::int64_t cnp_wire_ = 0;
  std::int64_t int_wire_ = 0;  // That HPCC adds to data and ACKs.
  Picoseconds cnp_interval_ = 0;
  bool sends_cnps_ = false;
  std::optional<PacketControl> control_;
  std::vector<Port> ports_;                // Of links in use, in order of first use.
  std::vector<std::uint32_t> port_index_;  // By link.
  std::vector<PacketSwitch> switches_;
  std::vector<SwitchLoad> loads_;            // By switch.
  std::vector<LinkCredits> credits_;         // Of links that have them.
  std::vector<std::uint32_t> switch_index_;  // By node.
  std::vector<std::uint32_t> positions_;     // Ports of all paths, one path after the other.
  std::vector<std::uint16_t> entries_;       // Number of the ingress port there.
  std::vector<PacketSource> sources_;
  std::vector<Connection> connections_;
  std::vector<PacketSpray> sprays_;
  std::vector<DcqcnReaction> reactions_;                 // By connection, if there is such control.
  std::map<std::uint64_t, DcqcnSettings> settings_;      // By rate.
  std::vector<RedMarker> markers_;                       // By rate of the port.
  std::map<std::uint64_t, std::uint32_t> marker_index_;  // By rate.
  std::vector<Message> messages_;
  std::uint32_t free_message_ = kNoIndex;
  std::uint64_t sends_ = 0;

  // Where packets are sent again: by connection. What is due at times of its own, the first first.
  std::vector<Reliable> reliable_;
  std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> alarms_;
  std::vector<Failure> failures_;
  bool can_lose_ = false;  // Packets may be lost, and are not sent again.

  Picoseconds window_ = kNeverTime;
  std::uint64_t number_ = 0;    // Of the window that is being worked on.
  Picoseconds begin_time_ = 0;  // Everything before has been done.
  Picoseconds end_time_ = 0;
  WindowCalendar calendar_;
  std::vector<std::uint32_t> due_;                // Scratch: items.
  std::vector<std::uint32_t> active_;             // Scratch: ports.
  std::vector<Due> gets_ = std::vector<Due>(64);  // Scratch: what ports get, in lists.
  std::uint32_t gets_used_ = 0;
  bool is_observed_ = false;         // observe() is asked about each packet.
  std::vector<std::uint32_t> busy_;  // Scratch: switches that are not open.
  std::vector<std::pair<Due, std::uint32_t>> exact_arrivals_;  // Scratch: with their ports.
  std::vector<SwitchEvent> events_;                            // Scratch: a heap.
  std::vector<std::int64_t> incoming_;                         // Scratch: by ingress port.
  std::vector<Completion>* completions_ = nullptr;
  Counts counts_;
  std::vector<PacketStart>* starts_ = nullptr;
  std::vector<QueueTimes> queue_times_;  // By port, if asked for.
  PacketSampler sampler_;
  PacketLosses losses_;
};

// Items of the calendar: 4 i + kind for port i.
enum class CalendarItem : std::uint8_t { Wire, Notices, Pauses, Port };

[[nodiscard]] constexpr std::uint32_t item_of(std::uint32_t port, CalendarItem kind) {
  return 4 * port + static_cast<std::uint32_t>(kind);
}

// Nearly always the next window or the one after: no division.
inline std::uint64_t PacketEngine::window_of(Picoseconds time) const {
  const Picoseconds after = time - end_time_;
  if (after >= 0 && after < window_) {
    return number_ + 1;
  }
  if (after >= window_ && after < 2 * window_) {
    return number_ + 2;
  }
  return static_cast<std::uint64_t>(time / window_);
}

inline void PacketEngine::add_to_calendar(std::uint32_t item, Picoseconds time) {
  calendar_.add(window_of(time), item);
}

inline void PacketEngine::add_port_to_calendar(Port& port, std::uint32_t index, Picoseconds time) {
  const std::uint64_t window = window_of(time);
  if (window != port.due) {
    port.due = window;
    calendar_.add(window, item_of(index, CalendarItem::Port));
  }
}

// The time of these bytes at this rate.
[[nodiscard]] inline Picoseconds time_at(std::uint64_t bits_per_second, std::int64_t wire) {
  // At most 65,535 B: 5.3e17.
  constexpr std::uint64_t kBitPicoseconds = 8'000'000'000'000;
  const auto bits = static_cast<std::uint64_t>(wire) * kBitPicoseconds;
  return static_cast<Picoseconds>((bits + bits_per_second - 1) / bits_per_second);
}

inline Picoseconds PacketEngine::time_on_line(const Port& port, std::int64_t wire) const {
  if (wire == full_wire_) [[likely]] {
    return port.full_time;
  }
  return time_at(port.bits_per_second, wire);
}

// When the next port of the packet has it.
inline Picoseconds PacketEngine::handed_on(const Port& port, const Packet& packet,
                                           Picoseconds start, Picoseconds end) const {
  if (!port.cuts_through) {
    return end + port.through_delay;
  }
  // A faster port would run out of bytes: it begins so late that both end at once.
  const Port& next = ports_[positions_[packet.position]];
  const Picoseconds held = end - start - time_on_line(next, packet.wire);
  const Picoseconds read =
      time_on_line(port, std::min<std::int64_t>(kCutThroughBytes, packet.wire));
  return start + std::max(read, held) + port.through_delay;
}

// The queue of the port has changed.
inline void PacketEngine::note_queue(const Port& port, Picoseconds time) {
  if (options_.queue_times) [[unlikely]] {
    queue_times_[port_index_[port.link]].change(time, port.queued_bytes);
  }
}

// When the port can begin its next packet, if nothing more comes; kNeverTime if it has none.
inline Picoseconds PacketEngine::next_start(const Port& port) const {
  if (port.urgent > 0) [[unlikely]] {
    return port.free_at;
  }
  if (port.stops != 0) [[unlikely]] {
    return kNeverTime;
  }
  if (!port.queue.empty()) {
    return port.free_at;
  }
  if (port.source == kNoIndex) {
    return kNeverTime;
  }
  const Picoseconds own = sources_[port.source].earliest();
  return own > port.free_at ? own : port.free_at;
}

}  // namespace trainyard
