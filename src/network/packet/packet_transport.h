// SPDX-License-Identifier: Apache-2.0
// The two ends of connections. The state of an end is written by the worker of the port at which it
// is: the source's at the first port of the path, the target's at the last one, whose link is a
// FIFO, so that what comes at its end is known when a packet begins there. One end knows of the
// other only by packets, and by the list of messages, which changes between windows only.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hw/control/dcqcn.h"
#include "network/packet/packet_control.h"
#include "network/packet/packet_fabric.h"
#include "network/packet/packet_messages.h"
#include "network/packet/packet_reliability.h"
#include "network/packet_parts/packet_grants.h"
#include "network/packet_parts/packet_source.h"
#include "network/packet_parts/packet_spray.h"

namespace trainyard {

// Cutting messages into packets, pacing, and what ACKs and CNPs change.
class PacketSenders {
 public:
  struct alignas(64) SendingEnd {
    std::int64_t unsent = 0;           // Bytes of the message `sending`.
    Picoseconds next_start = 0;        // Pacing: the next packet begins no sooner.
    std::uint64_t rate = 0;            // Rate of its own stage of the path, bits per second.
    std::uint32_t path = 0;            // First position.
    std::uint32_t port = 0;            // The first of the path.
    std::uint32_t sequence = 0;        // Packets that it has sent, modulo 2^32.
    std::uint32_t sending = kNoIndex;  // Message that it sends.
    std::uint32_t last = kNoIndex;     // Its last message.
    std::uint32_t source = 0;          // In which it waits for its turn.
    std::uint8_t hops = 0;
    bool is_paced = false;
    bool was_cut = false;         // A CNP has come.
    bool is_in_line = false;      // Retransmission: at the port where it begins.
    bool is_blocked = false;      // Without it: out of the line until its window has room.
    bool was_pausing = false;     // The window was below one packet at the last ACK.
    std::int64_t sent_bytes = 0;  // Bytes of messages that left.
  };
  static_assert(sizeof(SendingEnd) == 64);

  // Takes `reliable`, which has both ends of each connection, by connection; empty without
  // retransmission. So has `grants` of receiver credits; empty without them.
  PacketSenders(PacketFabric& fabric, const PacketMessages& messages,
                std::vector<ReliableConnection>& reliable, PacketGrants& grants);

  // A connection, numbered from 0, that sends at `rate` bits per second at most. How long a window
  // may be for its timeouts.
  Picoseconds add(const PacketPath& path, std::uint64_t rate);
  // Another path, of the connection's length, before anything is sent. The number of the spray.
  std::uint32_t add_alternative(const PacketPath& path, std::uint32_t connection);
  // From `time` on no packet takes these links, one of several paths.
  void retire(std::uint32_t connection, Picoseconds time, std::span<const LinkId> links);
  // A path that it takes later on.
  void add_way(std::uint32_t connection, const PacketPath& path);
  // Its packets may overtake each other.
  void spread(std::uint32_t connection) {
    if (control_) {
      control_->spread(connection);
    }
  }
  // Posts a message that was sent now, behind all others of the connection. Whether the port where
  // it begins may have something to send that it had not.
  [[nodiscard]] bool post(std::uint32_t connection, std::uint32_t slot, PacketNotes& notes);
  // The same where another process sends: of its own ends it has the target at most.
  void post_elsewhere(std::uint32_t connection, std::uint32_t slot);

  // Returns the time at which one of the connections that begin at a port may send; kNeverTime if
  // none has anything.
  [[nodiscard]] Picoseconds earliest(std::uint32_t source) const {
    return sources_[source].earliest();
  }
  // Returns whether the connection whose turn it is has room in its window; those that do not leave
  // the line. True under controls that have none.
  [[nodiscard]] bool has_turn(std::uint32_t source, Picoseconds start) {
    return !control_ || has_room(source, start);
  }
  // The next packet of the connection whose turn it is. Nothing if an ACK has come since.
  [[nodiscard]] std::optional<Packet> take(std::uint32_t source, Picoseconds start,
                                           PacketNotes& notes);
  // Lets the connection take its next turn when it may, after a packet began at `start`.
  void go_on(const Port& port, const Packet& packet, Picoseconds start, PacketNotes& notes);
  // An ACK, a CNP, a grant or an alarm has come. A control packet that it makes the source send.
  [[nodiscard]] std::optional<Packet> on_notice(const Packet& packet, Picoseconds time,
                                                PacketNotes& notes);
  // Returns whether ACKs are listened to.
  [[nodiscard]] bool hears_acks() const;
  // Drops the alarms at the head that are void, so that the next one is something to wait for.
  void settle(PacketNotes& notes);

