// SPDX-License-Identifier: Apache-2.0
// Terms between congestion controls and the engine that serves them: the port of a sender, what an
// ACK tells, what a control needs of receivers and switches, and what it does unless it says
// otherwise. docs/guide/extending.md leads through a new control.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sim/units.h"

namespace trainyard {

// The port of a sender, and the network behind it.
struct PortTerms {
  Bandwidth line{};
  SimTime base_rtt{};  // The RTT of the longest path, with everything idle.
  Bytes packet{4178};  // A full packet on the wire: no window is smaller.
};

// Line rate x base RTT, at least a packet.
[[nodiscard]] inline Bytes bdp(const PortTerms& port) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const Wide bytes = Wide{port.line.bits_per_second()} * port.base_rtt.picoseconds() / kBits;
  return std::max(Bytes(static_cast<std::int64_t>(bytes)), port.packet);
}

// A rate, or one that grows with that of the port.
struct RateRule {
  Bandwidth rate{};
  Bandwidth per{};  // The port that `rate` is for; 0: any.

  // At least 1 bit/s.
  [[nodiscard]] Bandwidth at(Bandwidth line) const {
    if (per == Bandwidth(0)) {
      return rate;
    }
    const double factor =
        static_cast<double>(line.bits_per_second()) / static_cast<double>(per.bits_per_second());
    return std::max(rate.scaled(factor), Bandwidth(1));
  }
};

// INT: what one egress port writes when a packet leaves it.
struct IntHop {
  Bandwidth rate{};
  SimTime time{};
  std::uint64_t sent_bytes = 0;  // The bytes that the port sent since the start.
  Bytes queue{};                 // Without the packet itself.
  std::uint32_t port = 0;        // Which one it is: the path id of HPCC's paper, link by link.
};

inline constexpr std::size_t kMaxIntHops = 8;

// The last INT that ACKs brought of each link of a path.
struct IntMemory {
  struct Seen {
    SimTime time{};
    std::uint64_t sent_bytes = 0;
    Bytes queue{};
    std::uint32_t port = 0;
  };
  std::uint8_t hops = 0;  // 0: nothing seen yet.
  std::array<Seen, kMaxIntHops> seen{};
};

// The contents of an ACK. Sizes count as the window does; the engine says whether that is wire
// bytes.
struct AckSignal {
  SimTime now{};
  SimTime rtt{};            // Round trip of the packet that the ACK answers.
  SimTime host_delay{};     // The part of it that passed in the receiving host.
  std::uint64_t acked = 0;  // All bytes before this one have come.
  std::uint64_t next = 0;   // The next byte to send.
  Bytes size{};             // Newly acknowledged.
  bool is_marked = false;   // ECN echo.
  bool tells_rtt = true;    // Otherwise the packet was sent again, or is not known any more.
  int hops = 0;
  std::span<const IntHop> path{};  // With INT only.
  IntMemory* memory = nullptr;     // What INT said of this path, if the flow has several.
};

// More than any flow has in flight.
inline constexpr Bytes kUnlimitedWindow{std::int64_t{1} << 60};

// How receivers tell a control of marked packets.
enum class MarkSignal : std::uint8_t { None, Cnps, Echoes };

// When marked packets make a CNP.
enum class CnpRule : std::uint8_t {
  Immediate,  // If the last CNP is an interval old; marks in between are forgotten.
  Deferred,   // Marks in between make one at the end of the interval.
};

// Whether switches write INT into packets, and with how many bits.
enum class IntFormat : std::uint8_t { None, Exact, Wire };

// The needs of a control from receivers and switches. Whoever serves controls asks for this, never
// which control it is.
struct ControlTraits {
  // One ACK answers so many packets, or, above 0, so many bytes of them. Neither: the control needs
  // no ACKs.
  int packets_per_ack = 0;
  Bytes bytes_per_ack{};
  // Whether an ACK says nothing to the control if nobody knows its round trip, since the packet was
  // sent again.
  bool needs_ack_times = true;
  IntFormat telemetry = IntFormat::None;
  MarkSignal marks = MarkSignal::None;
  std::string_view marking{};  // The ECN preset that the control is meant for; empty: any.
  CnpRule cnp_rule = CnpRule::Immediate;
  SimTime cnp_interval{};           // The least time between two CNPs of a flow.
  bool is_receiver_driven = false;  // Senders ask receivers for credit, and send what they grant.
  bool shares_rtt = false;          // All flows of a network take its longest base RTT for theirs.

  [[nodiscard]] bool needs_acks() const { return packets_per_ack > 0 || bytes_per_ack > Bytes(0); }
  // Packets of `packet` wire bytes that one ACK answers; 0 without ACKs.
  [[nodiscard]] int packets_for_ack(Bytes packet) const {
    const std::int64_t whole = (bytes_per_ack + packet - Bytes(1)).count() / packet.count();
    return bytes_per_ack > Bytes(0) ? static_cast<int>(whole) : packets_per_ack;
  }
};

class Fields;

// A control is a row of the table in hw/control/control_list.h: a struct with
//   kName       its name in files: the value of `algorithm`
//   Profile     its settings as a file states them, for ports of any speed; fields() binds its keys
//   Settings    what all flows of one port share; settings() makes it
//   Sender      the state of one flow; made from a Settings that outlives it
//   traits()    what it needs of others
// and with those of the following functions in which it differs from a sender that nothing limits.
struct ControlDefaults {
  static void on_ack(auto& /*flow*/, const AckSignal& /*ack*/, const PortTerms& /*port*/) {}
  // Any ACK, before what it tells: the path is alive.
  static void on_any_ack(auto& /*flow*/) {}
  static void on_cnp(auto& /*flow*/, SimTime /*now*/) {}
  static void on_sent(auto& /*flow*/, SimTime /*now*/, Bytes /*size*/) {}
  // A NAK or selective acknowledgement shows that a packet was lost.
  static void on_loss(auto& /*flow*/, SimTime /*now*/) {}
  static void on_timeout(auto& /*flow*/, SimTime /*now*/) {}
  static void on_credit(auto& /*flow*/, Bytes /*size*/) {}
  static void add(auto& /*flow*/, Bytes /*size*/, Bytes /*in_flight*/) {}

  static Bandwidth rate(auto& /*flow*/, SimTime /*now*/, const PortTerms& port) {
    return port.line;
  }
  static bool pauses(const auto& /*flow*/) { return false; }
  static Bytes window(const auto& /*flow*/, const PortTerms& /*port*/) { return kUnlimitedWindow; }
  static bool has_credit(const auto& /*flow*/) { return true; }
};

}  // namespace trainyard
