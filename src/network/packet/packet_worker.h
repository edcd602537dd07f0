// SPDX-License-Identifier: Apache-2.0
// Works through windows, port by port (packet_engine.h says what windows are). It changes only the
// state of its ports and their switches, that of the ends of connections at these ports, and its
// own calendar and notes.
//
// Where a fabric is cut into parts, each has a worker of its own. What a link brings into another
// part lies in an outbox until the window is over; the other part takes it when the next one
// begins: from one part after the other, and of each in the order in which it was sent, so that the
// order on a link is kept. Between links the order follows from time and link alone.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "network/packet/packet_fabric.h"
#include "network/packet/packet_messages.h"
#include "network/packet/packet_transport.h"
#include "network/packet_parts/packet_calendar.h"
#include "network/packet_parts/packet_port.h"
#include "network/packet_parts/packet_switch.h"
#include "network/packet_parts/queue_times.h"

namespace trainyard {

// Cause for which a port gets something (Due::by): 4 i + what it is for link i.
enum class DueKind : std::uint8_t {
  Wire,    // A packet, for the next port of its path.
  Notice,  // An answer of the end of the link, or news for the source.
  Pause,   // A PFC frame, for the port of the link back.
  Credit,
};

[[nodiscard]] constexpr std::uint32_t by_link(std::uint32_t link, DueKind kind) {
  return 4 * link + static_cast<std::uint32_t>(kind);
}

// Switches for what is checked at each packet that begins, beside the packet itself.
struct PacketWatch {
  bool is_on = false;                        // Something of what follows, or HPCC.
  bool is_traced = false;                    // Starts are noted,
  std::vector<bool> ports = {};              // of these ports; of all if it is empty.
  bool notes_disturbed = false;              // PacketNotes::disturbed.
  std::vector<QueueTimes> queue_times = {};  // Indexed by port, if asked for.
};

class alignas(64) PacketWorker {
 public:
  PacketWorker(PacketFabric& fabric, PacketSenders& senders, PacketTargets& targets,
               PacketWatch& watch, std::uint32_t part);

  // Reads, after anything was set up, where the tables of the fabric are now.
  void look_up();
  // Windows of another length, from `begin` on: everything that is due is put down anew.
  void start_over(Picoseconds window, Picoseconds begin);
  // An empty one begins with the window `number`, whatever other workers have for its ports.
  void begin_at(Picoseconds window, std::uint64_t number);
  // Takes over what is under way by these ports, which several workers, one for each part, have
  // worked for up to the time `begin`: that of a window that this one has not begun.
  using Workers = std::span<const std::unique_ptr<PacketWorker>>;
  void absorb(Workers others, std::span<const std::uint32_t> ports, Picoseconds begin);
  // Puts the port into the calendar for the window in which it can next begin a packet that it has.
  void schedule(std::uint32_t index) { schedule(ports_[index], index); }

  // The next window in which anything is due; kNeverWindow if nothing is.
  [[nodiscard]] std::uint64_t next_window() const;
  // Returns how much is due in this window: packets and ports, and what comes from other parts.
  [[nodiscard]] std::size_t due(std::uint64_t number) const;
  // Works through this window, or through it up to the time `until`, if that is in it: what is left
  // is for the next time. Nothing must be due in an earlier one. Each of several workers takes what
  // all have sent to it in the round before; rounds are numbered one after the other.
  void run(std::uint64_t number, Workers workers, std::uint64_t round, Picoseconds until);

  // Adds what is under way to the ports that are meant to `all`, and, if it is taken out, forgets
  // these ports.
  using Meant = std::function<bool(std::uint32_t port)>;
  void list_under_way(const Meant& is_meant, std::vector<Due>& all) const;
  void take_out(const Meant& is_meant);
  // Puts down what is under way to a port of this part, and a port with all that it has to do.
  // Everything before `begin` has been done.
  void put_back(const Due& due) { arrivals_.add(window_of(due.time), due); }
  void put_back(std::uint32_t index, Picoseconds begin) { add_port(ports_[index], index, begin); }

  // Packets that are sent to this part in the round that was run last, and those of another
  // process: the outboxes of a worker that does not run here are filled for the round to come.
  [[nodiscard]] const std::vector<Due>& crossings(std::uint32_t part) const {
    return outboxes_[filled_].to[part];
  }
  void begin_round(std::uint64_t round);
  void put_crossings(std::uint32_t part, std::span<const Due> dues);