  // Returns whether no CNP has come.
  [[nodiscard]] bool is_uncut(std::uint32_t connection) const { return !ends_[connection].was_cut; }
  // Sets its state to what it is after so many more packets, of messages of so many bytes.
  void skip(std::uint32_t connection, std::uint32_t packets, std::int64_t bytes,
            Picoseconds next_start) {
    SendingEnd& end = ends_[connection];
    end.sequence += packets;
    end.sent_bytes += bytes;
    end.next_start = next_start;
  }
  // So much less is to be sent of its message.
  void shorten(std::uint32_t connection, std::int64_t bytes) { ends_[connection].unsent -= bytes; }
  [[nodiscard]] const PacketSource& source(std::uint32_t number) const { return sources_[number]; }
  // All that waits there is so much later; messages have been replaced.
  void shift(std::uint32_t source, Picoseconds by) {
    sources_[source].shift(
        by, [&](std::uint32_t connection) { return messages_[ends_[connection].sending].order; });
  }
  // Where sockets fill the queue of their host: a packet of the connection got into it, and began
  // to leave it at `start`.
  void enter_queue(std::uint32_t connection) { ++queued_[connection]; }
  void leave_queue(std::uint32_t connection, Picoseconds start) {
    --queued_[connection];
    resume(connection, start);
  }
  [[nodiscard]] std::size_t count() const { return ends_.size(); }
  // The last port of its paths.
  [[nodiscard]] std::uint32_t target_port(std::uint32_t connection) const {
    const SendingEnd& end = ends_[connection];
    return fabric_.positions()[end.path + end.hops - 1U];
  }
  [[nodiscard]] const SendingEnd& end(std::uint32_t connection) const { return ends_[connection]; }
  // Returns the payload of messages that have left, and of the one that leaves.
  [[nodiscard]] std::int64_t payload_sent(std::uint32_t connection) const;
  // Returns the rate to which it is limited at `time`, not above its line.
  [[nodiscard]] double rate(std::uint32_t connection, Picoseconds time) const;
  // packet_samples.cpp. As RateSample has them.
  [[nodiscard]] std::optional<double> window_packets(std::uint32_t connection) const;
  [[nodiscard]] std::optional<SimTime> smoothed_rtt(std::uint32_t connection) const;
  // Adds the payload of messages that left, by port.
  void add_payload(std::uint32_t connection, std::vector<std::int64_t>& bytes) const;
  // packet_exchange.cpp. What results tell of the sending end, for other processes.
  void put_results(std::uint32_t connection, Parcel& parcel) const;
  void get_results(std::uint32_t connection, Parcel& parcel);
  // Takes what has come beside packets for this end.
  void take(const StatementElsewhere& said);
  void take(const StampElsewhere& said);
  // Returns the control of the senders if it is a profile.
  [[nodiscard]] PacketControl* control() { return control_ ? &*control_ : nullptr; }
  [[nodiscard]] const PacketControl* control() const { return control_ ? &*control_ : nullptr; }

 private:
  struct alignas(64) Reaction {
    DcqcnReaction dcqcn;
  };

  [[nodiscard]] std::int64_t next_wire(const SendingEnd& end) const;
  [[nodiscard]] std::uint32_t spray_of(std::uint32_t connection) const {
    return connection < spray_of_.size() ? spray_of_[connection] : kNoIndex;
  }
  [[nodiscard]] Packet next_of(std::uint32_t connection, PacketNotes& notes);
  void pace(SendingEnd& end, const Packet& packet, Picoseconds start);
  void leave(SendingEnd& end, std::int64_t size, PacketNotes& notes) const;
  // packet_control.cpp
  [[nodiscard]] std::vector<PacketControl::Hop> hops_of(const PacketPath& path) const;
  Picoseconds add_controlled(const PacketPath& path, std::uint64_t rate);
  [[nodiscard]] bool fits(std::uint32_t connection, Picoseconds time);
  [[nodiscard]] bool fits_in_queue(std::uint32_t connection, bool is_again, Picoseconds time);
  [[nodiscard]] bool has_room(std::uint32_t source, Picoseconds start);
  void pace_controlled(const Port& port, const Packet& packet, Picoseconds start);
  void repace(std::uint32_t connection, Picoseconds time);
  void resume(std::uint32_t connection, Picoseconds time);
  // packet_grants.cpp
  Picoseconds add_credits(const PacketPath& path, Picoseconds rtt);
  [[nodiscard]] const CreditSender& credit_of(std::uint32_t connection) const;
  [[nodiscard]] std::int64_t wire_of_message(std::int64_t size) const;
  [[nodiscard]] Packet request(std::uint32_t connection, Picoseconds time, bool is_again);
  [[nodiscard]] std::optional<Packet> on_credit_alarm(std::uint32_t connection, Alarm::Kind kind,
                                                      Picoseconds time, PacketNotes& notes);
  void on_grant(const Packet& packet, Picoseconds time);
  void set_ask_timer(std::uint32_t connection, PacketNotes& notes);
  // packet_reliability.cpp
  Picoseconds add_reliable(const PacketPath& path, std::uint64_t rate);
  [[nodiscard]] SelectiveSettings selective_for(const PacketPath& path, std::uint64_t rate,
                                                bool is_spread) const;
  [[nodiscard]] std::optional<Packet> next_reliable(std::uint32_t connection, Picoseconds start,
                                                    PacketNotes& notes);
  void go_on_reliably(const Packet& packet, Picoseconds start, PacketNotes& notes);
  void on_reliable_notice(const Packet& packet, Picoseconds time, PacketNotes& notes);
  void set_timer(std::uint32_t connection, PacketNotes& notes);
  void take_back_lost(std::uint32_t connection);

