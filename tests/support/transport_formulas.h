// SPDX-License-Identifier: Apache-2.0
// Closed forms of the simplest traffic, which a packet engine has to meet to the picosecond. All
// links have one rate and one delay, all packets one size; s is the time of one packet on a link,
// rounded up to a picosecond.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace trainyard {

struct HopTerms {
  Bandwidth rate{};
  Bytes packet{};             // On the wire.
  SimTime link_delay{};       // d
  SimTime switch_latency{};   // L
  Bytes lookahead{};          // What a cut-through switch waits for; 0: store and forward.
  std::int64_t switches = 1;  // h
  std::int64_t packets = 1;   // n
};

// When the last byte of one flow arrives that starts at 0 on idle links:
//   (n + h) s + (h + 1) d + h L, or for cut-through  n s + h s' + (h + 1) d + h L
// with s' the time of the bytes that the switch waits for.
[[nodiscard]] inline SimTime one_flow_arrival(const HopTerms& terms) {
  const SimTime packet = transfer_time(terms.packet, terms.rate);
  const SimTime held =
      terms.lookahead > Bytes(0) ? transfer_time(terms.lookahead, terms.rate) : packet;
  return packet * terms.packets + (held + terms.switch_latency) * terms.switches +
         terms.link_delay * (terms.switches + 1);
}

// Of two such flows from two hosts that share all links from the first switch on, where arrivals at
// one instant serve the first flow first: the first one's last byte, and one packet later the
// other's.
[[nodiscard]] inline SimTime first_of_two_arrival(const HopTerms& terms) {
  return one_flow_arrival(terms) + transfer_time(terms.packet, terms.rate) * (terms.packets - 1);
}
[[nodiscard]] inline SimTime second_of_two_arrival(const HopTerms& terms) {
  return first_of_two_arrival(terms) + transfer_time(terms.packet, terms.rate);
}

struct IncastTerms {
  Bandwidth rate{};
  Bytes packet{};  // On the wire.
  SimTime link_delay{};
  SimTime switch_latency{};
  std::int64_t senders = 1;
  std::int64_t packets = 1;  // Each.
};

// N hosts behind one store-and-forward switch send to one, all from 0 on, with nothing to hold them
// back: s + d + L + N n s + d.
[[nodiscard]] inline SimTime incast_completion(const IncastTerms& terms) {
  const SimTime packet = transfer_time(terms.packet, terms.rate);
  return packet * (terms.senders * terms.packets + 1) + terms.link_delay * 2 + terms.switch_latency;
}
// Packets that the port to the receiver holds at most, with the one on the wire: N n - (n - 1),
// when the last ones arrive.
[[nodiscard]] inline std::int64_t incast_peak(const IncastTerms& terms) {
  return terms.senders * terms.packets - (terms.packets - 1);
}

}  // namespace trainyard
