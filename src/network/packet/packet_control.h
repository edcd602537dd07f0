// SPDX-License-Identifier: Apache-2.0
// The sending ends under a congestion control that ACKs drive: what each connection has under way,
// and the control itself (hw/control/congestion_control.h), which is told of packets and ACKs and
// says how much may be under way and how fast. docs/models/packet.md has what each control gets.
//
// Sizes are bytes on the line, as in the counters of ports. A packet is known by its number in its
// connection: when it was sent and how large it is lie in a ring by that number. What switches
// write into it for HPCC is handed over by each of them, in the order of the link. So packets
// themselves do not grow.
//
// Where packets are sent again an ACK cannot tell which time it answers: those packets count for
// what is under way, but say nothing about round trips and links (Karn, Partridge, SIGCOMM 1987).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "hw/control/control_profile.h"
#include "hw/transport/go_back_n.h"
#include "network/packet_parts/packet_port.h"
#include "network/packet_parts/spsc_queue.h"

namespace trainyard {

class PacketControl {
 public:
  // A port that writes into packets: a port of a switch of the fabric.
  struct Hop {
    std::uint64_t bits_per_second = 0;
    std::uint32_t link = 0;
    std::uint32_t position = 0;  // In the list of all paths.
  };
  // The stamp that a port writes: when the packet began there, and what it had sent and still held.
  struct Stamp {
    Picoseconds time = 0;
    std::uint64_t sent_bytes = 0;
    std::int64_t queue = 0;
  };

  // A packet that is sent: its number, modulo 2^32, and where its path begins.
  struct Departure {
    std::uint32_t number = 0;
    std::int64_t wire = 0;
    std::uint32_t position = 0;
    Picoseconds time = 0;
  };
  // The content of an ACK: all packets before `next` have come, and this one.
  struct Receipt {
    std::uint32_t next = 0;
    std::uint32_t number = 0;
    bool is_marked = false;  // Whether that packet was marked.
    Picoseconds time = 0;
    std::span<const Psn> others = {};  // Packets that came as well, as lost ACKs had stated.
  };

  // `full_wire` is a full packet.
  PacketControl(const ControlProfile& profile, std::int64_t full_wire);

  // A connection, numbered in order of the calls, that sends at `line` at most. `base_rtt` is the
  // time of a full packet and its ACK on the idle path, which begins at `position`. Controls with
  // one RTT for all take the longest of the connections that were added before they sent. Throws
  // ConfigError where a control cannot look at so many hops.
  void add(Bandwidth line, Picoseconds base_rtt, std::uint32_t position, std::span<const Hop> hops);
  // Another path of the connection added last or before.
  void add_way(std::uint32_t connection, std::uint32_t position, std::span<const Hop> hops);
  // Its packets may overtake each other: an ACK is for one packet only.
  void spread(std::uint32_t connection) { senders_[connection].is_spread = true; }

  // Returns whether this packet, next in its connection or sent again, may begin at `now`: the
  // window or the credit has room for it, or nothing is under way, or it is under way already.
  [[nodiscard]] bool fits(std::uint32_t connection, std::uint32_t number, std::int64_t wire,
                          Picoseconds now);
  void on_sent(std::uint32_t connection, const Departure& departure);
  // Takes an ACK; from one for nothing new it takes only that the ACK came.
  void on_ack(std::uint32_t connection, const Receipt& receipt);
  // Takes the news that all packets before `next` have come.
  void on_ack(std::uint32_t connection, std::uint32_t next, bool is_marked, Picoseconds now);
  // All packets from `number` on are sent again: none of them is under way.
  void go_back(std::uint32_t connection, std::uint32_t number);
  // The packet `number` is known to be lost: it is not under way until it is sent again, for which
  // the window must have room, as Ultra Ethernet has it (uet-htsim @40ccb05, UecSrc::processNack).
  void lose(std::uint32_t connection, std::uint32_t number);
  // The packet `sequence` begins at the port that is at `position` of the path.
  void stamp(std::uint32_t connection, std::uint32_t sequence, std::uint32_t position,
             const Stamp& stamp);