  PacketFabric& fabric_;
  const PacketMessages& messages_;
  std::vector<ReliableConnection>& reliable_;
  PacketGrants& grants_;
  std::int64_t mtu_;
  std::vector<PacketSource> sources_;
  std::vector<SendingEnd> ends_;
  std::vector<PacketSpray> sprays_;
  // Indexed by connection, up to the last one with several paths.
  std::vector<std::uint32_t> spray_of_;
  std::vector<Reaction> reactions_;  // Indexed by connection, if there is such control.
  std::map<std::uint64_t, DcqcnSettings> settings_;  // Settings by rate.
  std::vector<std::int64_t> queued_;  // Packets by connection, where sockets fill queues.
  std::vector<Picoseconds> timers_;   // Time of the alarm for the timeout of each connection.
  std::optional<PacketControl> control_;
};

// The control packets with which a target answers a packet.
struct PacketAnswers {
  std::array<Packet, 2> packets;
  std::uint32_t count = 0;

  void add(const Packet& packet) { packets[count++] = packet; }
};

// The ways of a connection whose packets switches send on (network/packet/packet_adaptive.h): paths
// of equal length, the first at a position of its own, the others one after the other. A connection
// that takes others from some time on has several of these.
struct AdaptiveWays {
  std::uint32_t first = 0;
  std::uint32_t others = 0;
  std::uint32_t hops = 0;
  std::vector<std::int64_t> packets;  // Packets that came by each path.
};

// Models the receiving end: what has come, and the answers, a CNP to a marked packet, and ACKs.
class PacketTargets {
 public:
  PacketTargets(const PacketFabric& fabric, const PacketMessages& messages,
                std::vector<ReliableConnection>& reliable, PacketGrants& grants);

  void add(const PacketPath& path);
  // It has several paths: what comes out of order waits.
  void spray(std::uint32_t connection, std::uint32_t number);
  // packet_adaptive.cpp. Switches send its packets by these, of later ones from some time on, or by
  // those of another connection.
  void add_ways(std::uint32_t connection, AdaptiveWays ways);
  void share_ways(std::uint32_t connection, std::uint32_t twin);
  [[nodiscard]] bool has_ways(std::uint32_t connection) const {
    return ends_[connection].ways != kNoIndex;
  }
  // Adds the payload that the source has sent, by port: as packets that have come share it.
  void add_payload(std::uint32_t connection, std::int64_t sent,
                   std::vector<std::int64_t>& bytes) const;
  // Returns the path of a connection that begins at this position.
  [[nodiscard]] PacketPath path(std::uint32_t connection, std::uint32_t first) const {
    return {.first = first, .reverse = ends_[connection].reverse, .hops = ends_[connection].hops};
  }
  // Packets may be lost, and are not sent again.
  void lose() { can_lose_ = true; }
  // A message was sent. Whether nothing else is expected.
  bool expect(std::uint32_t connection, std::uint32_t slot);

  // Where the state of the connection lies, to be fetched from memory before it is needed.
  [[nodiscard]] const void* place_of(std::uint32_t connection) const { return &ends_[connection]; }
  // A data packet is at the end of its path at `time`.
  [[nodiscard]] PacketAnswers take(const Packet& packet, Picoseconds time, PacketNotes& notes);

  // packet_reliability.cpp. An alarm of the delay of ACKs has come at `now` to the last port of the
  // path. The ACK that goes out after the delay, if it is over.
  [[nodiscard]] std::optional<Packet> on_delay(std::uint32_t connection, Picoseconds now,
                                               std::uint32_t port, PacketNotes& notes);

