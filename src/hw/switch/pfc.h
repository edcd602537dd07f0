// SPDX-License-Identifier: Apache-2.0
// Priority flow control (IEEE 802.1Qbb): frames, pause times, headroom, and the watchdog of
// switches that ends a storm. Pure state: the caller tells the time and carries the frames.
#pragma once

#include <array>
#include <cstdint>

#include "sim/units.h"

namespace trainyard {

inline constexpr int kPriorities = 8;

// A MAC control frame of 64 B with preamble and gap.
inline constexpr Bytes kPfcWireBytes{84};
// A quantum is 512 bit times of the port (802.3 annex 31B).
inline constexpr std::int64_t kQuantumBytes = 64;
inline constexpr std::uint16_t kMaxQuanta = 0xFFFF;

// Returns for how long `quanta` stop a port of this rate.
[[nodiscard]] SimTime pause_time(std::int64_t quanta, Bandwidth rate);

// Quanta that a port may let pass between a pause frame and the last start of a frame of its own:
// 802.3 table in 31B.3.7 from 10 to 400 Gb/s as SONiC's buffer templates use it; 800 Gb/s has the
// value of 400 there, which no edition of 802.3df confirmed. Rates between two take that of the
// faster one, and rates above keep the last.
[[nodiscard]] std::int64_t reaction_quanta(Bandwidth rate);
// The time that they take: from the last bit of the pause frame.
[[nodiscard]] SimTime reaction_time(Bandwidth rate);

// The content of one frame: quanta for each priority whose bit is set in `enabled`. Zero is XON.
struct PfcFrame {
  std::uint8_t enabled = 0;
  std::array<std::uint16_t, kPriorities> quanta{};

  [[nodiscard]] static PfcFrame xoff(int priority, std::uint16_t quanta = kMaxQuanta);
  [[nodiscard]] static PfcFrame xon(int priority) { return xoff(priority, 0); }
};

// The transmitter: which priorities are stopped, until when, and for how long they were.
class PauseState {
 public:
  // A frame takes effect at `now`: restarts the timers of the priorities it names.
  void receive(const PfcFrame& frame, SimTime now, Bandwidth rate);

  // A pause ends when its time is over, also without an XON.
  [[nodiscard]] bool is_paused(int priority, SimTime now) const {
    return now < lanes_[static_cast<std::size_t>(priority)].until;
  }
  // Returns the time at which `priority` may send again; not after `now` if it may already.
  [[nodiscard]] SimTime resume_time(int priority) const {
    return lanes_[static_cast<std::size_t>(priority)].until;
  }
  // The time for which `priority` has been stopped up to `now`.
  [[nodiscard]] SimTime paused_time(int priority, SimTime now) const;

 private:
  struct Lane {
    SimTime since;  // Start of the pause that `until` ends.
    SimTime until;
    SimTime before;  // Paused in all before `since`.
  };
  std::array<Lane, kPriorities> lanes_{};
};

// The receiver that is over its threshold must say so again before the other side's timer runs out.
class PauseRefresh {
 public:
  // Frames carry `quanta`; another one goes out after half of that time.
  PauseRefresh(std::uint16_t quanta, Bandwidth rate);

  // XOFF was sent at `now`.
  void xoff(SimTime now) { due_ = now + period_; }
  void xon() { due_ = SimTime::max(); }
  // Returns the time at which the next frame is due; SimTime::max() while nothing is paused.
  [[nodiscard]] SimTime deadline() const { return due_; }
  [[nodiscard]] std::uint16_t quanta() const { return quanta_; }

 private:
  SimTime period_;
  SimTime due_ = SimTime::max();
  std::uint16_t quanta_;
};

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
// packing into cells, in units of 1 KiB.
struct SonicHeadroomTerms {
  Bandwidth rate;
  double metres = 0.0;
  Bytes port_mtu{9100};
  Bytes lossless_mtu{1024};
  Bytes cell{144};
  double small_packets = 1.0;  // Their share; 1 is the worst case.
  double mac_phy_bytes = 819.2;
};
[[nodiscard]] Bytes sonic_headroom(const SonicHeadroomTerms& terms);

// The rule of alibaba-edu/High-Precision-Congestion-Control: three times rate x delay. Enough only
// where the other side stops in no time.
[[nodiscard]] Bytes ns3_headroom(Bandwidth rate, SimTime delay);

// The rules of headroom; headroom_by() applies one of them.
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

  // SONiC's for a switch of `ports` ports: all times for every 32 of them, polls at most 1 s.
  [[nodiscard]] static WatchdogSettings for_ports(int ports);
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
