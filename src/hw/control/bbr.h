// SPDX-License-Identifier: Apache-2.0
// TCP's BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00; Linux,
// net/ipv4/tcp_bbr.c): a model of the path, its bandwidth B and its least round trip T, instead of
// losses. It sends at gain x B with at most gain x B T in flight.
//
//   B          the largest of the rates at which a round trip's bytes came, of ten round trips
//   T          the least round trip of the last ten seconds
//   startup    gain 2/ln 2, until B has not grown by a quarter for three round trips
//   drain      gain ln 2/2, until no more than B T is in flight
//   probe_bw   gains 5/4, 3/4 and six times 1 for about T each, from a place in that cycle that
//              the time of entry draws; up to 2 B T in flight
//   probe_rtt  four packets in flight for 200 ms, where T is ten seconds old
//
// Differences: a rate is measured four times a round trip, not at each ACK, and from ACKs alone;
// long-term sampling, which looks for policers, is left out. A loss keeps in flight what is there
// for a round trip.
//
// Only +, -, x and /, which IEEE 754 fixes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/units.h"

namespace trainyard {

struct BbrSettings {
  double first_window = 10.0;  // Packets.
  double startup_gain = 2.885;
  double window_gain = 2.0;
  double least_window = 4.0;  // Packets.
  double margin = 0.01;       // The rate is so much below that of the model.
  SimTime rtt_window = seconds(10);
  SimTime probe_time = milliseconds(200);
  Bytes packet{4178};
};

enum class BbrMode : std::uint8_t { Startup, Drain, ProbeBandwidth, ProbeRtt };

// `settings` must outlive it.
class Bbr {
 public:
  explicit Bbr(const BbrSettings& settings);

  void on_ack(const AckSignal& ack);
  void on_loss();
  void on_timeout();

  [[nodiscard]] Bandwidth rate(Bandwidth line) const;  // At least 1 bit/s.
  [[nodiscard]] Bytes window() const { return Bytes(static_cast<std::int64_t>(window_)); }
  [[nodiscard]] BbrMode mode() const { return mode_; }
  // Bytes in a picosecond.
  [[nodiscard]] double bandwidth() const;
  // SimTime::max() before the first.
  [[nodiscard]] SimTime least_rtt() const { return least_rtt_; }

 private:
  static constexpr std::size_t kRounds = 10;  // BtlBwFilterLen
  static constexpr std::size_t kMarks = 4;

  // The beginning of a measurement of the rate, which ends when what is under way has come.
  struct Mark {
    SimTime time{};
    std::uint64_t acked = 0;
    std::uint64_t next = 0;
  };
  enum class Phase : std::uint8_t { Open, Conserving, Recovery, Timeout };

  void measure(const AckSignal& ack);
  void begin_round(const AckSignal& ack);
  void update_mode(const AckSignal& ack, double before);
  void update_rtt(const AckSignal& ack);
  void probe_rtt(SimTime now);
  void enter_cycle(SimTime now);
  void leave_recovery();
  void set_rate(const AckSignal& ack);
  void set_window(double acked);
  [[nodiscard]] double gain() const;
  [[nodiscard]] double in_flight(double gain) const;  // Bytes: gain x B T and what hosts hold back.
  [[nodiscard]] double path() const;                  // B T; the first window before it is known.
  [[nodiscard]] double packet() const { return static_cast<double>(settings_->packet.count()); }

  const BbrSettings* settings_;
  double window_;  // Bytes.
  double prior_ = 0.0;
  double pacing_;  // Bytes in a picosecond.
  std::array<double, kRounds> best_{};
  std::array<Mark, kMarks> marks_{};
  std::size_t first_mark_ = 0;
  std::size_t mark_count_ = 0;
  std::size_t round_ = 0;
  std::uint64_t acked_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t round_end_ = 0;
  std::uint64_t recover_ = 0;
  double full_ = 0.0;  // The bandwidth that growth is compared with.
  int flat_rounds_ = 0;
  SimTime least_rtt_ = SimTime::max();
  SimTime rtt_time_{};
  SimTime cycle_time_{};
  SimTime probe_end_{};
  std::uint64_t probe_round_end_ = 0;
  std::size_t cycle_ = 0;
  BbrMode mode_ = BbrMode::Startup;
  Phase phase_ = Phase::Open;
  bool is_full_ = false;
  bool has_rtt_ = false;
  bool is_idle_ = false;
  bool has_lost_ = false;  // In this part of the cycle.
  bool is_low_ = false;    // The probe of the round trip has few packets in flight.
};

struct BbrProfile {
  BbrSettings settings{};
};

struct BbrControl : ControlDefaults {
  using Profile = BbrProfile;
  using Settings = BbrSettings;
  using Sender = Bbr;
  static constexpr std::string_view kName = "bbr";

  static void fields(Fields& fields, BbrProfile& profile);
  static BbrSettings settings(const BbrProfile& profile, const PortTerms& port);
  static ControlTraits traits(const BbrProfile& /*profile*/) {
    return {.packets_per_ack = 1, .needs_ack_times = false};
  }

  static void on_ack(Bbr& flow, const AckSignal& ack, const PortTerms& /*port*/) {
    flow.on_ack(ack);
  }
  static void on_loss(Bbr& flow, SimTime /*now*/) { flow.on_loss(); }
  static void on_timeout(Bbr& flow, SimTime /*now*/) { flow.on_timeout(); }
  static Bandwidth rate(const Bbr& flow, SimTime /*now*/, const PortTerms& port) {
    return flow.rate(port.line);
  }
  static Bytes window(const Bbr& flow, const PortTerms& /*port*/) { return flow.window(); }
};

}  // namespace trainyard