  [[nodiscard]] PacketNotes& notes() { return notes_; }
  [[nodiscard]] const PacketNotes& notes() const { return notes_; }

 private:
  // An event of a switch that is worked through exactly.
  struct SwitchEvent {
    Picoseconds time;
    bool is_start;  // After all that frees the buffer at the same instant.
    std::uint32_t link;
    std::uint32_t port;
    friend auto operator<=>(const SwitchEvent&, const SwitchEvent&) = default;
  };

  struct Outbox {
    std::vector<std::vector<Due>> to = {};  // Indexed by part.
    Picoseconds earliest = kNeverTime;
  };

  // packet_worker.cpp
  void cross(std::uint32_t part, const Due& due);
  void put_afar(const Port& port, const Due& due);
  void add_port(Port& port, std::uint32_t index, Picoseconds begin);

  // packet_window.cpp
  [[nodiscard]] std::uint64_t window_of(Picoseconds time) const;
  [[nodiscard]] std::uint32_t port_of(const Due& due) const {
    return due.next == kNoIndex ? senders_.end(due.packet.connection).port : due.next;
  }
  void leave_for_later();
  void add_port_to_calendar(Port& port, std::uint32_t index, Picoseconds time);
  void schedule(Port& port, std::uint32_t index);
  void hand_out();
  void take_in(Workers workers, std::uint64_t round);
  void wake(std::uint32_t index);
  void visit(Port& port, std::uint32_t index);
  [[gnu::always_inline]] void put_on_link(const Port& port, DueKind kind, std::uint32_t to,
                                          Picoseconds time, Packet packet);
  [[gnu::always_inline]] void hand(std::uint32_t slot);
  [[gnu::always_inline]] void get(std::uint32_t slot);
  void get(const Due& due);
  void put_in_order(Port& port, std::uint32_t slot);
  void pull_alarms();
  void run_ports();
  void run_port(std::uint32_t index, PacketSwitch* node);
  [[nodiscard]] Picoseconds next_start(const Port& port) const;
  [[nodiscard]] Picoseconds next_data_start(const Port& port) const;
  [[nodiscard]] Picoseconds next_filled_start(const Port& port) const;
  [[nodiscard]] bool fill(Port& port, std::uint32_t index, Picoseconds now);
  void note_queue(const Port& port, std::uint32_t index, Picoseconds time);
  void send_next(Port& port, std::uint32_t index, Picoseconds start, PacketSwitch* node);
  void admit(Port& port, std::uint32_t index, const Due& due, PacketSwitch* node);
  void admit_special(Port& port, std::uint32_t index, const Due& due, PacketSwitch* node);
  void admit_pause(Port& port, std::uint32_t index, const Due& due);
  [[nodiscard]] bool run_plain(Port& port, std::uint32_t index);
  [[nodiscard]] bool pass_on_control(Port& port, std::uint32_t index, const Due& due);
  [[nodiscard]] bool passes_at_once(Port& port, const Due& due);
  [[nodiscard]] bool loses_tail(Port& port, const Packet& packet) const;
  [[nodiscard]] const Packet& take_queued(Port& port);
  // Packets from other ports that a port began one after the other; the last one, and its end.
  struct Passed {
    std::uint64_t packets = 0;
    std::int64_t wire = 0;
    std::int64_t last_wire = 0;
    std::uint32_t last_position = 0;
    Picoseconds end = 0;
  };
  void count_passed(Port& port, const Passed& passed);
  void pass_on(Port& port, std::uint32_t index, const Packet& packet, Picoseconds start);
  void begin(Port& port, std::uint32_t index, const Packet& packet, Picoseconds start);
  [[gnu::always_inline]] void begin_inline(Port& port, std::uint32_t index, const Packet& packet,
                                           Picoseconds start);
  [[nodiscard, gnu::always_inline]] Due* place_near(const Port& port, Picoseconds time);
  void mark(Port& port, Packet& packet, std::int64_t behind);
  void enqueue(Port& port, std::uint32_t index, const Packet& packet, Picoseconds time);
  [[nodiscard]] bool has_own(std::uint32_t source, Picoseconds start);
  std::optional<Packet> send_own(Port& port, std::uint32_t index, std::uint32_t source,
                                 Picoseconds start);
  void deliver(const Port& port, Packet packet, Picoseconds time);
  void notify(const Port& port, Packet packet, Picoseconds time);

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
  void store(Port& port, std::uint32_t index, const Due& due, PacketSwitch& node);
  void trim(Port& port, Packet packet) const;
  void release(Port& port, PacketSwitch& node);
  void say(PacketSwitch& node, const BufferPlace& place, bool stop, Picoseconds time);
  [[nodiscard]] BufferPlace place_of(const Port& port, const Packet& packet) const;
  [[nodiscard]] BufferPlace place_of_leaving(const Port& port) const;
  template <typename Visit>
  void visit_stored(const PacketSwitch& node, const Visit& visit) const;
  void send_pause(Port& port, Picoseconds start);

