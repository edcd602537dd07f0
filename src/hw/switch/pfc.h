// SPDX-License-Identifier: Apache-2.0
// Priority flow control (IEEE 802.1Qbb): pause times, headroom, and the watchdog of switches that
// ends a storm. Pure state: the caller tells the time.
#pragma once

#include <cstdint>

#include "sim/units.h"

namespace trainyard {

inline constexpr int kPriorities = 8;

// A MAC control frame of 64 B with preamble and gap.
inline constexpr Bytes kPfcWireBytes{84};
// A quantum is 512 bit times of the port (802.3 annex 31B).
inline constexpr std::int64_t kQuantumBytes = 64;
inline constexpr std::uint16_t kMaxQuanta = 0xFFFF;

// Quanta that a port may let pass between a pause frame and the last start of a frame of its own:
// 802.3 table in 31B.3.7 from 10 to 400 Gb/s as SONiC's buffer templates use it; 800 Gb/s has the
// value of 400 there, which no edition of 802.3df confirmed. Rates between two take that of the
// faster one, and rates above keep the last.
[[nodiscard]] std::int64_t reaction_quanta(Bandwidth rate);
// The time that they take: from the last bit of the pause frame.
[[nodiscard]] SimTime reaction_time(Bandwidth rate);

// The bytes that can still arrive after XOFF is decided, worst case (802.1Qbb annex O): cable both
// ways, a frame of ours that has just begun, the PFC frame, what the other side still starts, and
// a frame of theirs that has just begun.
struct HeadroomTerms {
  Bandwidth rate;
  SimTime delay;  // One way.
  Bytes mtu;      // Payload of the largest Ethernet frame: 18 B of header and FCS go around it.
  SimTime pipeline{};  // One way, beside the cable: gearbox, retimers, FEC.
};
[[nodiscard]] Bytes pfc_headroom(const HeadroomTerms& terms);

// SONiC's rule for Spectrum switches (sonic-swss, buffer_headroom_mellanox.lua): with worst-case
// packing into cells, in units of 1 KiB, for ports of an MTU of 9,100 B or, if that is more, `mtu`.
[[nodiscard]] Bytes sonic_headroom(Bandwidth rate, double metres, Bytes mtu = {});

// The rules of headroom; headroom_by() applies one of them. Ns3 is that of
// alibaba-edu/High-Precision-Congestion-Control: three times rate x delay. Enough only where the
// other side stops in no time.
enum class HeadroomRule : std::uint8_t { Standard, Sonic, Ns3 };
[[nodiscard]] Bytes headroom_by(HeadroomRule rule, const HeadroomTerms& terms);

// Ends a pause storm: a queue that has packets and sends none of them for `detection` is declared
// stuck; its packets are dropped, or sent in spite of the pause, until it has not been paused for
// `restoration`.
// Defaults: sonic-utilities, `pfcwd start_default`; the rule is that of sonic-swss for NVIDIA.
enum class StormAction : std::uint8_t { Drop, Forward };

struct WatchdogSettings {
  SimTime detection = milliseconds(200);
  SimTime restoration = milliseconds(200);
  SimTime poll = milliseconds(200);
  double paused_share = 0.99;  // Share of a poll interval.
  StormAction action = StormAction::Drop;
};

class PauseWatchdog {
 public:
  enum class Event : std::uint8_t { Nothing, Storm, Restored };

  // The observations of one poll of one queue, for the time since the poll before.
  struct Sample {
    bool has_packets = false;
    bool sent = false;
    SimTime paused{};
  };

  // Must be called every `settings.poll`.
  Event poll(const WatchdogSettings& settings, const Sample& sample);
  [[nodiscard]] bool in_storm() const { return in_storm_; }

 private:
  SimTime evidence_;  // Time for which the polls have agreed.
  bool in_storm_ = false;
};

}  // namespace trainyard