  // Returns the rate in bits per second, as of `now`.
  [[nodiscard]] std::uint64_t rate(std::uint32_t connection, Picoseconds now);
  // The packet that began last.
  struct Last {
    Picoseconds start = 0;
    std::int64_t wire = 0;
  };
  [[nodiscard]] const Last& last(std::uint32_t connection) const {
    return senders_[connection].last;
  }

  [[nodiscard]] std::int64_t in_flight(std::uint32_t connection) const {
    const Sender& sender = senders_[connection];
    return static_cast<std::int64_t>(sender.sent - sender.acked);
  }
  // The control itself, to be told of all that is no packet and no ACK: losses, CNPs, credits.
  [[nodiscard]] SenderControl& control(std::uint32_t connection) {
    return senders_[connection].control;
  }
  [[nodiscard]] const SenderControl& control(std::uint32_t connection) const {
    return senders_[connection].control;
  }
  [[nodiscard]] const ControlSettings& settings(std::uint32_t connection) const {
    return *senders_[connection].settings;
  }
  [[nodiscard]] const ControlProfile& profile() const { return profile_; }
  [[nodiscard]] const ControlTraits& traits() const { return traits_; }

 private:
  struct Sent {
    Picoseconds time = 0;
    std::uint32_t position = 0;
    std::uint16_t wire = 0;
    bool is_under_way = false;
    bool is_again = false;
    bool is_missing = false;  // It is lost, and will be sent again.
  };
  // The path of a connection, from the port at which it begins.
  struct Way {
    std::uint32_t position = 0;
    std::uint32_t first_hop = 0;  // In the list of all hops.
    std::uint32_t hops = 0;
    IntMemory memory = {};
  };
  struct Sender {
    const ControlSettings* settings;
    SenderControl control;
    std::uint64_t sent = 0;     // Bytes since the start, without those that were taken back.
    std::uint64_t acked = 0;    // Bytes of these that were acknowledged.
    std::uint32_t oldest = 0;   // Packets from here on may be under way,
    std::uint32_t next = 0;     // up to this one.
    std::uint32_t highest = 0;  // Packets before this one were sent, once at least.
    Last last = {};
    std::uint16_t hops = 0;
    bool is_spread = false;
    std::vector<Sent> flight = {};  // Indexed by the number of the packet, modulo a power of two.
    std::vector<Way> ways = {};     // HPCC; by position.
  };
  struct Stamped {
    std::uint32_t sequence;
    Stamp stamp;
  };
  // The port writes while the source, which is another worker's, reads what is older.
  struct Trail {
    Hop hop;
    SpscQueue<Stamped> stamps;
  };

  [[nodiscard]] const ControlSettings& settings_of(Bandwidth line, Picoseconds base_rtt);
  static void grow(Sender& sender);
  [[nodiscard]] static Sent& record_of(Sender& sender, std::uint32_t number) {
    return sender.flight[number & (sender.flight.size() - 1)];
  }
  [[nodiscard]] static bool is_under_way(const Sender& sender, std::uint32_t number) {
    return number - sender.oldest < sender.next - sender.oldest &&
           sender.flight[number & (sender.flight.size() - 1)].is_under_way;
  }
  // Whether only an ACK of all before a later packet takes this one off the ring.
  [[nodiscard]] static bool waits_for(const Sent& record);
  // Takes the packet out of what is under way; its bytes.
  static std::int64_t settle(Sender& sender, std::uint32_t number);
  [[nodiscard]] static Way& way_at(Sender& sender, std::uint32_t position);
  // The stamps of each hop that the ACK for packet `sequence` brings: as many as there are.
  using IntPath = std::array<IntHop, kMaxIntHops>;
  [[nodiscard]] IntPath path_of(const Way& way, std::uint32_t sequence);

  ControlProfile profile_;
  ControlTraits traits_;
  std::int64_t full_wire_;
  Picoseconds longest_rtt_ = 0;
  // Settings by rate and RTT.
  std::map<std::pair<std::int64_t, Picoseconds>, ControlSettings> settings_;
  std::vector<Trail> hops_;
  std::vector<Sender> senders_;
};

}  // namespace trainyard