  // packet_lanes.cpp
  [[nodiscard]] Picoseconds next_lane_start(const Port& port) const;
  [[nodiscard]] std::uint8_t ready_lanes(const Port& port, Picoseconds start);
  void send_of_lane(Port& port, std::uint32_t index, Picoseconds start);
  void put_in_lane(const Port& port, const Packet& packet);

  // packet_credits.cpp
  void use_credits(Port& port, std::uint32_t index, Packet packet, Picoseconds end, bool is_lost);
  void give_credits(std::uint32_t index, const LinkCredits::Return& back);
  void pull_credits(std::uint32_t index);
  void take_credits(Port& port, const Due& due);

  // packet_grants.cpp
  void deliver_credited(const Port& port, const Packet& packet, Picoseconds time);
  void grant_until(const Port& port, Picoseconds time);
  void finish_grants(const Port& port);
  void schedule_grants(Port& port, std::uint32_t index);

  // packet_adaptive.cpp
  void put_aside(std::uint32_t number, const Due& due);
  [[nodiscard]] std::uint32_t choose(PacketSwitch& node, Due& due);
  [[nodiscard]] std::int64_t bytes_before(const Port& port, const Packet& packet) const;

  // packet_pauses.cpp
  void tell_host(const Port& port, const Packet& packet, Picoseconds time);
  void take_in_host(Port& port, const Due& due);
  void say_from_host(Port& port, bool stop);
  void let_go_on(Port& port, Picoseconds start);
  [[nodiscard]] Picoseconds next_stopped_start(const Port& port) const;
  void arm_guard(Port& port, std::uint32_t index, Picoseconds now);
  void poll_guard(Port& port, std::uint32_t index, Picoseconds now, PacketSwitch& node);
  void drop_queue(Port& port, std::uint32_t index, Picoseconds now, PacketSwitch& node);
  [[nodiscard]] bool loses_in_storm(Port& port, const Packet& packet, const PacketSwitch& node);
  void count_storm_drop(Port& port, const Packet& packet);

  // packet_faults.cpp
  [[nodiscard]] bool observe(Port& port, std::uint32_t index, Packet packet, Picoseconds start,
                             Picoseconds end);

  PacketFabric& fabric_;
  PacketSenders& senders_;
  PacketTargets& targets_;
  PacketWatch& watch_;
  const PacketOptions& options_;
  const PacketSizes sizes_;
  const bool hears_acks_;
  const std::uint32_t part_;
  const bool is_cut_;  // There are other parts.

  // Spans of the fabric.
  std::span<Port> ports_;
  std::span<const std::uint32_t> positions_;
  std::span<const std::uint16_t> entries_;
  std::span<SwitchLoad> loads_;
  std::span<PacketSwitch> switches_;
  std::span<LinkCredits> credits_;
  std::span<LaneQueues> lanes_;
  bool chooses_ = false;  // There are fans.

  Picoseconds window_ = kNeverTime;
  std::uint64_t number_ = 0;    // Number of the window that is being worked on.
  Picoseconds begin_time_ = 0;  // Everything before has been done.
  Picoseconds border_ = 0;      // End of the window.
  Picoseconds end_time_ = 0;    // End of what is being worked on: the border, or earlier.
  WindowCalendar<std::uint32_t> calendar_;  // Ports that have something to begin or to free.
  WindowCalendar<Due> arrivals_;            // Packets under way on links, by when they are due.
  PacketNotes notes_;

  // Packets that are sent in this round, and in the one before: by the lowest bit of rounds.
  std::array<Outbox, 2> outboxes_;
  std::uint32_t filled_ = 0;