  // packet_grants.cpp. Tells the source at `time` what is granted to the connection.
  [[nodiscard]] Packet grant_packet(std::uint32_t connection, Picoseconds time) const;
  [[nodiscard]] PacketGrants& grants() { return grants_; }

  // So many more packets have come, up to the end of a message.
  void skip(std::uint32_t connection, std::uint32_t packets) {
    if (can_lose_) {
      ends_[connection].expected += packets;
    }
  }
  // So many more packets have come, of the middle of a message. How many ACKs they made.
  [[nodiscard]] std::uint32_t answer_skipped(std::uint32_t connection, std::uint32_t packets) {
    if (!has_way_back_ || packets_per_ack_ == 0) {
      return 0;
    }
    const std::uint32_t unanswered = ends_[connection].unanswered + packets;
    ends_[connection].unanswered = unanswered % packets_per_ack_;
    return unanswered / packets_per_ack_;
  }
  // Returns how many packets have come since the last ACK.
  [[nodiscard]] std::uint32_t unanswered(std::uint32_t connection) const {
    return ends_[connection].unanswered;
  }
  [[nodiscard]] std::uint32_t cnps(std::uint32_t connection) const {
    return ends_[connection].cnps;
  }
  // packet_exchange.cpp. What results tell of the end, for other processes.
  void put_results(std::uint32_t connection, Parcel& parcel) const;
  void get_results(std::uint32_t connection, Parcel& parcel);
  // The oldest message of the connection, which is this one, is complete in another process.
  void complete_elsewhere(std::uint32_t connection, std::uint32_t slot);
  // Returns whether it has messages to complete.
  [[nodiscard]] bool is_busy(std::uint32_t connection) const {
    return ends_[connection].oldest != kNoIndex;
  }

 private:
  struct alignas(64) ReceivingEnd {
    std::uint32_t oldest = kNoIndex;  // Oldest of its messages.
    std::uint32_t reverse = 0;        // First position of the way back.
    std::uint32_t unanswered = 0;
    std::uint32_t expected = 0;  // The next packet, where packets may be lost for good.
    DcqcnNotification notification;
    std::uint32_t cnps = 0;
    std::uint32_t spray = kNoIndex;
    std::uint32_t ways = kNoIndex;
    std::uint8_t hops = 0;
  };

  // An ACK of TCP that is put off: when it has to go out, and the alarm for it.
  struct Delay {
    Picoseconds end = kNeverTime;
    Picoseconds alarm = kNeverTime;
  };

  // The first port of the path, where something goes back.
  [[nodiscard]] std::uint32_t source_port(const ReceivingEnd& end) const {
    return fabric_.ports()[fabric_.positions()[end.reverse + end.hops - 1U]].opposite;
  }
  void count_way(const ReceivingEnd& end, const Packet& packet);
  void complete(ReceivingEnd& end, Picoseconds time, PacketNotes& notes) const;
  // The packet, with its number, size and flags, as a control packet to the source at `time`.
  [[nodiscard]] Packet on_way_back(const ReceivingEnd& end, std::uint32_t connection,
                                   Picoseconds time, Packet packet) const;
  void take_sprayed(ReceivingEnd& end, const Packet& packet, Picoseconds time, PacketNotes& notes);
  void answer_mark(ReceivingEnd& end, const Packet& packet, Picoseconds time,
                   PacketAnswers& answers, PacketNotes& notes) const;
  void answer(ReceivingEnd& end, const Packet& packet, Picoseconds time, PacketAnswers& answers,
              PacketNotes& notes) const;
  // packet_reliability.cpp
  void take_reliably(ReceivingEnd& end, const Packet& packet, Picoseconds time,
                     PacketAnswers& answers, PacketNotes& notes);
  void set_delay(std::uint32_t connection, Picoseconds now, std::uint32_t port, PacketNotes& notes);

  const PacketFabric& fabric_;
  const PacketMessages& messages_;
  std::vector<ReliableConnection>& reliable_;
  PacketGrants& grants_;
  bool can_lose_;
  bool has_way_back_;
  bool sends_cnps_ = false;
  bool answers_each_ = false;  // True for packets that may overtake each other.
  Picoseconds cnp_interval_ = 0;
  std::uint32_t packets_per_ack_;
  std::vector<ReceivingEnd> ends_;
  std::vector<Delay> delays_;  // Indexed by connection, with TCP.
  std::vector<SprayedArrivals> sprays_;
  std::vector<std::vector<AdaptiveWays>> ways_;
};

}  // namespace trainyard