  // Scratch.
  WindowCalendar<std::uint32_t>::Items due_;                   // Ports of the calendar.
  std::vector<std::uint32_t> active_;                          // Ports with work.
  WindowCalendar<Due>::Items gets_;                            // Lists of what ports get.
  std::vector<std::uint32_t> busy_;                            // Switches that are not open.
  std::vector<std::pair<Due, std::uint32_t>> exact_arrivals_;  // With their ports.
  std::priority_queue<SwitchEvent, std::vector<SwitchEvent>, std::greater<>> events_;
  std::vector<std::int64_t> incoming_;  // Indexed by ingress port.
  std::vector<std::int64_t> waiting_;   // At each port of a fan.
};

// Nearly always the next window or the one after: no division, and no branch that nobody foresees.
inline std::uint64_t PacketWorker::window_of(Picoseconds time) const {
  const auto after = static_cast<std::uint64_t>(time - border_);
  const auto window = static_cast<std::uint64_t>(window_);
  if (after < 2 * window) [[likely]] {
    return number_ + 1 + (after >= window ? 1U : 0U);
  }
  return static_cast<std::uint64_t>(time) / window;
}

inline void PacketWorker::add_port_to_calendar(Port& port, std::uint32_t index, Picoseconds time) {
  const std::uint64_t window = window_of(time);
  if (window != port.due) {
    port.due = window;
    calendar_.add(window, index);
  }
}

// The queue of the port has changed.
inline void PacketWorker::note_queue(const Port& port, std::uint32_t index, Picoseconds time) {
  if (!watch_.queue_times.empty()) [[unlikely]] {
    watch_.queue_times[index].change(time, port.queued_bytes);
  }
}

// The port has work in this window.
inline void PacketWorker::visit(Port& port, std::uint32_t index) {
  if (port.visited != number_) {
    port.visited = number_;
    active_.push_back(index);
  }
}

// The port of this packet gets it: in order of time, then of the link.
inline void PacketWorker::get(std::uint32_t slot) {
  Due& due = gets_[slot];
  Port& port = ports_[due.next];
  visit(port, due.next);
  due.next = kNoIndex;
  if (port.first == kNoIndex) {
    port.first = slot;
    port.last = slot;
  } else if (!due.is_before(gets_[port.last])) {
    gets_[port.last].next = slot;
    port.last = slot;
  } else {
    put_in_order(port, slot);
  }
}

// The place of what goes out on the link of `port`: all of it is to be written there. Null if it
// is due in another part, or in a window that is far away.
inline Due* PacketWorker::place_near(const Port& port, Picoseconds time) {
  const std::uint64_t window = window_of(time);
  if (port.into != kNoIndex || !arrivals_.is_near(window)) [[unlikely]] {
    return nullptr;
  }
  return &arrivals_.add_near(window);
}

// Puts what goes out on the link of `port` in place to be due at port `to`: here, or in another
// part.
inline void PacketWorker::put_on_link(const Port& port, DueKind kind, std::uint32_t to,
                                      Picoseconds time, Packet packet) {
  Due* const due = place_near(port, time);
  if (due == nullptr) [[unlikely]] {
    put_afar(port, {.time = time, .packet = packet, .by = by_link(port.link, kind), .next = to});
    return;
  }
  due->time = time;
  due->packet = packet;
  due->by = by_link(port.link, kind);
  due->next = to;
}

// Returns the time at which the port can begin its next packet, if nothing more comes; kNeverTime
// if it has none.
inline Picoseconds PacketWorker::next_start(const Port& port) const {
  if (port.urgent > 0) [[unlikely]] {
    return port.free_at;
  }
  if (port.stops != 0) [[unlikely]] {
    return next_stopped_start(port);
  }
  return next_data_start(port);
}

// When sockets may hand it packets, or the first of its queue may begin.
inline Picoseconds PacketWorker::next_filled_start(const Port& port) const {
  const Picoseconds own = senders_.earliest(port.source);
  return port.queue.empty() ? own : std::min(own, port.free_at);
}

inline Picoseconds PacketWorker::next_data_start(const Port& port) const {
  if (!port.queue.empty()) {
    return port.free_at;
  }
  if (port.source == kNoIndex) {
    return kNeverTime;
  }
  const Picoseconds own = senders_.earliest(port.source);
  return own > port.free_at ? own : port.free_at;
}

}  // namespace trainyard
